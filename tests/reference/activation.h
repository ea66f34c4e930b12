/// The activations that matrix products fuse, in double precision.
#pragma once

#include "tests/reference/real.h"

namespace crucible::reference {

Real gelu_tanh(Real x);
Real gelu_tanh_derivative(Real x);

}  // namespace crucible::reference
