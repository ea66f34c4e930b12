/// Rows of a table by index.
#pragma once

#include "core/tensor.h"

namespace crucible {

/// y[...] = table[ids[...]].
///
/// Shapes    table [V, C], ids [...] -> y [..., C].
/// Dtypes    table f16, bf16, f32, f64; ids i64.
/// Gradient  dtable[v] = sum of dy where ids == v, in ascending position: deterministic.  Keeps
/// ids. Throws    InvalidArgument for an id outside [0, V), naming its position.  On an accelerator
/// it comes
///           with the next call that waits.
Tensor embedding(const Tensor& table, const Tensor& ids);

}  // namespace crucible
