/// 2-d convolution over NHWC images.
#pragma once

#include <array>

#include "core/tensor.h"

namespace crucible {

/// [height, width]; one number sets both.
struct Size2 {
  constexpr Size2(int64_t both) : height(both), width(both) {}  // NOLINT: implicit on purpose
  constexpr Size2(int64_t h, int64_t w) : height(h), width(w) {}
  int64_t height, width;
};

struct ConvOptions {
  Size2 stride = 1;
  Size2 padding = 0;  ///< Zeros on both sides.
  Size2 dilation = 1;
  int64_t groups = 1;
};

/// Cross-correlation, as every framework calls convolution.
///
/// Shapes    x [N, H, W, C], weight [O, Kh, Kw, C / groups], bias [O] or undefined -> y [N, Ho, Wo,
/// O],
///           Ho = floor((H + 2 padding - dilation (Kh - 1) - 1) / stride) + 1, Wo likewise.
/// Dtypes    f16, bf16, f32, f64, equal; sums in f32 (f64 for f64).
/// Gradient  For x, weight and bias; pixels never read get 0.  Keeps x and weight.
/// Throws    InvalidArgument for stride or dilation below 1, padding below 0, channels that do not
///           match groups, or a kernel larger than the padded input.
Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias,
              const ConvOptions& options = {});

}  // namespace crucible
