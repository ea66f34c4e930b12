/// Other ways to look at the same elements.  Views share storage where they can; all
/// differentiable.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <vector>

#include "core/tensor.h"

namespace crucible {

/// `x` itself if it is row-major without gaps, else a row-major copy.
Tensor contiguous(const Tensor& x);

/// The same elements, in row-major order, under another shape.  One size may be -1: it is inferred.
///
/// Shapes    x [...] -> y `sizes`, with the same number of elements.
/// Memory    A view where x is contiguous, else a copy.
/// Throws    InvalidArgument if the element counts differ.
Tensor reshape(const Tensor& x, std::span<const int64_t> sizes);
Tensor reshape(const Tensor& x, std::initializer_list<int64_t> sizes);
Tensor reshape(const Tensor& x, const Shape& shape);

/// Axes in another order: y's axis i is x's axis axes[i].  A view.
/// Throws    InvalidArgument if `axes` is not a permutation of x's axes.
Tensor permute(const Tensor& x, std::initializer_list<int> axes);
Tensor permute(const Tensor& x, std::span<const int> axes);
/// Two axes exchanged.  A view.
Tensor transpose(const Tensor& x, int axis0 = -2, int axis1 = -1);

/// Elements begin, begin + step, ... below end along one axis.  A view.
///
/// Shapes    [..., n, ...] -> [..., ceil((end - begin) / step), ...].
/// Throws    InvalidArgument unless 0 <= begin <= end <= n (after adding n to negative ones), step
/// >= 1.
Tensor slice(const Tensor& x, int axis, int64_t begin, int64_t end, int64_t step = 1);
/// One index along one axis, which disappears.  A view.
Tensor select(const Tensor& x, int axis, int64_t index);
/// A new axis of size 1 before `axis` in [-rank-1, rank].  A view.
Tensor unsqueeze(const Tensor& x, int axis);
/// Without an axis of size 1.  A view.
Tensor squeeze(const Tensor& x, int axis);
/// `x` repeated along axes of size 1 (and new leading axes) to `shape`.  A view with stride 0.
/// Throws    InvalidArgument if x does not broadcast to shape.
Tensor expand(const Tensor& x, const Shape& shape);

}  // namespace crucible
