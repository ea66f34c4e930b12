/// Scaled dot-product attention that never stores the T x T matrix of the whole batch.
#pragma once

#include <optional>

#include "core/tensor.h"

namespace crucible {

struct AttentionOptions {
  bool causal = false;
  /// Factor on q k^T; default 1 / sqrt(D).
  std::optional<double> scale = {};
  /// bool, broadcast to [B, H, T, S]; false hides a column from a row.  Undefined: nothing hidden.
  Tensor mask = {};
};

/// o = softmax(scale q k^T) v per batch and head.
///
/// Shapes    q [B, T, H, D], k, v [B, S, H, D] -> o [B, T, H, D].  causal: row t sees s <= t + S -
/// T. Dtypes    f16, bf16, f32, f64, equal; sums in f32 (f64 for f64). Gradient  For q, k, v; keeps
/// them, o and one number a row; the probabilities are recomputed. Memory    Workspace of some rows
/// a thread, never T x S for the batch. Throws    InvalidArgument if shapes do not match or the
/// mask does not broadcast. A row that sees no column gives 0 with gradient 0. Source    Vaswani et
/// al. 2017; Dao et al. 2022, arXiv:2205.14135, for the tiled form.
Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v,
                 const AttentionOptions& options = {});

/// The same on packed projections, without copies to separate them.
///
/// Shapes    qkv [B, T, 3 H D]: q, then k, then v, heads within each -> o [B, T, H D].
Tensor attention_packed(const Tensor& qkv, int64_t heads, const AttentionOptions& options = {});

}  // namespace crucible
