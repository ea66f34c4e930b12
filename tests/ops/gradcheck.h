/// Comparing what backward gives with difference quotients, in double precision.
#pragma once

#include <gtest/gtest.h>

#include "tests/samples/op.h"

namespace crucible::testing {

/// Step of the central difference, and how far the two may differ: atol + rtol |quotient|.
inline constexpr double gradcheck_eps = 1e-6;
inline constexpr double gradcheck_atol = 1e-5;
inline constexpr double gradcheck_rtol = 1e-3;

/// The whole Jacobian of a small sample; its stated gradient if it has one.  Also that a gradient
/// has the shape of its input and does not depend on which other inputs want one.
::testing::AssertionResult gradients_agree(const OpSample& sample, Device device, uint64_t seed);

/// The derivative of a random combination of all results along a random direction of all inputs:
/// one number, for samples too large for a Jacobian.
::testing::AssertionResult direction_agrees(const OpSample& sample, Device device, uint64_t seed);

}  // namespace crucible::testing
