#include "data/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "tests/data/made_files.h"

namespace crucible::data {
namespace {

using ::testing::HasSubstr;

std::vector<int64_t> identity(int64_t size) {
  std::vector<int64_t> order(static_cast<size_t>(size));
  std::iota(order.begin(), order.end(), int64_t{0});
  return order;
}

TEST(Sampler, OrderIsAPermutation) {
  std::vector<int64_t> order = Sampler(1003, {.batch_size = 8, .seed = 5}).order(2);
  EXPECT_NE(order, identity(1003));
  std::sort(order.begin(), order.end());
  EXPECT_EQ(order, identity(1003));
}

TEST(Sampler, OrderDependsOnSeedAndEpochAlone) {
  const Sampler sampler(100, {.batch_size = 8, .seed = 5});
  EXPECT_EQ(sampler.order(3), Sampler(100, {.batch_size = 32, .seed = 5}).order(3));
  EXPECT_NE(sampler.order(3), sampler.order(4));
  EXPECT_NE(sampler.order(3), Sampler(100, {.batch_size = 8, .seed = 6}).order(3));
}

TEST(Sampler, OrderIsIdentityWithoutShuffle) {
  EXPECT_EQ(Sampler(10, {.batch_size = 3, .shuffle = false}).order(7), identity(10));
}

// Every (position, value) pair is as likely as any other: chi-squared over 8 x 8 cells, 4000
// epochs.
TEST(Sampler, PlacesAreUniform) {
  constexpr int n = 8, epochs = 4000;
  const Sampler sampler(n, {.batch_size = 1, .seed = 1});
  std::vector<int> cells(n * n);
  for (int epoch = 0; epoch < epochs; ++epoch) {
    const auto order = sampler.order(epoch);
    for (int i = 0; i < n; ++i) ++cells[static_cast<size_t>(i * n + order[static_cast<size_t>(i)])];
  }
  double chi_squared = 0;
  for (const int count : cells)
    chi_squared += (count - epochs / n) * (count - epochs / n) * n / double{epochs};
  EXPECT_LT(chi_squared, 85.4);  // 99.9 % point for 49 degrees of freedom
}

TEST(Sampler, KeepsAPartialLastBatchUnlessToldNot) {
  const Sampler kept(10, {.batch_size = 4, .shuffle = false});
  const auto order = kept.order(0);
  EXPECT_EQ(kept.batches(), 3);
  EXPECT_EQ(kept.batch(order, 2).size(), 2u);
  EXPECT_EQ(Sampler(10, {.batch_size = 4, .drop_last = true}).batches(), 2);
  EXPECT_EQ(Sampler(8, {.batch_size = 4}).batches(), 2);
}

TEST(Sampler, RanksShareEverySampleOnce) {
  for (const int64_t size : {1003, 3, 64}) {
    for (const int64_t world_size : {1, 2, 3, 4}) {
      std::multiset<int64_t> seen;
      std::set<int64_t> batch_counts;
      for (int64_t rank = 0; rank < world_size; ++rank) {
        const Sampler sampler(size,
                              {.batch_size = 8, .seed = 3, .rank = rank, .world_size = world_size});
        const auto order = sampler.order(1);
        batch_counts.insert(sampler.batches());
        for (int64_t b = 0; b < sampler.batches(); ++b) {
          for (const int64_t id : sampler.batch(order, b)) seen.insert(id);
        }
      }
      EXPECT_EQ(batch_counts.size(), 1u);
      const auto all = identity(size);
      EXPECT_EQ(std::vector<int64_t>(seen.begin(), seen.end()), all)
          << size << " on " << world_size;
    }
  }
}

TEST(Sampler, DropLastLeavesFullBatchesOnEveryRank) {
  for (int64_t rank = 0; rank < 3; ++rank) {
    const Sampler sampler(100, {.batch_size = 8, .drop_last = true, .rank = rank, .world_size = 3});
    const auto order = sampler.order(0);
    EXPECT_EQ(sampler.batches(), 4);
    for (int64_t b = 0; b < 4; ++b) EXPECT_EQ(sampler.batch(order, b).size(), 8u);
  }
}

TEST(Sampler, RefusesOptionsOutOfRange) {
  const auto why = [](int64_t size, const SamplerOptions& options) {
    return refusal([&] { Sampler(size, options); });
  };
  EXPECT_THAT(why(0, {}), HasSubstr("0 samples"));
  EXPECT_THAT(why(10, {.batch_size = 0}), HasSubstr("batch size 0"));
  EXPECT_THAT(why(10, {.batch_size = -3}), HasSubstr("batch size -3"));
  EXPECT_THAT(why(10, {.rank = 2, .world_size = 2}), HasSubstr("rank 2 of 2"));
  EXPECT_THAT(why(10, {.batch_size = 11, .drop_last = true}), HasSubstr("do not fill"));
}

}  // namespace
}  // namespace crucible::data
