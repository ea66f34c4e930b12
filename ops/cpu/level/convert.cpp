#include "ops/cpu/level/convert.h"

#include "ops/cpu/level/vector.h"

namespace crucible::cpu::CRUCIBLE_LEVEL {
namespace {

template <class From, class To>
void convert_slice(const From* x, To* y, int64_t n) {
  int64_t i = 0;
  for (; i + lanes<float> <= n; i += lanes<float>) store(y + i, load(x + i));
  for (; i < n; ++i) y[i] = To(static_cast<float>(x[i]));
}

}  // namespace

extern const ConvertKernels convert{
    convert_slice<BFloat16, float>,
    convert_slice<Float16, float>,
    convert_slice<float, BFloat16>,
    convert_slice<float, Float16>,
};

}  // namespace crucible::cpu::CRUCIBLE_LEVEL
