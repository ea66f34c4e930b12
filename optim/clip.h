/// Gradient clipping by global norm.
#pragma once

#include "core/parameters.h"

namespace crucible::optim {

struct ClipScale {
  Tensor norm;   ///< 0-d f64: the norm of all gradients after `multiplier`, before clipping.
  Tensor scale;  ///< 0-d, parameters' dtype: what Optimizer::step() multiplies gradients by.
};

/// scale = multiplier * min(1, max_norm / (norm + 1e-6)), norm = multiplier * ||gradients||_2.
/// Stays on the device: nothing is waited for.  `multiplier` averages accumulated gradients; an
/// infinite max_norm only measures.
/// Throws    InvalidArgument if max_norm is not above 0.
ClipScale clip_scale(ParameterSet& parameters, double max_norm, double multiplier = 1.0);

/// Name of the first parameter whose gradient holds an infinity or NaN; empty if there is none.
/// Waits for the device.
std::string first_non_finite_gradient(ParameterSet& parameters);

}  // namespace crucible::optim
