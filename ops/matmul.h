/// Matrix products: batched, broadcast, and the linear layer with fused bias and activation.
#pragma once

#include "core/primitives.h"
#include "core/tensor.h"

namespace crucible {

/// Batched matrix product; leading axes broadcast.
///
/// Shapes    a [..., M, K], b [..., K, N] -> y [..., M, N].  A 1-d a is a row, a 1-d b a column;
/// the
///           added axis is dropped from y.
/// Dtypes    f16, bf16, f32, f64, equal; sums in f32 (f64 for f64).
/// Gradient  da = dy b^T, db = a^T dy, summed over broadcast axes; keeps a and b.
/// Memory    transpose() of a contiguous operand costs nothing; other strided operands are copied.
/// Throws    InvalidArgument if inner sizes differ or leading axes do not broadcast.
Tensor matmul(const Tensor& a, const Tensor& b);

/// y = activation(x W^T + bias), one kernel.
///
/// Shapes    x [..., in], weight [out, in], bias [out] or undefined -> y [..., out].
/// Dtypes    As matmul.
/// Gradient  dz = dy * activation', dx = dz W, dweight = dz^T x, dbias = column sums of dz; keeps
/// x,
///           weight, and y (relu) or the pre-activation (gelu_tanh).
/// Throws    InvalidArgument if sizes do not match.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias,
              Activation activation = Activation::none);

}  // namespace crucible
