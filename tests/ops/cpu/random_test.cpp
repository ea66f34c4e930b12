#include <gtest/gtest.h>
#include <omp.h>

#include <array>
#include <cmath>
#include <vector>

#include "core/backend.h"
#include "core/rng.h"
#include "ops/cpu/level/random.h"
#include "tests/ops/cpu/levels.h"

namespace crucible {
namespace {

const cpu::RandomKernels& kernels_of(cpu::Level level) {
  return level == cpu::Level::v4   ? cpu::v4::random
         : level == cpu::Level::v3 ? cpu::v3::random
                                   : cpu::v2::random;
}

class Philox4x32 : public testing::TestWithParam<cpu::Level> {};

// Known answers published with Salmon et al. 2011 (Random123, kat_vectors, philox4x32 10 rounds).
TEST_P(Philox4x32, GivesThePublishedWords) {
  struct Answer {
    uint64_t seed, stream, block;
    std::array<uint32_t, 4> words;
  };
  const Answer answers[] = {
      {0, 0, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {~0ull, ~0ull, ~0ull, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {0x299f31d0a4093822,
       0x0370734413198a2e,
       0x85a308d3243f6a88,
       {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
  };
  for (const Answer& a : answers) {
    std::array<uint32_t, 4> words;
    kernels_of(GetParam()).philox(a.seed, a.stream, a.block, 1, words.data());
    EXPECT_EQ(words, a.words);
    EXPECT_EQ(Philox::block(a.seed, a.stream, a.block), a.words);
  }
}

TEST_P(Philox4x32, BulkEqualsBlockByBlock) {
  // The counter carries into its upper half on the way.
  const uint64_t first = 0xfffffff0u;
  std::vector<uint32_t> words(4 * 77);
  kernels_of(GetParam()).philox(3, 9, first, 77, words.data());
  for (uint64_t i = 0; i < words.size(); ++i) {
    ASSERT_EQ(words[i], Philox::block(3, 9, first + i / 4)[i % 4]) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, Philox4x32, testing::ValuesIn(cpu::levels_here()),
                         cpu::level_name);

TEST(CpuRandom, DoesNotDependOnThreads) {
  const int threads = omp_get_max_threads();
  for (const auto kind : {prim::Random::Kind::uniform, prim::Random::Kind::normal}) {
    std::vector<float> first;
    for (const int count : {1, 2, 3}) {
      omp_set_num_threads(count);
      const Tensor y = Tensor::empty({30011}, DType::f32);
      run(prim::Random{.kind = kind, .a = 0.0, .b = 1.0, .rng = {1, 2, 3}, .y = y});
      if (first.empty()) first = y.to_vector<float>();
      EXPECT_EQ(y.to_vector<float>(), first);
    }
  }
  omp_set_num_threads(threads);
}

}  // namespace
}  // namespace crucible
