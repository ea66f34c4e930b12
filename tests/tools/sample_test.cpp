#include "tools/train/sample.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/error.h"

namespace crucible::train {
namespace {

TEST(Sample, TemperatureZeroTakesTheLikeliest) {
  const std::vector<float> logits{1.0f, 3.0f, 3.0f, 2.0f};
  for (const double u : {0.0, 0.5, 0.999}) EXPECT_EQ(draw_token(logits, 0.0, 0, u), 1);
}

TEST(Sample, TopOneTakesTheLikeliest) {
  EXPECT_EQ(draw_token(std::vector<float>{1.0f, 3.0f, 2.0f}, 1.0, 1, 0.99), 1);
}

TEST(Sample, TopKLeavesTheOthersOut) {
  const std::vector<float> logits{5.0f, 4.0f, 3.0f, 2.0f, 1.0f};
  for (double u = 0; u < 1; u += 0.01) EXPECT_LT(draw_token(logits, 10.0, 2, u), 2);
}

TEST(Sample, FrequenciesFollowTheSoftmax) {
  const std::vector<float> logits{std::log(1.0f), std::log(2.0f), std::log(5.0f)};
  int counts[3] = {};
  for (int i = 0; i < 800; ++i) ++counts[draw_token(logits, 1.0, 0, (i + 0.5) / 800)];
  EXPECT_EQ(counts[0], 100);
  EXPECT_EQ(counts[1], 200);
  EXPECT_EQ(counts[2], 500);
}

TEST(Sample, TemperatureDividesLogits) {
  const std::vector<float> logits{0.0f, 2.0f};  // at temperature 2 odds are e
  int ones = 0;
  for (int i = 0; i < 10000; ++i) ones += draw_token(logits, 2.0, 0, (i + 0.5) / 10000) == 1;
  EXPECT_NEAR(ones / 10000.0, std::exp(1.0) / (1.0 + std::exp(1.0)), 1e-3);
}

TEST(Sample, NonFiniteLogitsAreNeverDrawn) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> logits{nan, -inf, 1.0f, inf};
  for (const double u : {0.0, 0.5, 0.999}) EXPECT_EQ(draw_token(logits, 1.0, 0, u), 2);
  EXPECT_THROW(draw_token(std::vector<float>{nan, nan}, 1.0, 0, 0.5), InvalidArgument);
}

}  // namespace
}  // namespace crucible::train
