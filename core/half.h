/// Values of the two 16-bit floating types: storage only, arithmetic happens in float.
///
/// Conversions round to nearest even; NaN stays NaN.
/// Source    IEEE 754-2019 binary16; bfloat16 is the upper half of binary32.
#pragma once

#include <bit>
#include <cstdint>

namespace crucible {

/// bfloat16: 1 sign, 8 exponent, 7 fraction bits.
struct BFloat16 {
  uint16_t bits = 0;

  BFloat16() = default;
  [[gnu::always_inline]] BFloat16(float value) {  // NOLINT: implicit on purpose, like float
    const uint32_t u = std::bit_cast<uint32_t>(value);
    const uint32_t rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
    const uint32_t nan = (u >> 16) | 0x40u;
    bits = static_cast<uint16_t>((u & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
  }
  [[gnu::always_inline]] operator float() const {  // NOLINT
    return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  }
};

/// IEEE binary16: 1 sign, 5 exponent, 10 fraction bits.  Overflow becomes infinity.
struct Float16 {
  uint16_t bits = 0;

  Float16() = default;
  [[gnu::always_inline]] Float16(float value) {  // NOLINT
    const uint32_t u = std::bit_cast<uint32_t>(value);
    const uint32_t sign = (u >> 16) & 0x8000u;
    const uint32_t magnitude = u & 0x7fffffffu;
    uint32_t result;
    if (magnitude > 0x7f800000u) {
      result = 0x7e00u | ((magnitude >> 13) & 0x3ffu);
    } else if (magnitude >= 0x47800000u) {  // 2^16 and above; [65520, 65536) rounds up below
      result = 0x7c00u;
    } else if (magnitude < 0x38800000u) {  // below 2^-14: adding 2^-1 * 2^-23 aligns the fraction
      const float aligned = std::bit_cast<float>(magnitude) + 0.5f;
      result = std::bit_cast<uint32_t>(aligned) - 0x3f000000u;
    } else {
      const uint32_t odd = (magnitude >> 13) & 1u;
      result = (magnitude - 0x38000000u + 0xfffu + odd) >> 13;
    }
    bits = static_cast<uint16_t>(sign | result);
  }
  [[gnu::always_inline]] operator float() const {  // NOLINT
    const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
    const uint32_t magnitude = bits & 0x7fffu;
    uint32_t result;
    if (magnitude >= 0x7c00u) {
      result = 0x7f800000u | ((magnitude & 0x3ffu) << 13);
    } else if (magnitude < 0x400u) {  // zero and subnormals: magnitude * 2^-24, exact
      result = std::bit_cast<uint32_t>(static_cast<float>(magnitude) * 0x1p-24f);
    } else {
      result = (magnitude << 13) + 0x38000000u;
    }
    return std::bit_cast<float>(sign | result);
  }
};

}  // namespace crucible
