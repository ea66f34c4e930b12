/// FLOPs and bytes of every primitive, by formula.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/primitives.h"

namespace crucible {

/// What a primitive needs, whatever the kernel.
struct Cost {
  /// Multiplications and additions, each counted as one.  Products and convolutions count every
  /// tap, padded ones too; causal attention counts the visible half; a transcendental counts as 8.
  double flops = 0.0;
  int64_t read_bytes = 0;     ///< Each input once.
  int64_t written_bytes = 0;  ///< Each output once.
  /// Whether the FLOPs are matrix work (products, convolutions, attention), which is what
  /// utilisation is measured by.
  bool matrix = false;
};

Cost cost(const Primitive& primitive);

/// "matmul", "batch_norm_backward", …
std::string_view name_of(const Primitive& primitive);

}  // namespace crucible
