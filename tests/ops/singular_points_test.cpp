// Where derivatives are undefined, sums empty or logits infinite: one documented answer, on every
// device.
#include <cmath>
#include <cstdlib>
#include <limits>

#include "ops/attention.h"
#include "ops/elementwise.h"
#include "ops/loss.h"
#include "ops/reduce.h"
#include "ops/softmax.h"
#include "ops/view.h"
#include "tests/ops/on_each_device.h"

namespace crucible::testing {
namespace {

using ::testing::HasSubstr;
using Values = std::vector<double>;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

class SingularPoints : public OnEachDevice {};
CRUCIBLE_ON_EACH_DEVICE(SingularPoints);

TEST_P(SingularPoints, ReluKeepsNaNAndHasNoSlopeAtZero) {
  const Tensor x = leaf({nan, -1, -0.0, 0, 1});
  const Tensor y = relu(x);
  EXPECT_THAT(host_values(y), AreExactly(Values{nan, 0, 0, 0, 1}));
  y.backward(row({1, 1, 1, 1, 1}));
  EXPECT_THAT(host_values(x.grad()), AreExactly(Values{nan, 0, 0, 0, 1}));
}

TEST_P(SingularPoints, ReluOfEveryFloatingDtypeKeepsNaN) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    Maker m(device(), dtype, 0);
    const Tensor x = m.values({5}, {nan, -1, -0.0, 0, 1}).set_requires_grad();
    const Tensor y = relu(x);
    EXPECT_THAT(host_values(y), AreExactly(Values{nan, 0, 0, 0, 1})) << name_of(dtype);
    y.backward(m.values({5}, {1, 1, 1, 1, 1}));
    EXPECT_THAT(host_values(x.grad()), AreExactly(Values{nan, 0, 0, 0, 1})) << name_of(dtype);
  }
}

TEST_P(SingularPoints, SquaredDifferenceOfEqualsHasGradientZero) {
  const Tensor a = leaf({2, -3, 0}), b = leaf({2, -3, 0});
  sum(pow(sub(a, b), 2.0)).backward();
  EXPECT_THAT(host_values(a.grad()), AreExactly(Values{0, 0, 0}));
  EXPECT_THAT(host_values(b.grad()), AreExactly(Values{0, 0, 0}));
}

TEST_P(SingularPoints, ProductWithOneZero) {
  const Tensor x = leaf({0, 2, 3});
  prod(x).backward();
  EXPECT_THAT(host_values(x.grad()), AreExactly(Values{6, 0, 0}));
}

TEST_P(SingularPoints, ProductWithTwoZeros) {
  const Tensor x = leaf({0, 0, 3});
  prod(x).backward();
  EXPECT_THAT(host_values(x.grad()), AreExactly(Values{0, 0, 0}));
}

TEST_P(SingularPoints, NormOfTheZeroVectorHasGradientZero) {
  const Tensor x = leaf({0, 0, 0});
  const Tensor y = norm(x);
  EXPECT_EQ(host_values(y)[0], 0.0);
  y.backward();
  EXPECT_THAT(host_values(x.grad()), AreExactly(Values{0, 0, 0}));
}

TEST_P(SingularPoints, SoftmaxOfHugeLogits) {
  EXPECT_THAT(host_values(softmax(row({1000, 1000}))),
              ::testing::Each(::testing::DoubleNear(0.5, 1e-12)));
}

TEST_P(SingularPoints, SoftmaxWithPlusInfinityIsNaN) {
  EXPECT_THAT(host_values(softmax(row({0, infinity}))), AreExactly(Values{nan, nan}));
}

TEST_P(SingularPoints, LogSoftmaxOfFarLogitsIsFinite) {
  const Values y = host_values(log_softmax(row({1e4, -1e4})));
  EXPECT_NEAR(y[0], 0.0, 1e-11);
  EXPECT_NEAR(y[1], -2e4, 1e-11);
}

TEST_P(SingularPoints, SoftmaxOfARowOfMinusInfinityIsZeroWithGradientZero) {
  const Tensor x = leaf({-infinity, -infinity});
  const Tensor y = softmax(x);
  EXPECT_THAT(host_values(y), AreExactly(Values{0, 0}));
  y.backward(row({1, 2}));
  EXPECT_THAT(host_values(x.grad()), AreExactly(Values{0, 0}));
}

TEST_P(SingularPoints, LogsumexpOfMinusInfinityHasGradientZero) {
  const Tensor x = leaf({-infinity, -infinity});
  const Tensor y = logsumexp(x);
  EXPECT_EQ(host_values(y)[0], -infinity);
  y.backward();
  EXPECT_THAT(host_values(x.grad()), AreExactly(Values{0, 0}));
}

TEST_P(SingularPoints, AttentionWithAHiddenRowLeavesTheOthersAlone) {
  constexpr int64_t rows = 4, columns = 5, heads = 2, depth = 3;
  Maker m(device(), DType::f64, 11);
  const Tensor q = m.normal({1, rows, heads, depth}).set_requires_grad();
  const Tensor k = m.normal({1, columns, heads, depth}).set_requires_grad();
  const Tensor v = m.normal({1, columns, heads, depth}).set_requires_grad();
  Values visible(rows * columns, 1.0);
  std::fill_n(visible.begin(), columns, 0.0);
  const Tensor mask = m.values_as(DType::boolean, {rows, columns}, visible);
  const Tensor o = attention(q, k, v, {.mask = mask});
  const Tensor upstream = m.normal({1, rows, heads, depth});
  o.backward(upstream);

  // The same without row 0.
  const Tensor q1 = slice(q.detach(), 1, 1, rows).set_requires_grad();
  const Tensor k1 = k.detach().set_requires_grad(), v1 = v.detach().set_requires_grad();
  const Tensor o1 = attention(q1, k1, v1);
  o1.backward(contiguous(slice(upstream, 1, 1, rows)));

  const Values all = host_values(o), rest = host_values(o1);
  for (int64_t i = 0; i < heads * depth; ++i) EXPECT_EQ(all[i], 0.0);
  EXPECT_THAT(Values(all.begin() + heads * depth, all.end()),
              ::testing::Pointwise(::testing::DoubleNear(1e-12), rest));
  const Values dq = host_values(q.grad());
  for (int64_t i = 0; i < heads * depth; ++i) EXPECT_EQ(dq[i], 0.0);
  EXPECT_THAT(Values(dq.begin() + heads * depth, dq.end()),
              ::testing::Pointwise(::testing::DoubleNear(1e-12), host_values(q1.grad())));
  EXPECT_THAT(host_values(k.grad()),
              ::testing::Pointwise(::testing::DoubleNear(1e-12), host_values(k1.grad())));
  EXPECT_THAT(host_values(v.grad()),
              ::testing::Pointwise(::testing::DoubleNear(1e-12), host_values(v1.grad())));
}

// ---- Cross-entropy: ignored and invalid labels --------------------------------------------------

class IgnoredLabels : public OnEachDevice {
 protected:
  Tensor logits() const {
    return Maker(device(), DType::f64, 5).normal({4, 5}).set_requires_grad();
  }
};
CRUCIBLE_ON_EACH_DEVICE(IgnoredLabels);

TEST_P(IgnoredLabels, AllGiveLossZeroAndGradientZero) {
  const Tensor x = logits();
  const Tensor loss = cross_entropy(x, integers({-100, -100, -100, -100}));
  EXPECT_EQ(host_values(loss)[0], 0.0);
  loss.backward();
  EXPECT_THAT(host_values(x.grad()), AreExactly(Values(20, 0.0)));
}

TEST_P(IgnoredLabels, SomeAreLeftOutOfTheMean) {
  const Tensor x = logits();
  const Tensor loss = cross_entropy(x, integers({2, -100, -100, 1}));
  const Values log_p = host_values(log_softmax(x.detach()));
  EXPECT_NEAR(host_values(loss)[0], -(log_p[2] + log_p[15 + 1]) / 2, 1e-12);
  loss.backward();
  const Values dx = host_values(x.grad());
  for (int i = 5; i < 15; ++i) EXPECT_EQ(dx[i], 0.0);
  for (int i = 0; i < 5; ++i) {
    EXPECT_NEAR(dx[i], (std::exp(log_p[i]) - (i == 2)) / 2, 1e-12);
    EXPECT_NEAR(dx[15 + i], (std::exp(log_p[15 + i]) - (i == 1)) / 2, 1e-12);
  }
}

TEST_P(IgnoredLabels, OthersOutsideTheRangeAreRefusedWithPositionAndValue) {
  EXPECT_THAT(error_of([&] {
                cross_entropy(logits(), integers({0, 1, -4, 2}));
              }),
              HasSubstr("cross_entropy: label -4 at row 2 is outside [0, 5)"));
  EXPECT_THAT(error_of([&] {
                cross_entropy(logits(), integers({0, 1, 2, 5}));
              }),
              HasSubstr("cross_entropy: label 5 at row 3 is outside [0, 5)"));
}

TEST_P(IgnoredLabels, ARefusedBatchLeavesTheNextOneAlone) {
  const Tensor x = logits();
  EXPECT_THROW(cross_entropy(x, integers({0, 1, 9, 2})), InvalidArgument);
  cross_entropy(x, integers({0, 1, 2, 3})).backward();
  for (const double g : host_values(x.grad())) EXPECT_TRUE(std::isfinite(g));
}

// In a process of its own: the warning is given once in each.
MATCHER(WarnsOnce, "") {
  const std::string text = arg, warning = "cross_entropy: all 4 labels are the ignore_index -100";
  const size_t at = text.find(warning);
  return at != std::string::npos && text.find(warning, at + 1) == std::string::npos;
}

TEST(IgnoredLabelsDeathTest, AllWarnOnce) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        Maker m(Device::cpu(), DType::f64, 5);
        for (int i = 0; i < 3; ++i) {
          cross_entropy(m.normal({4, 5}), m.labels({-100, -100, -100, -100}));
        }
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), WarnsOnce());
}

}  // namespace
}  // namespace crucible::testing
