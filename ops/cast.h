/// The same values in another dtype or on another device.
#pragma once

#include "core/tensor.h"

namespace crucible {

/// Dtypes    Any to any; floating to floating is differentiable.  Rounds to nearest even; to
///           integers truncates toward zero and saturates, NaN becomes 0.
Tensor cast(const Tensor& x, DType dtype);

/// A copy on `device`; x itself if it is there already.  Differentiable.
Tensor to_device(const Tensor& x, Device device);

}  // namespace crucible
