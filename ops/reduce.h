/// Reductions over any set of axes.
///
/// Shapes    The named axes disappear, or become 1 with keep_dims.  No axes named: all of them, to
/// a
///           0-d tensor.
/// Dtypes    f16, bf16, f32, f64; sums in f32 (f64 for f64).
/// Throws    InvalidArgument if an axis is outside [-rank, rank) or named twice.
/// Over no elements: sum 0, mean NaN, prod 1, max -inf, min +inf, logsumexp -inf, norm 0.
#pragma once

#include <initializer_list>
#include <vector>

#include "core/tensor.h"

namespace crucible {

struct ReduceOptions {
  std::vector<int> axes = {};  ///< Empty: all.
  bool keep_dims = false;
};

Tensor sum(const Tensor& x, const ReduceOptions& options = {});
Tensor mean(const Tensor& x, const ReduceOptions& options = {});
/// The gradient is the product of the others, exact also with zeros.
Tensor prod(const Tensor& x, const ReduceOptions& options = {});
/// Ties share the gradient equally.
Tensor max(const Tensor& x, const ReduceOptions& options = {});
Tensor min(const Tensor& x, const ReduceOptions& options = {});
/// log sum exp x, stable; the gradient is softmax, and 0 where all are -inf.
Tensor logsumexp(const Tensor& x, const ReduceOptions& options = {});
/// sqrt(sum x^2); the gradient at the zero vector is 0.
Tensor norm(const Tensor& x, const ReduceOptions& options = {});

/// Index of the first largest element along an axis, i64; not differentiable.
/// Throws    InvalidArgument if the axis is empty.
Tensor argmax(const Tensor& x, int axis, bool keep_dims = false);

}  // namespace crucible
