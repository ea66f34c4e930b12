/// Layers: plain structs whose parameters come from a Scope and whose forward is the call operator.
#pragma once

#include <optional>

#include "core/parameters.h"
#include "ops/conv.h"
#include "ops/matmul.h"

namespace crucible::models {

struct LinearOptions {
  bool bias = true;
  /// Default: uniform within 1 / sqrt(in), for weight and bias.
  std::optional<Init> weight_init = {};
  std::optional<Init> bias_init = {};
  ExportLayout layout = ExportLayout::as_is;
};

struct Linear {
  /// y = activation(x W^T + b).  x [..., in] -> y [..., out];  weight [out, in], bias [out].
  Linear(const Scope& s, int64_t in, int64_t out, const LinearOptions& options = {});
  Tensor operator()(const Tensor& x, Activation activation = Activation::none) const {
    return linear(x, weight, bias, activation);
  }
  Tensor weight, bias;  ///< bias is undefined if options.bias is false.
};

struct Conv2dOptions {
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t padding = 0;
  int64_t dilation = 1;
  int64_t groups = 1;
  bool bias = true;
};

struct Conv2d {
  /// x [N, H, W, in] -> y [N, Ho, Wo, out];  weight [out, kernel, kernel, in / groups], normal with
  /// variance 2 / (out * kernel^2) (He et al. 2015, fan-out), bias 0.
  Conv2d(const Scope& s, int64_t in, int64_t out, const Conv2dOptions& options);
  Tensor operator()(const Tensor& x) const { return conv2d(x, weight, bias, options); }
  ConvOptions options;
  Tensor weight, bias;
};

struct BatchNorm {
  /// Over the last axis of x [..., channels]; running statistics as buffers.
  BatchNorm(const Scope& s, int64_t channels);
  Tensor operator()(const Tensor& x) const;
  Tensor relu(const Tensor& x) const;                              ///< relu(norm(x)), one kernel.
  Tensor add_relu(const Tensor& x, const Tensor& residual) const;  ///< relu(norm(x) + residual).
  ParameterSet* set;
  Tensor weight, bias, running_mean, running_var;
};

struct LayerNorm {
  LayerNorm(const Scope& s, int64_t width, double eps = 1e-5);
  Tensor operator()(const Tensor& x) const;
  double eps;
  Tensor weight, bias;
};

struct Embedding {
  /// ids [...] -> [..., width];  weight [count, width].
  Embedding(const Scope& s, int64_t count, int64_t width, const Init& init);
  Tensor operator()(const Tensor& ids) const;
  Tensor weight;
};

/// Dropout in training, else x itself.
struct Dropout {
  Dropout(const Scope& s, double p) : set(&s.set()), p(p) {}
  Tensor operator()(const Tensor& x) const;
  ParameterSet* set;
  double p;
};

}  // namespace crucible::models
