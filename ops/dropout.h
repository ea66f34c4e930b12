/// Dropout with counter-based random numbers.
#pragma once

#include "core/rng.h"
#include "core/tensor.h"

namespace crucible {

/// y = x / (1 - p) with probability 1 - p, else 0, element by element.
///
/// Shapes    y as x.
/// Gradient  The same mask on dy, drawn again: nothing is kept.
/// Throws    InvalidArgument if p is outside [0, 1).
/// Reads ceil(n / 4) blocks at `rng` and advances it.  p = 0 gives x and reads nothing.
Tensor dropout(const Tensor& x, double p, RngState& rng);

}  // namespace crucible
