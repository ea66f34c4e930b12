/// Random words of a tensor's elements: element i takes word i % 4 of block offset + i / 4.
#pragma once

#include "core/rng.h"
#include "ops/cpu/level.h"
#include "ops/cpu/level/random.h"
#include "ops/cpu/parallel.h"
#include "ops/cpu/strided.h"

namespace crucible::cpu {

/// Calls f(words, first, count) for blocks of elements that cover [0, n), in parallel; each starts
/// at a multiple of four, and words holds whole groups of four.
template <class F>
void for_words(int64_t n, const RngState& rng, F&& f) {
  const auto philox = at_level(v2::random, v3::random, v4::random).philox;
  parallel_for(
      n, costly_grain,
      [&](int64_t begin, int64_t end) {
        uint32_t words[block_elements];
        for (int64_t i = begin; i < end; i += block_elements) {
          const int64_t count = std::min(block_elements, end - i);
          philox(rng.seed, rng.stream, rng.offset + static_cast<uint64_t>(i / 4), (count + 3) / 4,
                 words);
          f(words, i, count);
        }
      },
      64);
}

}  // namespace crucible::cpu
