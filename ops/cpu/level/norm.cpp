// Rows of channels.  Batch norm reads x twice forward (statistics, result) and x and dy twice back;
// sums over rows run in registers for a band of rows, so that a band is read from memory once.
#include "ops/cpu/level/norm.h"

#include <cmath>

#include "ops/cpu/level/vector.h"

namespace crucible::cpu::CRUCIBLE_LEVEL {
namespace {

// Rows whose columns are summed in registers before they reach a running sum.
constexpr int64_t band = 16;
constexpr int registers = 4;

// The largest value that T rounds to 0: a positive value is one above it.
template <class T>
constexpr Accumulator<T> rounds_to_zero = 0;
template <>
constexpr float rounds_to_zero<Float16> = 0x1p-25f;
template <>
constexpr float rounds_to_zero<BFloat16> = 0x1p-134f;

template <class V>
[[gnu::always_inline]] inline V rectified(V v) {
  const V zero{};
  return v <= zero ? zero : v;
}

// Band by band: the mean of the band, then squared deviations from it, merged into the running
// values.  All of it relative to `pivot`, or means far from 0 would leave no digits for their
// differences.  Source    Chan, Golub, LeVeque 1983.
template <class T>
void statistics(const T* x, const Accumulator<T>* pivot, int64_t rows, int64_t stride, int64_t n,
                Accumulator<T>* mean, Accumulator<T>* m2) {
  using A = Accumulator<T>;
  for (int64_t first = 0; first < rows; first += band) {
    const int64_t count = rows - first < band ? rows - first : band;
    const A share = A(1) / static_cast<A>(count);
    const A weight = static_cast<A>(count) / static_cast<A>(first + count);
    const A cross = static_cast<A>(first) * weight;
    const T* from = x + first * stride;
    for_columns<A, registers>(n, [&]<class V, int K>(int64_t j) {
      constexpr int64_t step = width<A, V>;
      V sum[K] = {}, squares[K] = {}, origin[K];
      for (int k = 0; k < K; ++k) origin[k] = get<V>(pivot + j + k * step);
      for (int64_t r = 0; r < count; ++r) {
        for (int k = 0; k < K; ++k) sum[k] += get<V>(from + r * stride + j + k * step) - origin[k];
      }
      for (int k = 0; k < K; ++k) sum[k] *= share;
      for (int64_t r = 0; r < count; ++r) {
        for (int k = 0; k < K; ++k) {
          const V d = (get<V>(from + r * stride + j + k * step) - origin[k]) - sum[k];
          squares[k] += d * d;
        }
      }
      for (int k = 0; k < K; ++k) {
        A* m = mean + j + k * step;
        A* q = m2 + j + k * step;
        if (first == 0) {
          put(m, sum[k]);
          put(q, squares[k]);
        } else {
          const V old = get<V>(m), delta = sum[k] - old;
          put(m, V(old + delta * weight));
          put(q, V(get<V>(q) + (squares[k] + delta * delta * cross)));
        }
      }
    });
  }
}

// Forward and the recomputed mask share this expression, so that both round alike.
template <class V, class T, class A>
[[gnu::always_inline]] inline V normalised(const BatchNormRows<T, A>& b, V x, int64_t j) {
  return (x - get<V>(b.mean + j)) * get<V>(b.scale + j) + get<V>(b.beta + j);
}

template <class T, bool residual, bool relu>
void batch_norm_rows(const BatchNormRows<T, Accumulator<T>>& b) {
  using A = Accumulator<T>;
  for (int64_t r = 0; r < b.rows; ++r) {
    const int64_t row = r * b.stride;
    for_columns<A, 1>(b.n, [&]<class V, int>(int64_t j) {
      V v = normalised(b, get<V>(b.x + row + j), j);
      if constexpr (residual) v += get<V>(b.other + row + j);
      put(b.out + row + j, relu ? rectified(v) : v);
    });
  }
}

template <class T>
void batch_norm(const BatchNormRows<T, Accumulator<T>>& b, bool relu) {
  if (b.other) {
    relu ? batch_norm_rows<T, true, true>(b) : batch_norm_rows<T, true, false>(b);
  } else {
    relu ? batch_norm_rows<T, false, true>(b) : batch_norm_rows<T, false, false>(b);
  }
}

// dy where the output was positive.
template <Mask mask, class V, class T, class A>
[[gnu::always_inline]] inline V masked(const BatchNormRows<T, A>& b, V x, int64_t at, int64_t j) {
  const V dy = get<V>(b.dy + at), zero{};
  if constexpr (mask == Mask::from_x) {
    return normalised(b, x, j) > zero + rounds_to_zero<T> ? dy : zero;
  } else if constexpr (mask == Mask::from_y) {
    return get<V>(b.other + at) > zero ? dy : zero;
  } else {
    return dy;
  }
}

template <class T, Mask mask, bool keep>
void batch_norm_sums_of(const BatchNormRows<T, Accumulator<T>>& b, Accumulator<T>* sum,
                        Accumulator<T>* product) {
  using A = Accumulator<T>;
  for (int64_t first = 0; first < b.rows; first += band) {
    const int64_t last = b.rows - first < band ? b.rows : first + band;
    for_columns<A, registers>(b.n, [&]<class V, int K>(int64_t j) {
      constexpr int64_t step = width<A, V>;
      V s[K] = {}, p[K] = {};
      for (int64_t r = first; r < last; ++r) {
        for (int k = 0; k < K; ++k) {
          const int64_t column = j + k * step, at = r * b.stride + column;
          const V x = get<V>(b.x + at);
          const V dz = masked<mask>(b, x, at, column);
          if constexpr (keep) put(b.out + at, dz);
          s[k] += dz;
          p[k] += dz * (x - get<V>(b.mean + column));
        }
      }
      for (int k = 0; k < K; ++k) {
        put(sum + j + k * step, V(get<V>(sum + j + k * step) + s[k]));
        put(product + j + k * step, V(get<V>(product + j + k * step) + p[k]));
      }
    });
  }
}

template <class T>
void batch_norm_sums(const BatchNormRows<T, Accumulator<T>>& b, Mask mask, Accumulator<T>* sum,
                     Accumulator<T>* product) {
  const bool keep = b.out != nullptr;
  switch (mask) {
    case Mask::none:
      return keep ? batch_norm_sums_of<T, Mask::none, true>(b, sum, product)
                  : batch_norm_sums_of<T, Mask::none, false>(b, sum, product);
    case Mask::from_x:
      return keep ? batch_norm_sums_of<T, Mask::from_x, true>(b, sum, product)
                  : batch_norm_sums_of<T, Mask::from_x, false>(b, sum, product);
    case Mask::from_y:
      return keep ? batch_norm_sums_of<T, Mask::from_y, true>(b, sum, product)
                  : batch_norm_sums_of<T, Mask::from_y, false>(b, sum, product);
  }
}

template <class T, Mask mask>
void batch_norm_backward_of(const BatchNormRows<T, Accumulator<T>>& b,
                            const Accumulator<T>* mean_dz, const Accumulator<T>* slope) {
  using A = Accumulator<T>;
  for (int64_t r = 0; r < b.rows; ++r) {
    const int64_t row = r * b.stride;
    for_columns<A, 1>(b.n, [&]<class V, int>(int64_t j) {
      const V x = get<V>(b.x + row + j);
      const V dz = masked<mask>(b, x, row + j, j);
      const V centred = x - get<V>(b.mean + j);
      put(b.out + row + j,
          V(get<V>(b.scale + j) * (dz - get<V>(mean_dz + j) - centred * get<V>(slope + j))));
    });
  }
}

template <class T>
void batch_norm_backward(const BatchNormRows<T, Accumulator<T>>& b, Mask mask,
                         const Accumulator<T>* mean_dz, const Accumulator<T>* slope) {
  switch (mask) {
    case Mask::none:
      return batch_norm_backward_of<T, Mask::none>(b, mean_dz, slope);
    case Mask::from_x:
      return batch_norm_backward_of<T, Mask::from_x>(b, mean_dz, slope);
    case Mask::from_y:
      return batch_norm_backward_of<T, Mask::from_y>(b, mean_dz, slope);
  }
}

// Sums f(V, j) over [0, n).
template <class A, class F>
[[gnu::always_inline]] inline A row_sum(int64_t n, F f) {
  Vector<A> sum[registers] = {};
  A rest = 0;
  for_columns<A, registers>(n, [&]<class V, int K>(int64_t j) {
    for (int k = 0; k < K; ++k) {
      const V v = f.template operator()<V>(j + k * width<A, V>);
      if constexpr (width<A, V> == 1) {
        rest += v;
      } else {
        sum[k] += v;
      }
    }
  });
  return sum_of<A>((sum[0] + sum[1]) + (sum[2] + sum[3])) + rest;
}

template <class T>
void layer_norm(const T* x, const Accumulator<T>* gamma, const Accumulator<T>* beta,
                Accumulator<T> eps, T* y, Accumulator<T>* mean, Accumulator<T>* rstd, int64_t rows,
                int64_t n) {
  using A = Accumulator<T>;
  const A share = A(1) / static_cast<A>(n);
  for (int64_t r = 0; r < rows; ++r, x += n, y += n) {
    const A m = row_sum<A>(n, [&]<class V>(int64_t j) { return get<V>(x + j); }) * share;
    const A squares = row_sum<A>(n, [&]<class V>(int64_t j) {
      const V d = get<V>(x + j) - m;
      return V(d * d);
    });
    const A k = A(1) / std::sqrt(squares * share + eps);
    for_columns<A, 1>(n, [&]<class V, int>(int64_t j) {
      put(y + j, V((get<V>(x + j) - m) * k * get<V>(gamma + j) + get<V>(beta + j)));
    });
    mean[r] = m;
    rstd[r] = k;
  }
}

// Rows [0, R) of one group: two sums a row, then one sweep of the columns for all of them.
template <class T, int R>
[[gnu::always_inline]] inline void layer_norm_backward_rows(
    const T* x, const T* dy, const Accumulator<T>* gamma, const Accumulator<T>* mean,
    const Accumulator<T>* rstd, T* dx, Accumulator<T>* dgamma, Accumulator<T>* dbeta, int64_t n) {
  using A = Accumulator<T>;
  const A share = A(1) / static_cast<A>(n);
  A mean_g[R], slope[R];
  for (int r = 0; r < R; ++r) {
    const T* xr = x + r * n;
    const T* dyr = dy + r * n;
    const A m = mean[r];
    mean_g[r] = share * row_sum<A>(n, [&]<class V>(int64_t j) {
                  return V(get<V>(dyr + j) * get<V>(gamma + j));
                });
    slope[r] = share * rstd[r] * rstd[r] * row_sum<A>(n, [&]<class V>(int64_t j) {
                 return V(get<V>(dyr + j) * get<V>(gamma + j) * (get<V>(xr + j) - m));
               });
  }
  for_columns<A, 1>(n, [&]<class V, int>(int64_t j) {
    const V gain = get<V>(gamma + j);
    V dg{}, db{};
    for (int r = 0; r < R; ++r) {
      const V d = get<V>(dy + r * n + j), centred = get<V>(x + r * n + j) - mean[r];
      dg += d * (centred * rstd[r]);
      db += d;
      put(dx + r * n + j, V(rstd[r] * (d * gain - mean_g[r] - centred * slope[r])));
    }
    put(dgamma + j, V(get<V>(dgamma + j) + dg));
    put(dbeta + j, V(get<V>(dbeta + j) + db));
  });
}

template <class T>
void layer_norm_backward(const T* x, const T* dy, const Accumulator<T>* gamma,
                         const Accumulator<T>* mean, const Accumulator<T>* rstd, T* dx,
                         Accumulator<T>* dgamma, Accumulator<T>* dbeta, int64_t rows, int64_t n) {
  constexpr int group = 4;
  int64_t r = 0;
  for (; r + group <= rows; r += group) {
    layer_norm_backward_rows<T, group>(x + r * n, dy + r * n, gamma, mean + r, rstd + r, dx + r * n,
                                       dgamma, dbeta, n);
  }
  for (; r < rows; ++r) {
    layer_norm_backward_rows<T, 1>(x + r * n, dy + r * n, gamma, mean + r, rstd + r, dx + r * n,
                                   dgamma, dbeta, n);
  }
}

template <class T>
void column_sums(const T* x, int64_t rows, int64_t stride, int64_t n, Accumulator<T>* into) {
  using A = Accumulator<T>;
  for (int64_t first = 0; first < rows; first += band) {
    const int64_t last = rows - first < band ? rows : first + band;
    for_columns<A, registers>(n, [&]<class V, int K>(int64_t j) {
      constexpr int64_t step = width<A, V>;
      V sum[K] = {};
      for (int64_t r = first; r < last; ++r) {
        for (int k = 0; k < K; ++k) sum[k] += get<V>(x + r * stride + j + k * step);
      }
      for (int k = 0; k < K; ++k) {
        put(into + j + k * step, V(get<V>(into + j + k * step) + sum[k]));
      }
    });
  }
}

template <class T>
constexpr NormOf<T> table() {
  return {statistics<T>, batch_norm<T>,          batch_norm_sums<T>, batch_norm_backward<T>,
          layer_norm<T>, layer_norm_backward<T>, column_sums<T>};
}

}  // namespace

extern const NormKernels norm{table<double>(), table<float>(), table<Float16>(), table<BFloat16>()};

}  // namespace crucible::cpu::CRUCIBLE_LEVEL
