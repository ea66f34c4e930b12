#include "optim/schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "core/error.h"

namespace crucible::optim {
namespace {

TEST(Schedule, WarmUpIsLinearAndReachesLrAtItsLastStep) {
  const Schedule s{.lr = 1.0, .warmup_steps = 4, .total_steps = 10};
  EXPECT_DOUBLE_EQ(s.at(0), 0.25);
  EXPECT_DOUBLE_EQ(s.at(3), 1.0);
  EXPECT_DOUBLE_EQ(s.at(4), 1.0);
}

TEST(Schedule, CosineGoesFromLrToMinLr) {
  const Schedule s{.kind = Schedule::Kind::cosine,
                   .lr = 1.0,
                   .min_lr = 0.1,
                   .warmup_steps = 2,
                   .total_steps = 12};
  EXPECT_DOUBLE_EQ(s.at(2), 1.0);
  EXPECT_NEAR(s.at(7), 0.55, 1e-12);
  EXPECT_NEAR(s.at(4), 0.1 + 0.45 * (1 + std::cos(std::numbers::pi * 0.2)), 1e-12);
  EXPECT_DOUBLE_EQ(s.at(12), 0.1);
  EXPECT_DOUBLE_EQ(s.at(1000), 0.1);
}

TEST(Schedule, StepDecaysEveryStepSizeUpdatesAfterWarmUp) {
  const Schedule s{.kind = Schedule::Kind::step,
                   .lr = 1.0,
                   .warmup_steps = 1,
                   .total_steps = 100,
                   .step_size = 3,
                   .gamma = 0.5};
  EXPECT_DOUBLE_EQ(s.at(3), 1.0);
  EXPECT_DOUBLE_EQ(s.at(4), 0.5);
  EXPECT_DOUBLE_EQ(s.at(7), 0.25);
}

TEST(Schedule, LinearIsHalfwayInTheMiddle) {
  const Schedule s{.kind = Schedule::Kind::linear, .lr = 2.0, .total_steps = 10};
  EXPECT_DOUBLE_EQ(s.at(5), 1.0);
  EXPECT_DOUBLE_EQ(s.at(10), 0.0);
}

TEST(Schedule, WarmUpLongerThanTheRunIsWarmUpThroughout) {
  const Schedule s{
      .kind = Schedule::Kind::cosine, .lr = 1.0, .warmup_steps = 20, .total_steps = 10};
  EXPECT_DOUBLE_EQ(s.at(9), 0.5);
}

TEST(Schedule, ThrowsNamingTheFieldThatIsOutOfRange) {
  EXPECT_THROW((Schedule{.lr = NAN}).validate(), InvalidArgument);
  EXPECT_THROW((Schedule{.lr = 0.1, .min_lr = 0.2}).validate(), InvalidArgument);
  EXPECT_THROW((Schedule{.total_steps = 0}).validate(), InvalidArgument);
  EXPECT_THROW(parse_schedule("cosin"), InvalidArgument);
  EXPECT_EQ(parse_schedule("cosine"), Schedule::Kind::cosine);
}

}  // namespace
}  // namespace crucible::optim
