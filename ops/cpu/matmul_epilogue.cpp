// The gradient behind a matrix product's bias and activation: dz = dy * activation'(saved), with
// the column sums of dz taken while a band of rows is in the first-level cache.
#include <numeric>
#include <type_traits>

#include "ops/cpu/blocks.h"
#include "ops/cpu/cpu_backend.h"
#include "ops/cpu/level/elementwise.h"
#include "ops/cpu/level/norm.h"
#include "ops/cpu/strided.h"

namespace crucible::cpu {
namespace {

constexpr int64_t band_rows = 16;
// Narrower matrices are summed as if several rows were one, or vectors would be mostly empty.
constexpr int64_t narrow = 64;

template <class A>
using Derivative = void (*)(const A* saved, const A* dy, A* dx, int64_t n, A a, A b);

template <class A>
Derivative<A> derivative(Activation activation) {
  const ElementwiseKernels& all = at_level(v2::elementwise, v3::elementwise, v4::elementwise);
  const UnaryOp op = activation == Activation::relu ? UnaryOp::relu : UnaryOp::gelu_tanh;
  if constexpr (std::is_same_v<A, double>) {
    return all.f64.unary_backward[static_cast<int>(op)];
  } else {
    return all.f32.unary_backward[static_cast<int>(op)];
  }
}

// into[j] += column sums of x [rows, n], rows `stride` apart.
template <class A>
void add_columns(const A* x, int64_t rows, int64_t stride, int64_t n, A* into) {
  const auto sums = at_level(v2::norm, v3::norm, v4::norm).of<A>().column_sums;
  const int64_t together = stride == n && n < narrow ? 16 / std::gcd(n, int64_t{16}) : 1;
  if (together == 1 || rows < together) return sums(x, rows, stride, n, into);
  A wide[narrow * 16] = {};
  const int64_t groups = rows / together;
  sums(x, groups, n * together, n * together, wide);
  for (int64_t k = 0; k < together; ++k) {
    for (int64_t j = 0; j < n; ++j) into[j] += wide[k * n + j];
  }
  sums(x + groups * together * n, rows - groups * together, n, n, into);
}

// One block of rows and chunk of columns.
template <class T>
class Slice {
 public:
  using A = Accumulator<T>;

  Slice(const prim::BiasActivationBackward& p, int64_t stride)
      : saved_(p.activation == Activation::none ? nullptr : p.saved.data<T>()),
        dy_(p.dy.data<T>()),
        dz_(p.dz.defined() ? p.dz.data<T>() : nullptr),
        stride_(stride) {
    if (saved_) derivative_ = derivative<A>(p.activation);
  }

  void run(int64_t row, int64_t rows, int64_t column, int64_t n, A* sums) const {
    const bool whole = n == stride_;
    // Rows handed over at once: whole rows are one run of memory.
    const int64_t step = whole ? std::max<int64_t>(band_rows * RowBlocks::chunk / n, 1) : band_rows;
    for (int64_t first = 0; first < rows; first += step) {
      const int64_t count = std::min(step, rows - first);
      const int64_t at = (row + first) * stride_ + column;
      if (!saved_) {
        if constexpr (std::is_same_v<T, A>) {
          if (sums) add_columns(dy_ + at, count, stride_, n, sums);
        } else {
          with_rows(at, count, n, sums);
        }
      } else if (std::is_same_v<T, A> && dz_) {
        if constexpr (std::is_same_v<T, A>) in_place(at, count, n, whole, sums);
      } else {
        with_rows(at, count, n, sums);
      }
    }
  }

 private:
  // dz is of type A: computed where it belongs, then summed.
  void in_place(int64_t at, int64_t rows, int64_t n, bool whole, A* sums) const {
    const int64_t runs = whole ? 1 : rows, length = whole ? rows * n : n;
    for (int64_t r = 0; r < runs; ++r) {
      const int64_t i = at + r * stride_;
      derivative_(saved_ + i, dy_ + i, dz_ + i, length, A(0), A(0));
    }
    if (sums) add_columns(dz_ + at, rows, stride_, n, sums);
  }

  // Through a buffer, row by row; chunks have at most RowBlocks::chunk columns.
  void with_rows(int64_t at, int64_t rows, int64_t n, A* sums) const {
    A saved[RowBlocks::chunk], dz[RowBlocks::chunk];
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t i = at + r * stride_;
      read_run(dy_ + i, 1, dz, n);
      if (saved_) {
        read_run(saved_ + i, 1, saved, n);
        derivative_(saved, dz, dz, n, A(0), A(0));
      }
      if (sums) {
        for (int64_t j = 0; j < n; ++j) sums[j] += dz[j];
      }
      if (dz_) read_run(dz, 1, dz_ + i, n);
    }
  }

  const T* saved_;
  const T* dy_;
  T* dz_;
  int64_t stride_;
  Derivative<A> derivative_ = nullptr;
};

template <class T>
void bias_activation_backward(const prim::BiasActivationBackward& p) {
  using A = Accumulator<T>;
  const RowBlocks blocks(p.dy.size(0), p.dy.size(1));
  const int64_t n = blocks.columns;
  const bool wanted = p.db.defined();
  const auto sums = zeros<A>(wanted ? blocks.count * n : 0);
  const Slice<T> slice(p, n);
  blocks.for_each([&](int64_t block, int64_t row, int64_t rows, int64_t column, int64_t count) {
    slice.run(row, rows, column, count, wanted ? sums.get() + block * n + column : nullptr);
  });
  if (!wanted) return;
  T* db = p.db.data<T>();
  blocks.for_columns([&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; ++j) {
      double sum = 0.0;
      for (int64_t block = 0; block < blocks.count; ++block) sum += sums[block * n + j];
      db[j] = convert_value<T>(sum);
    }
  });
}

}  // namespace

void CpuBackend::kernel(const prim::BiasActivationBackward& p) {
  visit_dtype(p.dy.dtype(), Floats{}, [&]<class T>() { bias_activation_backward<T>(p); });
}

}  // namespace crucible::cpu
