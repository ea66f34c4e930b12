// A row passes through the cache a few times: largest element, sum of exponentials, result.  16-bit
// rows are widened a slice at a time; f32 keeps the exponentials in y, others compute them twice.
#include "ops/cpu/level/softmax.h"

#include <cmath>
#include <limits>

#include "core/scalar_math.h"
#include "ops/cpu/level/vector.h"

namespace crucible::cpu::CRUCIBLE_LEVEL {
namespace {

// Sums run in the accumulator's lanes for one slice and in double from slice to slice.
constexpr int64_t slice = 1024;

// Calls f(pointer to A, first, count) for the slices of a row.
template <class T, class F>
[[gnu::always_inline]] inline void for_slices(const T* x, int64_t n, F f) {
  using A = Accumulator<T>;
  for (int64_t first = 0; first < n; first += slice) {
    const int64_t count = n - first < slice ? n - first : slice;
    if constexpr (sizeof(T) == sizeof(A)) {
      f(x + first, first, count);
    } else {
      A wide[slice];
      for_columns<A, 1>(count,
                        [&]<class V, int>(int64_t j) { put(wide + j, get<V>(x + first + j)); });
      f(static_cast<const A*>(wide), first, count);
    }
  }
}

// Stores a slice of A as T.
template <class T>
[[gnu::always_inline]] inline void narrow(const Accumulator<T>* from, T* to, int64_t count) {
  for_columns<Accumulator<T>, 1>(count,
                                 [&]<class V, int>(int64_t j) { put(to + j, get<V>(from + j)); });
}

// The largest element, NaN if there is one.
template <class T>
Accumulator<T> largest(const T* x, int64_t n) {
  using A = Accumulator<T>;
  A m = -std::numeric_limits<A>::infinity();
  int nan = 0;
  for_slices(x, n, [&](const A* v, int64_t, int64_t count) {
    A top = m;
    int seen = 0;
#pragma omp simd reduction(max : top) reduction(| : seen)
    for (int64_t j = 0; j < count; ++j) {
      top = v[j] > top ? v[j] : top;
      seen |= v[j] != v[j];
    }
    m = top;
    nan |= seen;
  });
  return nan ? std::numeric_limits<A>::quiet_NaN() : m;
}

template <class T>
double exp_sum(const T* x, int64_t n, Accumulator<T> m) {
  using A = Accumulator<T>;
  double total = 0.0;
  for_slices(x, n, [&](const A* v, int64_t, int64_t count) {
    A sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < count; ++j) sum += scalar::exp(v[j] - m);
    total += sum;
  });
  return total;
}

template <class T>
double log_sum_exp(const T* x, int64_t n, double* sum) {
  using A = Accumulator<T>;
  if (sum) {
    double total = 0.0;
    for_slices(x, n, [&](const A* v, int64_t, int64_t count) {
      A part = 0;
#pragma omp simd reduction(+ : part)
      for (int64_t j = 0; j < count; ++j) part += v[j];
      total += part;
    });
    *sum = total;
  }
  const A m = largest(x, n);
  return std::isfinite(m) ? m + std::log(exp_sum(x, n, m)) : m;
}

template <class T>
void fill(T* y, int64_t n, Accumulator<T> value) {
  for (int64_t j = 0; j < n; ++j) y[j] = T(value);
}

template <class T>
void forward(const T* x, T* y, int64_t n, bool log) {
  using A = Accumulator<T>;
  const A m = largest(x, n);
  if (!std::isfinite(m)) {
    const bool hidden = m < 0;  // -inf only
    return fill(y, n, !hidden ? std::numeric_limits<A>::quiet_NaN() : log ? m : A(0));
  }
  if constexpr (sizeof(T) == 4) {
    if (!log) {
      double total = 0.0;
      for (int64_t first = 0; first < n; first += slice) {
        const int64_t end = n - first < slice ? n : first + slice;
        A sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t j = first; j < end; ++j) {
          const A e = scalar::exp(x[j] - m);
          y[j] = e;
          sum += e;
        }
        total += sum;
      }
      const A scale = static_cast<A>(1.0 / total);
#pragma omp simd
      for (int64_t j = 0; j < n; ++j) y[j] *= scale;
      return;
    }
  }
  const double sum = exp_sum(x, n, m);
  // x - lse as (x - m) - log(sum): the first difference is exact near the maximum.
  const A log_sum = static_cast<A>(std::log(sum)), scale = static_cast<A>(1.0 / sum);
  for_slices(x, n, [&](const A* v, int64_t first, int64_t count) {
    A out[slice];
    if (log) {
#pragma omp simd
      for (int64_t j = 0; j < count; ++j) out[j] = (v[j] - m) - log_sum;
    } else {
#pragma omp simd
      for (int64_t j = 0; j < count; ++j) out[j] = scalar::exp(v[j] - m) * scale;
    }
    narrow(out, y + first, count);
  });
}

template <class T>
void backward(const T* y, const T* dy, T* dx, int64_t n, bool log) {
  using A = Accumulator<T>;
  double total = 0.0;
  bool hidden = log;  // a row of -inf only
  for (int64_t first = 0; first < n; first += slice) {
    const int64_t count = n - first < slice ? n - first : slice;
    for_slices(y + first, count, [&](const A* u, int64_t, int64_t) {
      for_slices(dy + first, count, [&](const A* v, int64_t, int64_t) {
        A sum = 0;
        if (log) {
          int seen = 0;
#pragma omp simd reduction(+ : sum) reduction(| : seen)
          for (int64_t j = 0; j < count; ++j) {
            sum += v[j];
            seen |= u[j] != -std::numeric_limits<A>::infinity();
          }
          hidden &= !seen;
        } else {
#pragma omp simd reduction(+ : sum)
          for (int64_t j = 0; j < count; ++j) sum += u[j] * v[j];
        }
        total += sum;
      });
    });
  }
  if (hidden) return fill(dx, n, A(0));
  const A s = static_cast<A>(total);
  for (int64_t first = 0; first < n; first += slice) {
    const int64_t count = n - first < slice ? n - first : slice;
    for_slices(y + first, count, [&](const A* u, int64_t, int64_t) {
      for_slices(dy + first, count, [&](const A* v, int64_t, int64_t) {
        A out[slice];
        if (log) {
#pragma omp simd
          for (int64_t j = 0; j < count; ++j) out[j] = v[j] - scalar::exp(u[j]) * s;
        } else {
#pragma omp simd
          for (int64_t j = 0; j < count; ++j) out[j] = u[j] * (v[j] - s);
        }
        narrow(out, dx + first, count);
      });
    });
  }
}

template <class T>
void shifted_exp(const T* x, Accumulator<T> lse, Accumulator<T> shift, Accumulator<T> scale, T* dx,
                 int64_t n) {
  using A = Accumulator<T>;
  for_slices(x, n, [&](const A* v, int64_t first, int64_t count) {
    A out[slice];
#pragma omp simd
    for (int64_t j = 0; j < count; ++j) out[j] = scale * (scalar::exp(v[j] - lse) - shift);
    narrow(out, dx + first, count);
  });
}

template <class T>
constexpr SoftmaxOf<T> table() {
  return {log_sum_exp<T>, forward<T>, backward<T>, shifted_exp<T>};
}

}  // namespace

extern const SoftmaxKernels softmax{table<double>(), table<float>(), table<Float16>(),
                                    table<BFloat16>()};

}  // namespace crucible::cpu::CRUCIBLE_LEVEL
