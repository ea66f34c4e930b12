#include "ops/window.h"

#include "core/check.h"

namespace crucible {

std::array<int64_t, 2> window_output(const OpInfo& op, const Window& window, const Shape& x) {
  constexpr int64_t limit = 1 << 30;  // keeps every sum below within 64 bits
  std::array<int64_t, 2> output{};
  for (int i = 0; i < 2; ++i) {
    const int64_t size = x[1 + i], kernel = window.kernel[i], stride = window.stride[i];
    const int64_t padding = window.padding[i], dilation = window.dilation[i];
    check(kernel >= 1 && kernel < limit, "{}: kernel size {} is outside [1, 2^30).", op.name,
          kernel);
    check(stride >= 1 && stride < limit, "{}: stride {} is outside [1, 2^30).", op.name, stride);
    check(dilation >= 1 && dilation < limit, "{}: dilation {} is outside [1, 2^30).", op.name,
          dilation);
    check(padding >= 0 && padding < limit, "{}: padding {} is outside [0, 2^30).", op.name,
          padding);
    const int64_t span = dilation * (kernel - 1) + 1, padded = size + 2 * padding;
    check(span <= padded,
          "{}: the kernel spans {} pixels, the padded input has {}: kernel {}, dilation {}, input "
          "{}, "
          "padding {}; use a smaller kernel or more padding.",
          op.name, span, padded, kernel, dilation, size, padding);
    output[i] = (padded - span) / stride + 1;
  }
  return output;
}

}  // namespace crucible
