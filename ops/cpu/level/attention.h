/// Attention of one batch and head, forward and backward; one table a level.
#pragma once

#include <cstdint>

#include "core/dtype.h"

namespace crucible::cpu {

/// One batch and head: q, o, doutput, dq are [t, d], k, v, dk, dv [s, d], with the given distances
/// between rows and contiguous columns; lse [t].  Formulas and masks: prim::Attention.
template <class T>
struct AttentionHead {
  using A = Accumulator<T>;
  int64_t t, s, d;
  A scale;
  bool causal;
  const bool* mask;  ///< Null for none.
  int64_t mask_row, mask_column;
  const T *q, *k, *v;
  int64_t q_row, k_row, v_row;
  T* o;  ///< Read by backward.
  int64_t o_row;
  A* lse;  ///< Read by backward.
  // Backward only.
  const T* doutput = nullptr;
  T *dq = nullptr, *dk = nullptr, *dv = nullptr;
  int64_t doutput_row = 0, dq_row = 0, dk_row = 0, dv_row = 0;
  /// Aligned to 64 bytes, attention_scratch(...) elements.
  A* scratch;
};

/// Rows of a query block and columns of a key block: a block of scores stays in the first-level
/// cache, and the products over it are long enough to pay for loading their results.
constexpr int64_t query_block = 48;
constexpr int64_t key_block = 128;
/// Rows are padded to whole vectors of any level, columns of transposed operands to whole panels.
constexpr int64_t attention_panel = 32;
/// Distance of the rows of a block of scores; not a power of two, so that rows fall into different
/// cache sets, with room for the zeros behind the last visible column.
constexpr int64_t score_row = key_block + 16;

constexpr int64_t attention_padded(int64_t n) {
  return (n + attention_panel - 1) / attention_panel * attention_panel;
}
/// Elements of scratch that either direction needs.
constexpr int64_t attention_scratch(int64_t s, int64_t d) {
  return 5 * attention_padded(s) * attention_padded(d) + 4 * query_block * attention_padded(d) +
         2 * query_block * score_row + 4 * query_block;
}

template <class T>
struct AttentionOf {
  void (*forward)(const AttentionHead<T>& head);
  void (*backward)(const AttentionHead<T>& head);
};

struct AttentionKernels {
  AttentionOf<double> f64;
  AttentionOf<float> f32;
  AttentionOf<Float16> f16;
  AttentionOf<BFloat16> bf16;
};

namespace v2 {
extern const AttentionKernels attention;
}
namespace v3 {
extern const AttentionKernels attention;
}
namespace v4 {
extern const AttentionKernels attention;
}

}  // namespace crucible::cpu
