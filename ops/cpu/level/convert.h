/// Conversions between 16-bit storage and f32, [n] to [n]; one table a level.
#pragma once

#include <cstdint>

#include "core/half.h"

namespace crucible::cpu {

struct ConvertKernels {
  void (*widen_bf16)(const BFloat16* x, float* y, int64_t n);
  void (*widen_f16)(const Float16* x, float* y, int64_t n);
  void (*narrow_bf16)(const float* x, BFloat16* y, int64_t n);
  void (*narrow_f16)(const float* x, Float16* y, int64_t n);
};

namespace v2 {
extern const ConvertKernels convert;
}
namespace v3 {
extern const ConvertKernels convert;
}
namespace v4 {
extern const ConvertKernels convert;
}

}  // namespace crucible::cpu
