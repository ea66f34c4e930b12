// One read of x.  Sums of f32 run in f32 lanes within a slice; products and squares in double, so
// that they neither overflow nor underflow where the result would not.
#include "ops/cpu/level/reduce.h"

#include <limits>

#include "core/dtype.h"
#include "core/scalar_math.h"

namespace crucible::cpu::CRUCIBLE_LEVEL {
namespace {

template <class T>
double row_sum(const T* x, int64_t n, double) {
  using A = Accumulator<T>;
  A sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += static_cast<A>(x[i]);
  return sum;
}

template <class T>
double row_prod(const T* x, int64_t n, double) {
  double product = 1;
#pragma omp simd reduction(* : product)
  for (int64_t i = 0; i < n; ++i) product *= static_cast<Accumulator<T>>(x[i]);
  return product;
}

template <class T>
double row_max(const T* x, int64_t n, double) {
  using A = Accumulator<T>;
  A largest = -std::numeric_limits<A>::infinity();
  int nan = 0;
#pragma omp simd reduction(max : largest) reduction(| : nan)
  for (int64_t i = 0; i < n; ++i) {
    const A v = static_cast<A>(x[i]);
    largest = v > largest ? v : largest;
    nan |= v != v;
  }
  return nan ? std::numeric_limits<double>::quiet_NaN() : largest;
}

template <class T>
double row_min(const T* x, int64_t n, double) {
  using A = Accumulator<T>;
  A smallest = std::numeric_limits<A>::infinity();
  int nan = 0;
#pragma omp simd reduction(min : smallest) reduction(| : nan)
  for (int64_t i = 0; i < n; ++i) {
    const A v = static_cast<A>(x[i]);
    smallest = v < smallest ? v : smallest;
    nan |= v != v;
  }
  return nan ? std::numeric_limits<double>::quiet_NaN() : smallest;
}

template <class T>
double row_exp_sum(const T* x, int64_t n, double shift) {
  using A = Accumulator<T>;
  const A m = static_cast<A>(shift);
  A sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += scalar::exp(static_cast<A>(x[i]) - m);
  return sum;
}

template <class T>
double row_sum_squares(const T* x, int64_t n, double) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) {
    const double v = static_cast<Accumulator<T>>(x[i]);
    sum += v * v;
  }
  return sum;
}

template <class T, class F>
[[gnu::always_inline]] inline void fold_columns(const T* x, int64_t rows, int64_t stride, int64_t n,
                                                double* into, F f) {
  for (int64_t r = 0; r < rows; ++r, x += stride) {
#pragma omp simd
    for (int64_t j = 0; j < n; ++j) into[j] = f(into[j], static_cast<Accumulator<T>>(x[j]), j);
  }
}

template <class T>
void columns_sum(const T* x, int64_t rows, int64_t stride, int64_t n, const double*, double* into) {
  fold_columns(x, rows, stride, n, into, [](double a, double v, int64_t) { return a + v; });
}
template <class T>
void columns_prod(const T* x, int64_t rows, int64_t stride, int64_t n, const double*,
                  double* into) {
  fold_columns(x, rows, stride, n, into, [](double a, double v, int64_t) { return a * v; });
}
template <class T>
void columns_max(const T* x, int64_t rows, int64_t stride, int64_t n, const double*, double* into) {
  fold_columns(x, rows, stride, n, into,
               [](double a, double v, int64_t) { return a > v || a != a ? a : v; });
}
template <class T>
void columns_min(const T* x, int64_t rows, int64_t stride, int64_t n, const double*, double* into) {
  fold_columns(x, rows, stride, n, into,
               [](double a, double v, int64_t) { return a < v || a != a ? a : v; });
}
template <class T>
void columns_exp_sum(const T* x, int64_t rows, int64_t stride, int64_t n, const double* shift,
                     double* into) {
  using A = Accumulator<T>;
  fold_columns(x, rows, stride, n, into, [=](double a, A v, int64_t j) {
    return a + scalar::exp(v - static_cast<A>(shift[j]));
  });
}
template <class T>
void columns_sum_squares(const T* x, int64_t rows, int64_t stride, int64_t n, const double*,
                         double* into) {
  fold_columns(x, rows, stride, n, into, [](double a, double v, int64_t) { return a + v * v; });
}

template <class T>
constexpr ReduceOf<T> table() {
  return {{row_sum<T>, row_prod<T>, row_max<T>, row_min<T>, row_exp_sum<T>, row_sum_squares<T>},
          {columns_sum<T>, columns_prod<T>, columns_max<T>, columns_min<T>, columns_exp_sum<T>,
           columns_sum_squares<T>}};
}

}  // namespace

extern const ReduceKernels reduce{table<double>(), table<float>(), table<Float16>(),
                                  table<BFloat16>()};

}  // namespace crucible::cpu::CRUCIBLE_LEVEL
