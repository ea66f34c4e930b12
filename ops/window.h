/// Private: checks and sizes of sliding windows, for convolution and pooling.
#pragma once

#include <array>

#include "core/autograd.h"
#include "core/primitives.h"

namespace crucible {

/// Output height and width of `window` over x [N, H, W, C].
/// Throws    InvalidArgument naming the op for a stride or dilation below 1, a negative padding, an
///           empty kernel, or a kernel larger than the padded input.
std::array<int64_t, 2> window_output(const OpInfo& op, const Window& window, const Shape& x);

}  // namespace crucible
