// Philox4x32-10 as in core/rng.h, the rounds of a group of blocks side by side in vectors.
#include "ops/cpu/level/random.h"

namespace crucible::cpu::CRUCIBLE_LEVEL {
namespace {

constexpr int group = 16;

void philox_group(uint64_t seed, uint64_t stream, uint64_t block, uint32_t (&c)[4][group]) {
  for (int i = 0; i < group; ++i) {
    c[0][i] = static_cast<uint32_t>(block + i);
    c[1][i] = static_cast<uint32_t>((block + i) >> 32);
    c[2][i] = static_cast<uint32_t>(stream);
    c[3][i] = static_cast<uint32_t>(stream >> 32);
  }
  uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
#pragma omp simd
    for (int i = 0; i < group; ++i) {
      const uint64_t p0 = uint64_t{0xD2511F53u} * c[0][i];
      const uint64_t p1 = uint64_t{0xCD9E8D57u} * c[2][i];
      c[0][i] = static_cast<uint32_t>(p1 >> 32) ^ c[1][i] ^ k0;
      c[2][i] = static_cast<uint32_t>(p0 >> 32) ^ c[3][i] ^ k1;
      c[1][i] = static_cast<uint32_t>(p1);
      c[3][i] = static_cast<uint32_t>(p0);
    }
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
}

void philox(uint64_t seed, uint64_t stream, uint64_t block, int64_t blocks, uint32_t* words) {
  uint32_t c[4][group];
  for (int64_t first = 0; first < blocks; first += group, words += 4 * group) {
    philox_group(seed, stream, block + static_cast<uint64_t>(first), c);
    const int64_t count = blocks - first < group ? blocks - first : group;
    for (int64_t i = 0; i < count; ++i) {
      for (int k = 0; k < 4; ++k) words[4 * i + k] = c[k][i];
    }
  }
}

}  // namespace

extern const RandomKernels random{philox};

}  // namespace crucible::cpu::CRUCIBLE_LEVEL
