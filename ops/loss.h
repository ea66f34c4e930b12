/// Losses and the count of right answers.
#pragma once

#include <cstdint>

#include "core/tensor.h"

namespace crucible {

enum class Reduction : uint8_t { mean, sum };

struct CrossEntropyOptions {
  int64_t ignore_index = -100;  ///< Rows with this label count nothing.
  double label_smoothing = 0.0;
  /// mean divides by the number of rows that count; with none it gives 0.
  Reduction reduction = Reduction::mean;
};

/// -sum_c q_c log softmax(logits)_c with q = (1 - smoothing) onehot(label) + smoothing / C.
///
/// Shapes    logits [..., C], labels [...] -> 0-d.
/// Dtypes    logits f16, bf16, f32, f64; labels i64; the loss is f32 (f64 for f64).
/// Gradient  (softmax - q) / count; 0 in ignored rows.  Keeps logits, labels and one number a row.
/// Throws    InvalidArgument for a label that is neither in [0, C) nor ignore_index, naming its
/// row.
///           On an accelerator it comes with the next call that waits.
Tensor cross_entropy(const Tensor& logits, const Tensor& labels,
                     const CrossEntropyOptions& options = {});

/// Mean (or sum) of (a - b)^2 over all elements, broadcast.
Tensor mse_loss(const Tensor& a, const Tensor& b, Reduction reduction = Reduction::mean);

/// Number of rows whose first largest logit is at the label; 0-d i64, not differentiable.
Tensor count_correct(const Tensor& logits, const Tensor& labels, int64_t ignore_index = -100);

}  // namespace crucible
