#include "tests/samples/seed.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

namespace crucible::testing {

uint64_t run_seed() {
  static const uint64_t seed = [] {
    const char* text = std::getenv("CRUCIBLE_TEST_SEED");
    const uint64_t s = text ? std::strtoull(text, nullptr, 10) : std::random_device{}();
    fmt::print("CRUCIBLE_TEST_SEED={}\n", s);
    return s;
  }();
  return seed;
}

std::string rerun_line() {
  const ::testing::TestInfo* info = ::testing::UnitTest::GetInstance()->current_test_info();
  return fmt::format("rerun: CRUCIBLE_TEST_SEED={} {} --gtest_filter={}.{}", run_seed(),
                     program_invocation_short_name, info->test_suite_name(), info->name());
}

}  // namespace crucible::testing
