/// Define-by-run differentiation: every op records a node with its backward closure beside it.
#pragma once

#include <atomic>
#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/tensor.h"

namespace crucible {

/// What mixed precision does with the floating inputs of an op; f64 is always left alone.
enum class Autocast : uint8_t {
  keep,    ///< Nothing: the op takes any dtype, and sums in f32 inside.
  narrow,  ///< To the 16-bit dtype: the products, which tensor cores speed up.
  widen,   ///< To f32: what overflows or cancels in 16 bits.
};

/// What is known of an op apart from its code.  One static object per op.
struct OpInfo {
  std::string_view name;  ///< In errors, traces and the registry of samples.
  Autocast autocast = Autocast::keep;
};

/// A 16-bit copy of an arena of parameters: what products read under autocast.
struct NarrowCopy {
  Tensor values;         ///< The arena, f32.
  Tensor copy;           ///< The same numbers, rounded.
  uint64_t version = 0;  ///< Of `values` when they were last copied.
  bool fresh = false;    ///< Whether `version` says anything yet.

  /// Copies again if the arena has changed.
  void refresh();
};

/// One gradient per input, in the order of the inputs; undefined where it was not needed.
using Gradients = std::vector<Tensor>;

/// Which gradients backward has to compute, and where to write them.
class Needs {
 public:
  explicit Needs(const Node& node) : node_(node) {}
  bool operator[](int input) const;
  /// An uninitialised tensor for the gradient of an input, of that input's shape and dtype.  For a
  /// parameter whose gradient is still empty this is its own slice of the gradient arena, which
  /// saves a copy.  Call it once per input, write all of it, and return it.
  Tensor destination(int input) const;

 private:
  const Node& node_;
};

/// `dy` is contiguous; the gradients returned may be views.
using Backward = std::function<Gradients(const Tensor& dy, const Needs& needs)>;

/// One result in the graph.  A leaf has no closure.
struct Node {
  const OpInfo* op = nullptr;                 ///< Null for a leaf.
  std::vector<std::shared_ptr<Node>> inputs;  ///< Null where an input needs no gradient.
  Backward backward;
  Shape shape;  ///< Of the result; gradients must match it.
  DType dtype = DType::f32;
  Device device;
  uint64_t sequence = 0;  ///< Order of creation; backward runs in descending order.
  Tensor grad;            ///< Of a leaf: accumulated over backward() calls.
  Tensor arena_slot;      ///< Of a parameter: where its gradient lives.  See Needs::destination.
  bool slot_taken = false;
  std::shared_ptr<NarrowCopy> narrow_copy;  ///< Of a parameter, for mixed precision.
  Tensor narrow;                            ///< This parameter's part of it.

  ~Node();
};

/// A leaf for `x`.
std::shared_ptr<Node> make_leaf(const Tensor& x);

/// While alive, ops of this thread record nothing.
class NoGrad {
 public:
  NoGrad();
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;
  static bool active();

 private:
  bool previous_;
};

/// A tensor kept for backward: without history, and with the version it had.
class Saved {
 public:
  Saved() = default;
  explicit Saved(const Tensor& tensor);
  bool defined() const { return tensor_.defined(); }
  /// Throws    InvalidArgument naming the op if the data was changed in place since it was saved.
  const Tensor& get() const;

 private:
  Tensor tensor_;
  uint64_t version_ = 0;
};

/// What closures capture instead of a Tensor.  An undefined tensor gives an undefined Saved.
inline Saved save(const Tensor& tensor) {
  return Saved(tensor);
}

namespace autograd {
/// The inputs of an op: `{x, w}` or a vector of tensors.
class Inputs {
 public:
  using Reference = std::reference_wrapper<const Tensor>;
  Inputs(std::initializer_list<Reference> list) : list_(list) {}
  Inputs(const std::vector<Tensor>& tensors) : own_(tensors.begin(), tensors.end()), list_(own_) {}
  auto begin() const { return list_.begin(); }
  auto end() const { return list_.end(); }
  size_t size() const { return list_.size(); }

 private:
  std::vector<Reference> own_;
  std::span<const Reference> list_;
};
/// Whether any of the inputs has a history and recording is on.
bool wanted(const Inputs& inputs);
Tensor attach(const OpInfo& op, const Tensor& y, const Inputs& inputs, Backward backward);
}  // namespace autograd

/// Makes `y` a differentiable function of `inputs`: the only way to do so, and it demands a
/// closure,
/// `(const Tensor& dy) -> Gradients` or `(const Tensor& dy, const Needs& needs) -> Gradients`.
/// The closure captures save(t), never a Tensor.  A needed gradient that it leaves undefined is an
/// error that names the op.
template <class F>
Tensor record(const OpInfo& op, const Tensor& y, const autograd::Inputs& inputs, F&& closure) {
  if (!autograd::wanted(inputs)) return y;
  if constexpr (std::invocable<F, const Tensor&, const Needs&>) {
    return autograd::attach(op, y, inputs, std::forward<F>(closure));
  } else {
    return autograd::attach(
        op, y, inputs,
        [f = std::forward<F>(closure)](const Tensor& dy, const Needs&) { return f(dy); });
  }
}

/// For an op without a gradient: backward through `y` throws InvalidArgument naming the op.
Tensor no_gradient(const OpInfo& op, const Tensor& y, const autograd::Inputs& inputs);

}  // namespace crucible
