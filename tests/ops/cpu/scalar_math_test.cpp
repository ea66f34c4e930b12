// Errors of the float polynomials against double precision, over every scale, at every level.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <vector>

#include "core/scalar_math.h"
#include "ops/cpu/level/elementwise.h"
#include "tests/ops/cpu/levels.h"

namespace crucible::cpu {
namespace {

const ElementwiseKernels& kernels_of(Level level) {
  return level == Level::v4   ? v4::elementwise
         : level == Level::v3 ? v3::elementwise
                              : v2::elementwise;
}

// Every 997th float of the magnitudes [low, high], both signs.
std::vector<float> sweep(float low, float high) {
  std::vector<float> x;
  uint32_t first, last;
  std::memcpy(&first, &low, 4);
  std::memcpy(&last, &high, 4);
  for (uint32_t u = first; u <= last; u += 997) {
    float v;
    std::memcpy(&v, &u, 4);
    x.push_back(v);
    x.push_back(-v);
  }
  return x;
}

double ulp_of(double value) {
  const float f = static_cast<float>(std::fabs(value));
  return static_cast<double>(std::nextafter(f, INFINITY)) - f;
}

struct Worst {
  double ulps = 0.0, absolute = 0.0;
  float at_ulps = 0.0f, at_absolute = 0.0f;
};

Worst worst(Level level, UnaryOp op, const std::vector<float>& x,
            const std::function<double(double)>& exact) {
  std::vector<float> y(x.size());
  kernels_of(level).f32.unary[static_cast<int>(op)](x.data(), y.data(),
                                                    static_cast<int64_t>(x.size()), 0.0f, 0.0f);
  Worst w;
  for (size_t i = 0; i < x.size(); ++i) {
    const double e = exact(x[i]), error = std::fabs(y[i] - e);
    const double ulps = error / ulp_of(e);
    if (!(ulps <= w.ulps)) w.ulps = ulps, w.at_ulps = x[i];
    if (!(error <= w.absolute)) w.absolute = error, w.at_absolute = x[i];
  }
  return w;
}

class ScalarMath : public testing::TestWithParam<Level> {};

TEST_P(ScalarMath, ExpIsWithinOneAndAHalfUlps) {
  const Worst w =
      worst(GetParam(), UnaryOp::exp, sweep(1e-10f, 87.29f), [](double x) { return std::exp(x); });
  EXPECT_LE(w.ulps, 1.5) << "at " << w.at_ulps;
}

TEST_P(ScalarMath, ExpEnds) {
  const std::vector<float> x = {88.72f, 88.8f,     1e30f, INFINITY, -87.31f,
                                -1e30f, -INFINITY, NAN,   0.0f,     -0.0f};
  std::vector<float> y(x.size());
  kernels_of(GetParam()).f32.unary[static_cast<int>(UnaryOp::exp)](x.data(), y.data(), 10, 0, 0);
  EXPECT_TRUE(std::isfinite(y[0]));
  EXPECT_NEAR(y[0] / std::exp(88.72f), 1.0f, 1e-6f);
  for (int i = 1; i < 4; ++i) EXPECT_EQ(y[i], INFINITY) << x[i];
  for (int i = 4; i < 7; ++i) EXPECT_EQ(y[i], 0.0f) << x[i];
  EXPECT_TRUE(std::isnan(y[7]));
  EXPECT_EQ(y[8], 1.0f);
  EXPECT_EQ(y[9], 1.0f);
}

TEST_P(ScalarMath, TanhIsWithinFourUlps) {
  const Worst w = worst(GetParam(), UnaryOp::tanh, sweep(1e-30f, 100.0f),
                        [](double x) { return std::tanh(x); });
  EXPECT_LE(w.ulps, 4.0) << "at " << w.at_ulps;
}

TEST_P(ScalarMath, SigmoidIsWithinFourUlps) {
  const Worst w = worst(GetParam(), UnaryOp::sigmoid, sweep(1e-30f, 87.0f),
                        [](double x) { return 1.0 / (1.0 + std::exp(-x)); });
  EXPECT_LE(w.ulps, 4.0) << "at " << w.at_ulps;
}

TEST_P(ScalarMath, LogIsWithinTwoUlps) {
  std::vector<float> x;
  for (const float v : sweep(1e-38f, 1e38f)) {
    if (v > 0) x.push_back(v);
  }
  const Worst w = worst(GetParam(), UnaryOp::log, x, [](double v) { return std::log(v); });
  EXPECT_LE(w.ulps, 2.0) << "at " << w.at_ulps;
}

// erf is a host function here: the loops use it inside GELU.
TEST(ScalarMathHost, ErfIsWithinItsBound) {
  double ulps = 0.0, absolute = 0.0;
  for (const float x : sweep(1e-30f, 10.0f)) {
    const double e = std::erf(static_cast<double>(x)), error = std::fabs(scalar::erf(x) - e);
    absolute = std::max(absolute, error);
    if (std::fabs(x) < 0.92f) ulps = std::max(ulps, error / ulp_of(e));
  }
  EXPECT_LE(absolute, 1e-7);
  EXPECT_LE(ulps, 3.0);
}

TEST_P(ScalarMath, GeluStaysWithinErfsBound) {
  const Worst w = worst(GetParam(), UnaryOp::gelu, sweep(1e-30f, 10.0f),
                        [](double x) { return 0.5 * x * std::erfc(-x * 0.70710678118654752440); });
  EXPECT_LE(w.absolute, 5e-7) << "at " << w.at_absolute;
}

INSTANTIATE_TEST_SUITE_P(Levels, ScalarMath, testing::ValuesIn(levels_here()), level_name);

}  // namespace
}  // namespace crucible::cpu
