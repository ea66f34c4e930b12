/// Folds of a row or of rows into columns, kept in double between slices; one table a level.
#pragma once

#include <cstdint>

#include "core/half.h"

namespace crucible::cpu {

/// exp_sum is the sum of exp(x - shift).  A NaN makes maximum and minimum NaN.
enum class Fold : int { sum, prod, maximum, minimum, exp_sum, sum_squares };
constexpr int folds = static_cast<int>(Fold::sum_squares) + 1;

template <class T>
struct ReduceOf {
  /// The fold of x [n]; n is at most a few thousand where T is summed in f32.
  double (*row[folds])(const T* x, int64_t n, double shift);
  /// into[j] = fold of into[j] and x[r * stride + j] over r in [0, rows), j in [0, n).
  void (*columns[folds])(const T* x, int64_t rows, int64_t stride, int64_t n, const double* shift,
                         double* into);
};

struct ReduceKernels {
  ReduceOf<double> f64;
  ReduceOf<float> f32;
  ReduceOf<Float16> f16;
  ReduceOf<BFloat16> bf16;
};

namespace v2 {
extern const ReduceKernels reduce;
}
namespace v3 {
extern const ReduceKernels reduce;
}
namespace v4 {
extern const ReduceKernels reduce;
}

}  // namespace crucible::cpu
