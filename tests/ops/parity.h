/// Comparing a backend with the reference backend, primitive by primitive.
///
/// Both are given the same values, already rounded to the dtype.  The reference computes in double
/// and carries a bound on the rounding of a backend that works in f32 (f64 for f64) along with
/// every value: tests/reference/real.h.  What is stored in a narrower type is rounded once more:
///
/// | dtype of the output | allowed distance from the reference                                 |
/// | ------------------- | ------------------------------------------------------------------- |
/// | f64                 | running error, 8 * 2^-53 an operation                               |
/// | f32                 | running error, 8 * 2^-24 an operation                               |
/// | f16, bf16           | the same (arithmetic is f32) plus 1 ulp of the type: one rounding   |
/// |                     | on each side                                                        |
/// | integers, bool      | none                                                                |
///
/// Numbers below the smallest normal one of f32 may be flushed to zero.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/samples/primitive.h"

namespace crucible::testing {

struct ParityCase {
  std::string name;  ///< "SoftmaxWidth33F32"
  PrimitiveSample sample;
  DType dtype;
};

/// Every sample of every primitive in each of its dtypes.
const std::vector<ParityCase>& parity_cases();

/// Runs the case on `device` and on the reference backend with inputs drawn from `seed`.
::testing::AssertionResult matches_reference(const ParityCase& c, Device device, uint64_t seed);

}  // namespace crucible::testing
