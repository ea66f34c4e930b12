// Ends the process if one test takes longer than 30 seconds: a loader that hangs must fail, not
// wait.
#include <gtest/gtest.h>
#include <unistd.h>

namespace {

class Watchdog : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo&) override { alarm(30); }
  void OnTestEnd(const testing::TestInfo&) override { alarm(0); }
};

[[maybe_unused]] const bool watching = [] {
  testing::UnitTest::GetInstance()->listeners().Append(new Watchdog);
  return true;
}();

}  // namespace
