/// Pooling over NHWC images.
#pragma once

#include "core/tensor.h"
#include "ops/conv.h"

namespace crucible {

struct PoolOptions {
  Size2 kernel = 2;
  Size2 stride = 2;
  Size2 padding = 0;  ///< At most half of the kernel.
};

/// The largest value of each window; padding never wins, NaN does.
///
/// Shapes    x [N, H, W, C] -> y [N, Ho, Wo, C], sizes rounded down as in conv2d.
/// Dtypes    f16, bf16, f32, f64.
/// Gradient  To the first pixel of the window (row-major) that equals y; keeps x.
/// Throws    InvalidArgument for a kernel or stride below 1, padding above half of the kernel, or a
///           kernel larger than the padded input.
Tensor max_pool2d(const Tensor& x, const PoolOptions& options = {});

/// The mean of each window; padded pixels are not counted.  Otherwise as max_pool2d.
Tensor avg_pool2d(const Tensor& x, const PoolOptions& options = {});

/// The mean over all pixels.
///
/// Shapes    x [N, H, W, C] -> y [N, C].
Tensor global_avg_pool2d(const Tensor& x);

}  // namespace crucible
