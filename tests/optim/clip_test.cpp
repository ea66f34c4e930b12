#include "optim/clip.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/error.h"
#include "ops/elementwise.h"
#include "ops/reduce.h"

namespace crucible::optim {
namespace {

// A set whose gradient is [3, 4] over two parameters.
struct Fixture {
  Fixture() {
    a = set.add("a", {1}, Init::constant(0.0));
    b = set.add("b", {1}, Init::constant(0.0), {.decay = false});
    (sum(a * 3.0) + sum(b * 4.0)).backward();
  }
  ParameterSet set;
  Tensor a, b;
};

TEST(Clip, ScalesOnlyWhenTheNormIsAboveTheLimit) {
  Fixture f;
  const ClipScale tight = clip_scale(f.set, 1.0);
  EXPECT_DOUBLE_EQ(tight.norm.item<double>(), 5.0);
  EXPECT_NEAR(tight.scale.item<float>(), 0.2, 1e-6);
  EXPECT_EQ(clip_scale(f.set, 10.0).scale.item<float>(), 1.0f);
}

TEST(Clip, CountsTheMultiplierInNormAndScale) {
  Fixture f;
  const ClipScale c = clip_scale(f.set, 1.0, 0.5);
  EXPECT_DOUBLE_EQ(c.norm.item<double>(), 2.5);
  EXPECT_NEAR(c.scale.item<float>(), 0.5 * 0.4, 1e-6);
}

TEST(Clip, OnlyMeasuresWithAnInfiniteLimit) {
  Fixture f;
  const ClipScale c = clip_scale(f.set, std::numeric_limits<double>::infinity());
  EXPECT_EQ(c.scale.item<float>(), 1.0f);
  EXPECT_THROW(clip_scale(f.set, 0.0), InvalidArgument);
}

TEST(Clip, NamesTheFirstNonFiniteGradient) {
  Fixture f;
  EXPECT_EQ(first_non_finite_gradient(f.set), "");
  f.b.zero_grad();
  sum(f.b * std::numeric_limits<double>::infinity()).backward();
  EXPECT_EQ(first_non_finite_gradient(f.set), "b");
  EXPECT_FALSE(std::isfinite(clip_scale(f.set, 1.0).norm.item<double>()));
}

}  // namespace
}  // namespace crucible::optim
