#include "optim/grad_scaler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "core/error.h"

namespace crucible::optim {
namespace {

TEST(GradScaler, HalvesAfterAnOverflow) {
  GradScaler scaler({.initial_scale = 1024});
  scaler.update(false);
  EXPECT_EQ(scaler.scale(), 512);
  EXPECT_EQ(scaler.state().skipped, 1);
}

TEST(GradScaler, DoublesAfterGoodUpdatesInARow) {
  GradScaler scaler({.initial_scale = 8, .growth_interval = 3});
  for (int i = 0; i < 2; ++i) scaler.update(true);
  scaler.update(false);  // starts the count anew
  EXPECT_EQ(scaler.scale(), 4);
  for (int i = 0; i < 2; ++i) scaler.update(true);
  EXPECT_EQ(scaler.scale(), 4);
  scaler.update(true);
  EXPECT_EQ(scaler.scale(), 8);
}

TEST(GradScaler, StaysBetweenFloorAndCeiling) {
  GradScaler scaler({.initial_scale = 4, .growth_interval = 1, .floor = 2, .ceiling = 8});
  for (int i = 0; i < 5; ++i) scaler.update(false);
  EXPECT_EQ(scaler.scale(), 2);
  for (int i = 0; i < 5; ++i) scaler.update(true);
  EXPECT_EQ(scaler.scale(), 8);
}

TEST(GradScaler, IsExhaustedByConsecutiveSkipsOnly) {
  GradScaler scaler({.max_consecutive_skips = 3});
  for (const bool finite : {false, false, true, false, false}) scaler.update(finite);
  EXPECT_FALSE(scaler.exhausted());
  scaler.update(false);
  EXPECT_TRUE(scaler.exhausted());
  EXPECT_EQ(scaler.state().skipped, 5);
}

TEST(GradScaler, GoesOnFromARestoredState) {
  GradScaler a({.initial_scale = 16, .growth_interval = 4}), b({.growth_interval = 4});
  for (const bool finite : {true, false, true, true}) a.update(finite);
  b.restore(a.state());
  for (int i = 0; i < 6; ++i) {
    a.update(i != 4);
    b.update(i != 4);
    EXPECT_EQ(a.state(), b.state());
  }
}

TEST(GradScaler, ThrowsNamingWhatMakesNoSense) {
  const auto error_of = [](auto&& f) -> std::string {
    try {
      f();
    } catch (const InvalidArgument& e) {
      return e.what();
    }
    return "nothing was thrown";
  };
  using ::testing::HasSubstr;
  EXPECT_THAT(error_of([] { GradScaler({.floor = 0}); }), HasSubstr("floor 0"));
  EXPECT_THAT(error_of([] { GradScaler({.initial_scale = 0.5}); }), HasSubstr("initial_scale 0.5"));
  EXPECT_THAT(error_of([] { GradScaler({.growth = 0.5}); }), HasSubstr("growth 0.5"));
  EXPECT_THAT(error_of([] { GradScaler({.backoff = 1}); }), HasSubstr("backoff 1"));
  EXPECT_THAT(error_of([] { GradScaler({.growth_interval = 0}); }), HasSubstr("growth_interval 0"));
  EXPECT_THAT(
      error_of([] { GradScaler().restore({.scale = std::numeric_limits<double>::quiet_NaN()}); }),
      HasSubstr("scale nan"));
  EXPECT_THAT(error_of([] { GradScaler().restore({.good_updates = -1}); }), HasSubstr("-1"));
}

}  // namespace
}  // namespace crucible::optim
