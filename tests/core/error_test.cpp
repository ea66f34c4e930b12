#include "core/error.h"

#include <gtest/gtest.h>

#include "core/check.h"

namespace crucible {
namespace {

TEST(Error, CheckFormatsOnlyOnFailure) {
  EXPECT_NO_THROW(check(true, "value {}", 1));
  try {
    check(false, "softmax: axis {} is outside [-2, 2); pass an axis of x.", 7);
    FAIL();
  } catch (const InvalidArgument& e) {
    EXPECT_STREQ(e.what(), "softmax: axis 7 is outside [-2, 2); pass an axis of x.");
    EXPECT_EQ(e.exit_code(), 2);
  }
}

TEST(Error, ExitCodesFollowTheKind) {
  EXPECT_EQ(IoError("x").exit_code(), 2);
  EXPECT_EQ(OutOfMemory("x", 7).exit_code(), 1);
  EXPECT_EQ(OutOfMemory("x", 7).requested_bytes(), 7);
  EXPECT_EQ(DeviceError("x").exit_code(), 1);
}

}  // namespace
}  // namespace crucible
