/// Sample inputs and error inputs of every differentiable op, from which GradCheck is generated.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/samples/maker.h"

namespace crucible::testing {

struct OpSample {
  std::string op;    ///< The name in its OpInfo.
  std::string name;  ///< Of the sample: "BroadcastRow".
  /// The differentiable inputs.  Each becomes a leaf.
  std::function<std::vector<Tensor>(Maker&)> inputs;
  /// Calls the op.  Everything that is not differentiated (labels, masks, options) comes from a
  /// Maker of fixed seed, so that repeated calls agree.
  std::function<Tensor(const std::vector<Tensor>&, Maker&)> call;
  /// At singular points, where a difference quotient says nothing: the exact gradient of the sum of
  /// the result for each input, row-major.  NaN stands for NaN.
  std::optional<std::vector<std::vector<double>>> gradients = {};
};

/// An op whose result is not differentiable: its name and a call that gives one such result.
struct NoGradientSample {
  std::string op;
  std::string name;
  std::function<Tensor(Maker&)> call;
  std::vector<double> expected;  ///< Row-major.
};

struct ErrorSample {
  std::string op;
  std::string name;  ///< "AxisOutside": the test reads ThrowsNaming/SoftmaxAxisOutside.
  std::function<void(Maker&)> call;
  std::string text;  ///< What the message must contain.
};

struct OpSamples {
  std::vector<OpSample> differentiable;
  std::vector<NoGradientSample> no_gradient;
  std::vector<ErrorSample> errors;
};

/// Each defined in tests/samples/<family>.cpp.
void add_attention_samples(OpSamples& samples);
void add_cast_samples(OpSamples& samples);
void add_conv_samples(OpSamples& samples);
void add_dropout_samples(OpSamples& samples);
void add_elementwise_samples(OpSamples& samples);
void add_embedding_samples(OpSamples& samples);
void add_join_samples(OpSamples& samples);
void add_loss_samples(OpSamples& samples);
void add_matmul_samples(OpSamples& samples);
void add_norm_samples(OpSamples& samples);
void add_pool_samples(OpSamples& samples);
void add_reduce_samples(OpSamples& samples);
void add_softmax_samples(OpSamples& samples);
void add_view_samples(OpSamples& samples);

/// All of them.
const OpSamples& op_samples();

}  // namespace crucible::testing
