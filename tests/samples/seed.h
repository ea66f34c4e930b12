/// The seed of this test run: fresh each time, repeatable through the environment.
#pragma once

#include <cstdint>
#include <string>

namespace crucible::testing {

/// CRUCIBLE_TEST_SEED if it is set, else drawn once for the process.  Printed with the first use.
uint64_t run_seed();

/// "rerun: CRUCIBLE_TEST_SEED=7 ops_test --gtest_filter=…" for the test that runs now.
std::string rerun_line();

}  // namespace crucible::testing
