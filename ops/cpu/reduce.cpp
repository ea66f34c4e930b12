// Reductions over the middle axis.  The axis is cut into segments whose length depends on the shape
// alone; segments are folded in parallel and combined in order, so that no result depends on the
// number of threads.
#include "ops/cpu/level/reduce.h"

#include <cmath>
#include <limits>
#include <vector>

#include "ops/cpu/cpu_backend.h"
#include "ops/cpu/parallel.h"
#include "ops/cpu/strided.h"

namespace crucible::cpu {
namespace {

constexpr int64_t segment_elements = 32768;
constexpr int64_t chunk_columns = 512;

template <class T>
const ReduceOf<T>& kernels() {
  const ReduceKernels& all = at_level(v2::reduce, v3::reduce, v4::reduce);
  if constexpr (std::is_same_v<T, double>) {
    return all.f64;
  } else if constexpr (std::is_same_v<T, float>) {
    return all.f32;
  } else if constexpr (std::is_same_v<T, Float16>) {
    return all.f16;
  } else {
    return all.bf16;
  }
}

constexpr double infinity = std::numeric_limits<double>::infinity();

double neutral(Fold fold) {
  switch (fold) {
    case Fold::prod:
      return 1.0;
    case Fold::maximum:
      return -infinity;
    case Fold::minimum:
      return infinity;
    default:
      return 0.0;
  }
}

double combine(Fold fold, double a, double b) {
  switch (fold) {
    case Fold::prod:
      return a * b;
    case Fold::maximum:
      return a > b || a != a ? a : b;
    case Fold::minimum:
      return a < b || a != a ? a : b;
    default:
      return a + b;
  }
}

struct Extents {
  int64_t outer, n, inner;
};

// One row of at most segment_elements.
template <class T>
double fold_row(Fold fold, const T* x, int64_t n, double shift) {
  const auto slice = kernels<T>().row[static_cast<int>(fold)];
  double result = neutral(fold);
  for (int64_t i = 0; i < n; i += block_elements) {
    result = combine(fold, result, slice(x + i, std::min(block_elements, n - i), shift));
  }
  return result;
}

// y [outer, inner] = the fold of x over its middle axis; shift [outer, inner] for exp_sum.
template <class T>
std::vector<double> folded(Fold fold, const T* x, const Extents& e, const double* shift) {
  const int64_t chunk = std::min(e.inner, chunk_columns);
  const int64_t chunks = (e.inner + chunk - 1) / chunk;
  const int64_t length = std::max<int64_t>(segment_elements / chunk, 1);
  const int64_t segments = std::max<int64_t>((e.n + length - 1) / length, 1);
  std::vector<double> parts(segments * e.outer * e.inner, neutral(fold));  // [segment, o, i]
  const int64_t task = std::max<int64_t>(std::min(length, e.n) * chunk, 1);
  const int64_t grain = (fold == Fold::exp_sum ? costly_grain : cheap_grain) / task;
  parallel_for(e.outer * segments * chunks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t column = i % chunks * chunk, rest = i / chunks;
      const int64_t segment = rest % segments, o = rest / segments;
      const int64_t first = segment * length, rows = std::min(length, e.n - first);
      const T* from = x + (o * e.n + first) * e.inner + column;
      const int64_t at = o * e.inner + column;
      double* to = parts.data() + segment * e.outer * e.inner + at;
      if (e.inner == 1) {
        *to = fold_row(fold, from, rows, shift ? shift[at] : 0.0);
      } else {
        kernels<T>().columns[static_cast<int>(fold)](from, rows, e.inner,
                                                     std::min(chunk, e.inner - column),
                                                     shift ? shift + at : nullptr, to);
      }
    }
  });
  const int64_t count = e.outer * e.inner;
  for (int64_t segment = 1; segment < segments; ++segment) {
    for (int64_t i = 0; i < count; ++i) {
      parts[i] = combine(fold, parts[i], parts[segment * count + i]);
    }
  }
  parts.resize(count);
  return parts;
}

template <class T>
std::vector<double> reduced(ReduceOp op, const T* x, const Extents& e) {
  switch (op) {
    case ReduceOp::sum:
      return folded(Fold::sum, x, e, nullptr);
    case ReduceOp::mean: {
      std::vector<double> y = folded(Fold::sum, x, e, nullptr);
      for (double& v : y) v /= static_cast<double>(e.n);
      return y;
    }
    case ReduceOp::prod:
      return folded(Fold::prod, x, e, nullptr);
    case ReduceOp::max:
      return folded(Fold::maximum, x, e, nullptr);
    case ReduceOp::min:
      return folded(Fold::minimum, x, e, nullptr);
    case ReduceOp::logsumexp: {
      std::vector<double> y = folded(Fold::maximum, x, e, nullptr);
      const std::vector<double> sums = folded(Fold::exp_sum, x, e, y.data());
      for (size_t i = 0; i < y.size(); ++i) {
        if (std::isfinite(y[i])) y[i] += std::log(sums[i]);
      }
      return y;
    }
    case ReduceOp::norm: {
      std::vector<double> y = folded(Fold::sum_squares, x, e, nullptr);
      for (double& v : y) v = std::sqrt(v);
      return y;
    }
  }
  __builtin_unreachable();
}

// The gradient of one column: x, dx at steps of `inner`.
template <class T>
void column_backward(ReduceOp op, const T* x, double y, double dy, int64_t n, int64_t inner,
                     T* dx) {
  const auto value = [&](int64_t k) { return static_cast<double>(Accumulator<T>(x[k * inner])); };
  const auto put = [&](int64_t k, double v) { dx[k * inner] = convert_value<T>(v); };
  switch (op) {
    case ReduceOp::prod: {
      std::vector<double> before(n);
      double product = 1.0;
      for (int64_t k = 0; k < n; ++k) {
        before[k] = product;
        product *= value(k);
      }
      product = 1.0;
      for (int64_t k = n - 1; k >= 0; --k) {
        put(k, dy * (before[k] * product));
        product *= value(k);
      }
      return;
    }
    case ReduceOp::max:
    case ReduceOp::min: {
      int64_t ties = 0;
      for (int64_t k = 0; k < n; ++k) ties += value(k) == y;
      const double share = dy / static_cast<double>(ties);
      for (int64_t k = 0; k < n; ++k) put(k, value(k) == y ? share : 0.0);
      return;
    }
    case ReduceOp::logsumexp:
      for (int64_t k = 0; k < n; ++k) {
        put(k, y == -infinity ? 0.0
                              : dy * static_cast<double>(
                                         scalar::exp(static_cast<Accumulator<T>>(value(k) - y))));
      }
      return;
    default:
      for (int64_t k = 0; k < n; ++k) put(k, y == 0.0 ? 0.0 : dy * value(k) / y);
  }
}

template <class T>
void reduce_backward(const prim::ReduceBackward& p) {
  using A = Accumulator<T>;
  const Extents e{p.dx.size(0), p.dx.size(1), p.dx.size(2)};
  const T* dy = p.dy.data<T>();
  T* dx = p.dx.data<T>();
  const int64_t work = std::max<int64_t>(e.n, 1);
  if (p.op == ReduceOp::sum || p.op == ReduceOp::mean) {
    const auto spread = [&](T v) {
      return p.op == ReduceOp::sum ? v : convert_value<T>(static_cast<A>(v) / static_cast<A>(e.n));
    };
    // Rows [outer * n] of dx each hold the row [inner] of their outer index.
    parallel_for(e.outer * e.n, cheap_grain / e.inner, [&](int64_t begin, int64_t end) {
      int64_t row = begin;
      while (row < end) {
        const T* from = dy + row / e.n * e.inner;
        const int64_t stop = std::min(end, (row / e.n + 1) * e.n);
        if (e.inner == 1) {
          std::fill_n(dx + row, stop - row, spread(*from));
        } else {
          T* to = dx + row * e.inner;
          for (int64_t j = 0; j < e.inner; ++j) to[j] = spread(from[j]);
          for (int64_t r = row + 1; r < stop; ++r) std::copy_n(to, e.inner, dx + r * e.inner);
        }
        row = stop;
      }
    });
    return;
  }
  const T* x = p.x.data<T>();
  const T* y = p.op == ReduceOp::prod ? nullptr : p.y.data<T>();
  parallel_for(e.outer * e.inner, costly_grain / work, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i / e.inner * e.n * e.inner + i % e.inner;
      column_backward(p.op, x + first, y ? static_cast<double>(A(y[i])) : 0.0,
                      static_cast<double>(A(dy[i])), e.n, e.inner, dx + first);
    }
  });
}

}  // namespace

void CpuBackend::kernel(const prim::Reduce& p) {
  visit_dtype(p.y.dtype(), Floats{}, [&]<class T>() {
    const Extents e{p.x.size(0), p.x.size(1), p.x.size(2)};
    const std::vector<double> y = reduced(p.op, p.x.data<T>(), e);
    T* to = p.y.data<T>();
    for (size_t i = 0; i < y.size(); ++i) to[i] = convert_value<T>(y[i]);
  });
}

void CpuBackend::kernel(const prim::ReduceBackward& p) {
  if (p.dx.numel() == 0) return;
  visit_dtype(p.dx.dtype(), Floats{}, [&]<class T>() { reduce_backward<T>(p); });
}

void CpuBackend::kernel(const prim::ArgMax& p) {
  visit_dtype(p.x.dtype(), Floats{}, [&]<class T>() {
    using A = Accumulator<T>;
    const int64_t n = p.x.size(1), inner = p.x.size(2);
    const T* x = p.x.data<T>();
    int64_t* y = p.y.data<int64_t>();
    parallel_for(p.y.numel(), costly_grain / n, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T* from = x + i / inner * n * inner + i % inner;
        int64_t best = 0;
        A largest = from[0];
        for (int64_t k = 1; k < n && largest == largest; ++k) {
          const A v = from[k * inner];
          if (v > largest || v != v) {
            largest = v;
            best = k;
          }
        }
        y[i] = best;
      }
    });
  });
}

void CpuBackend::kernel(const prim::SumSquares& p) {
  visit_dtype(p.x.dtype(), Floats{}, [&]<class T>() {
    *p.y.data<double>() =
        folded(Fold::sum_squares, p.x.data<T>(), {1, p.x.numel(), 1}, nullptr).front();
  });
}

}  // namespace crucible::cpu
