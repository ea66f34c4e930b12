/// Mixed precision: inside a scope, products compute in a 16-bit dtype on f32 parameters.
#pragma once

#include <optional>

#include "core/dtype.h"

namespace crucible {

/// While alive, ops of this thread cast their floating inputs by their policy (core/autograd.h):
/// linear, matmul, conv2d and attention to `dtype`; softmax, logarithms, powers and sums to f32;
/// the others compute as their inputs are, and where two dtypes meet, in f32.  Gradients flow back
/// through the casts, so that parameters of f32 get gradients of f32.  No dtype: nothing is cast.
///
/// Throws    InvalidArgument if `dtype` is neither f16 nor bf16.
/// Source    Micikevicius et al. 2018, arXiv:1710.03740.
class AutocastScope {
 public:
  explicit AutocastScope(std::optional<DType> dtype);
  ~AutocastScope();
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;
  /// Of the innermost scope of this thread.
  static std::optional<DType> current();

 private:
  std::optional<DType> previous_;
};

}  // namespace crucible
