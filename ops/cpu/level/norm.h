/// Batch and layer normalisation over blocks of rows, and column sums; one table a level.
#pragma once

#include <cstdint>

#include "core/dtype.h"

namespace crucible::cpu {

/// Where the rectifier's mask of a batch norm comes from.
enum class Mask : int { none, from_x, from_y };

template <class T, class A>
struct BatchNormRows {
  const T* x;
  const T* other;  ///< Forward: the residual, or null.  Backward: y for Mask::from_y.
  const T* dy;
  T* out;  ///< Forward: y.  First pass back: dresidual, or null.  Second: dx.
  int64_t rows;
  int64_t stride;
  int64_t n;
  const A* mean;
  const A* scale;  ///< gamma * rstd
  const A* beta;
};

template <class T, class A = Accumulator<T>>
struct NormOf {
  /// mean[j] of x - pivot[j], and m2[j], the sum of squared deviations, of `rows` rows.
  void (*statistics)(const T* x, const A* pivot, int64_t rows, int64_t stride, int64_t n, A* mean,
                     A* m2);
  /// y = relu?((x - mean) * scale + beta + residual?); relu if `relu`.
  void (*batch_norm)(const BatchNormRows<T, A>& b, bool relu);
  /// sum[j] += dz and product[j] += dz * (x - mean); dz also to b.out if that is given.
  void (*batch_norm_sums)(const BatchNormRows<T, A>& b, Mask mask, A* sum, A* product);
  /// dx = scale * (dz - mean_dz - (x - mean) * slope).
  void (*batch_norm_backward)(const BatchNormRows<T, A>& b, Mask mask, const A* mean_dz,
                              const A* slope);
  void (*layer_norm)(const T* x, const A* gamma, const A* beta, A eps, T* y, A* mean, A* rstd,
                     int64_t rows, int64_t n);
  /// Writes dx, adds to dgamma and dbeta.
  void (*layer_norm_backward)(const T* x, const T* dy, const A* gamma, const A* mean, const A* rstd,
                              T* dx, A* dgamma, A* dbeta, int64_t rows, int64_t n);
  /// into[j] += the sum of column j.
  void (*column_sums)(const T* x, int64_t rows, int64_t stride, int64_t n, A* into);
};

struct NormKernels {
  NormOf<double> f64;
  NormOf<float> f32;
  NormOf<Float16> f16;
  NormOf<BFloat16> bf16;

  template <class T>
  const NormOf<T>& of() const {
    if constexpr (sizeof(T) == 8) {
      return f64;
    } else if constexpr (sizeof(T) == 4) {
      return f32;
    } else if constexpr (dtype_of<T> == DType::f16) {
      return f16;
    } else {
      return bf16;
    }
  }
};

namespace v2 {
extern const NormKernels norm;
}
namespace v3 {
extern const NormKernels norm;
}
namespace v4 {
extern const NormKernels norm;
}

}  // namespace crucible::cpu
