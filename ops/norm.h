/// Batch and layer normalisation.
#pragma once

#include "core/tensor.h"

namespace crucible {

struct BatchNormOptions {
  bool training = true;
  double momentum = 0.1;  ///< Weight of the new batch in the running statistics.
  double eps = 1e-5;
  bool relu = false;  ///< Fused behind the normalisation (and the residual).
};

/// y = relu?(gamma (x - mean) / sqrt(var + eps) + beta + residual?) per channel, one kernel.
///
/// Shapes    x [..., C], gamma, beta, running_mean, running_var [C], residual like x or undefined.
/// Dtypes    f16, bf16, f32, f64; the [C] tensors are f32 (f64 for f64 x).
/// Gradient  For x, gamma, beta and residual; keeps x, and y if relu and residual are both used.
/// Throws    InvalidArgument if sizes differ, or fewer than two values a channel in training.
/// Source    Ioffe and Szegedy 2015, arXiv:1502.03167.  Training normalises by the biased variance
///           and changes running_mean and running_var in place (with the unbiased one).
Tensor batch_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta,
                  const Tensor& running_mean, const Tensor& running_var,
                  const BatchNormOptions& options = {}, const Tensor& residual = {});

/// y = gamma (x - mean) / sqrt(var + eps) + beta over the last axis.
///
/// Shapes    x [..., C], gamma, beta [C].
/// Dtypes    f16, bf16, f32, f64; gamma and beta f32 (f64 for f64 x).
/// Gradient  For x, gamma and beta; keeps x.
/// Throws    InvalidArgument if sizes differ or C is 0.
/// Source    Ba, Kiros, Hinton 2016, arXiv:1607.06450.
Tensor layer_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, double eps = 1e-5);

}  // namespace crucible
