/// Several tensors into one, and padding.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "core/tensor.h"

namespace crucible {

/// Tensors one after the other along an existing axis.
///
/// Shapes    [..., n_i, ...] -> [..., sum n_i, ...]; other sizes equal.
/// Gradient  The matching slice of dy.
/// Throws    InvalidArgument for an empty list, or if ranks, other sizes, dtypes or devices differ.
Tensor concat(const std::vector<Tensor>& tensors, int axis);

/// Tensors of one shape along a new axis in [-rank-1, rank].
Tensor stack(const std::vector<Tensor>& tensors, int axis);

/// `before` and `after` elements of `value` around each axis, outermost first.
///
/// Shapes    [..., n, ...] -> [..., before + n + after, ...].
/// Gradient  The inner part of dy.
/// Throws    InvalidArgument unless there is one non-negative pair per axis.
Tensor pad(const Tensor& x, const std::vector<std::array<int64_t, 2>>& widths, double value = 0.0);

}  // namespace crucible
