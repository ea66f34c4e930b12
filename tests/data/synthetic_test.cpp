#include "data/synthetic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "tests/data/made_files.h"

namespace crucible::data {
namespace {

using ::testing::HasSubstr;

struct Sample {
  std::vector<float> pixels;
  int64_t label;
};

Sample read(const SyntheticImages& images, int64_t index, uint64_t rng_seed = 0) {
  Sample sample{std::vector<float>(static_cast<size_t>(images.sample().input.numel())), -1};
  Rng rng(rng_seed);
  images.read(index, rng, std::as_writable_bytes(std::span(sample.pixels)),
              std::as_writable_bytes(std::span(&sample.label, 1)));
  return sample;
}

double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum;
}

TEST(Synthetic, ImagesAreRandomButRepeatable) {
  const SyntheticImages images({.count = 1000});
  const Sample first = read(images, 5), again = read(images, 5, 99), other = read(images, 6);
  EXPECT_EQ(first.pixels, again.pixels);
  EXPECT_EQ(first.label, again.label);
  EXPECT_NE(first.pixels, other.pixels);
  EXPECT_NE(first.pixels, read(SyntheticImages({.count = 1000, .split = 1}), 5).pixels);
  double sum = 0, squares = 0;
  int64_t count = 0;
  for (int64_t i = 0; i < 200; ++i) {
    for (const float x : read(images, i).pixels) {
      sum += x;
      squares += x * x;
      ++count;
    }
  }
  const double mean = sum / static_cast<double>(count);
  EXPECT_NEAR(mean, 0, 0.1);
  EXPECT_NEAR(std::sqrt(squares / static_cast<double>(count) - mean * mean), 1, 0.1);
}

// The nearest mean of 200 training images names the class of images of the other split.
TEST(Synthetic, ImagesCanBeLearned) {
  const SyntheticImages train({.count = 200}), test({.count = 100, .split = 1});
  std::map<int64_t, std::pair<std::vector<float>, int>> sums;
  for (int64_t i = 0; i < 200; ++i) {
    const Sample sample = read(train, i);
    auto& [sum, count] = sums[sample.label];
    sum.resize(sample.pixels.size());
    for (size_t k = 0; k < sum.size(); ++k) sum[k] += sample.pixels[k];
    ++count;
  }
  ASSERT_EQ(sums.size(), 10u);
  int right = 0;
  for (int64_t i = 0; i < 100; ++i) {
    const Sample sample = read(test, i);
    double best = INFINITY;
    int64_t guess = -1;
    for (auto& [label, entry] : sums) {
      std::vector<float> mean = entry.first;
      for (float& x : mean) x /= static_cast<float>(entry.second);
      if (const double d = distance(mean, sample.pixels); d < best) {
        best = d;
        guess = label;
      }
    }
    right += guess == sample.label;
  }
  EXPECT_GE(right, 95);
}

TEST(Synthetic, TokensFollowARuleMostOfTheTime) {
  const SyntheticTokens tokens({.count = 100, .seq_len = 64, .vocabulary = 1000});
  int by_rule = 0;
  std::set<std::vector<int64_t>> seen;
  for (int64_t i = 0; i < 100; ++i) {
    std::vector<int64_t> input(64), target(64);
    Rng rng(0);
    tokens.read(i, rng, std::as_writable_bytes(std::span(input)),
                std::as_writable_bytes(std::span(target)));
    for (size_t t = 0; t < 64; ++t) {
      ASSERT_TRUE(target[t] >= 0 && target[t] < 1000);
      if (t + 1 < 64) {
        ASSERT_EQ(input[t + 1], target[t]);
      }
      by_rule += target[t] == (input[t] * 5 + 17) % 1000;
    }
    seen.insert(input);
  }
  EXPECT_EQ(seen.size(), 100u);
  EXPECT_NEAR(by_rule / 6400.0, 0.75, 0.03);
}

TEST(Synthetic, RefusesSizesOutOfRange) {
  EXPECT_THAT(refusal([] { SyntheticImages({.count = 0}); }), HasSubstr("0 images"));
  EXPECT_THAT(refusal([] { SyntheticImages({.height = -1}); }), HasSubstr("-1x32x3"));
  EXPECT_THAT(refusal([] { SyntheticTokens({.vocabulary = 1}); }), HasSubstr("vocabulary of 1"));
}

}  // namespace
}  // namespace crucible::data
