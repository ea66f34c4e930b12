/// Philox words in bulk; one table a level.
#pragma once

#include <cstdint>

namespace crucible::cpu {

struct RandomKernels {
  /// words[4 i + k] = word k of block `block` + i.
  void (*philox)(uint64_t seed, uint64_t stream, uint64_t block, int64_t blocks, uint32_t* words);
};

namespace v2 {
extern const RandomKernels random;
}
namespace v3 {
extern const RandomKernels random;
}
namespace v4 {
extern const RandomKernels random;
}

}  // namespace crucible::cpu
