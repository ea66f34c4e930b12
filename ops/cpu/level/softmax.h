/// Softmax and cross-entropy over one row [n]; one table a level.
#pragma once

#include <cstdint>

#include "core/dtype.h"

namespace crucible::cpu {

template <class T, class A = Accumulator<T>>
struct SoftmaxOf {
  /// log(sum exp x) and, if `sum` is given, sum x.  Propagates NaN; +inf if x holds it; -inf for a
  /// row of -inf.
  double (*log_sum_exp)(const T* x, int64_t n, double* sum);
  /// y = softmax(x) or, if log, log softmax(x); y may be x.
  void (*forward)(const T* x, T* y, int64_t n, bool log);
  /// dx may be dy.
  void (*backward)(const T* y, const T* dy, T* dx, int64_t n, bool log);
  /// dx = scale * (exp(x - lse) - shift); dx may be x.
  void (*shifted_exp)(const T* x, A lse, A shift, A scale, T* dx, int64_t n);
};

struct SoftmaxKernels {
  SoftmaxOf<double> f64;
  SoftmaxOf<float> f32;
  SoftmaxOf<Float16> f16;
  SoftmaxOf<BFloat16> bf16;

  template <class T>
  const SoftmaxOf<T>& of() const {
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
extern const SoftmaxKernels softmax;
}
namespace v3 {
extern const SoftmaxKernels softmax;
}
namespace v4 {
extern const SoftmaxKernels softmax;
}

}  // namespace crucible::cpu
