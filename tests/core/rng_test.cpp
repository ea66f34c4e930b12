#include "core/rng.h"

#include <gmock/gmock.h>

#include <cmath>
#include <vector>

namespace crucible {
namespace {

// Known answers of Philox4x32-10, from the published Random123 test vectors:
// counter words 0..3, key words 0..1 -> result words 0..3.
TEST(Philox, MatchesTheKnownAnswers) {
  EXPECT_EQ(Philox::block(0, 0, 0),
            (Philox::Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox::block(~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}),
            (Philox::Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  // Counter 243f6a88 85a308d3 13198a2e 03707344, key a4093822 299f31d0: digits of pi.
  EXPECT_EQ(Philox::block(0x299f31d0a4093822, 0x0370734413198a2e, 0x85a308d3243f6a88),
            (Philox::Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, WordCountsThroughBlocks) {
  for (uint64_t i = 0; i < 12; ++i) {
    EXPECT_EQ(Philox::word(5, 6, i), Philox::block(5, 6, i / 4)[i % 4]);
  }
}

TEST(Rng, ContinuesFromAState) {
  Rng all(11, 3);
  std::vector<uint32_t> words;
  for (int i = 0; i < 16; ++i) words.push_back(all.next_word());
  Rng later(RngState{11, 3, 2});  // after two blocks
  for (int i = 8; i < 16; ++i) EXPECT_EQ(later.next_word(), words[i]);
}

TEST(Rng, StreamsAndSeedsDiffer) {
  EXPECT_NE(Rng(1, 0).next_word(), Rng(1, 1).next_word());
  EXPECT_NE(Rng(1, 0).next_word(), Rng(2, 0).next_word());
}

TEST(Rng, UniformStaysBelowOneAndFillsTheRange) {
  EXPECT_EQ(to_uniform(0), 0.0f);
  EXPECT_LT(to_uniform(0xffffffff), 1.0f);
  Rng rng(1);
  double sum = 0, squares = 0;
  const int n = 100000;
  for (int i = 0; i < n; ++i) {
    const float u = rng.uniform();
    ASSERT_GE(u, 0.0f);
    ASSERT_LT(u, 1.0f);
    sum += u;
    squares += u * u;
  }
  // Five standard deviations of the mean of n uniform numbers and of their squares.
  EXPECT_NEAR(sum / n, 0.5, 5 * std::sqrt(1.0 / 12 / n));
  EXPECT_NEAR(squares / n, 1.0 / 3, 5 * std::sqrt(4.0 / 45 / n));
}

TEST(Rng, NormalHasMeanZeroAndVarianceOne) {
  Rng rng(2);
  double sum = 0, squares = 0;
  const int n = 100000;
  for (int i = 0; i < n; ++i) {
    const float z = rng.normal();
    ASSERT_TRUE(std::isfinite(z));
    sum += z;
    squares += z * z;
  }
  EXPECT_NEAR(sum / n, 0.0, 5 / std::sqrt(n));
  EXPECT_NEAR(squares / n, 1.0, 5 * std::sqrt(2.0 / n));
}

TEST(Rng, BelowStaysBelowAndReachesEveryValue) {
  Rng rng(3);
  std::vector<int> counts(7);
  for (int i = 0; i < 7000; ++i) ++counts.at(rng.below(7));
  for (const int count : counts) EXPECT_NEAR(count, 1000, 150);
  EXPECT_EQ(rng.below(1), 0);
  for (int i = 0; i < 100; ++i) {
    const int64_t huge = rng.below(INT64_MAX);
    EXPECT_GE(huge, 0);
  }
}

}  // namespace
}  // namespace crucible
