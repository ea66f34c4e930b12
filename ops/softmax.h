/// Softmax and its logarithm.
#pragma once

#include "core/tensor.h"

namespace crucible {

/// Softmax along `axis`: y_i = exp(x_i - max x) / sum_j exp(x_j - max x).
///
/// Shapes    x [..., n, ...] -> y, same shape; an empty x gives an empty y.
/// Dtypes    f16, bf16, f32, f64; accumulates in f32 (f64 for f64).
/// Gradient  dx = y * (dy - sum(dy * y)); keeps y.
/// Throws    InvalidArgument if axis is outside [-rank, rank) or x is not floating.
/// A slice of -inf only gives 0 with gradient 0; one that holds +inf or NaN gives NaN.
Tensor softmax(const Tensor& x, int axis = -1);

/// log softmax along `axis`, stable.
///
/// Gradient  dx = dy - exp(y) * sum(dy); keeps y.
/// Otherwise as softmax; a slice of -inf only gives -inf with gradient 0.
Tensor log_softmax(const Tensor& x, int axis = -1);

}  // namespace crucible
