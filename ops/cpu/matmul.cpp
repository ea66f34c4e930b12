// Matrix products: oneDNN for f32 and bf16, Eigen for f64 and for what oneDNN lacks, f16 through
// f32.  The bias is fused by oneDNN; ReLU is a pass of ours, because oneDNN's turns NaN into 0.
#include "ops/cpu/onednn.h"

#include <omp.h>

#include <Eigen/Core>
#include <algorithm>

#include "core/storage.h"
#include "ops/cpu/cpu_backend.h"

namespace crucible::cpu {
namespace {

using onednn::Desc;
using onednn::Dims;
using onednn::Key;
using onednn::Plan;

// Copying the weights into oneDNN's own layout pays within one product of this many rows; below, it
// pays from this many products by the same contents on, as in inference.  Measured: the copied
// layout saves 5 % at many rows, 25 % at 16; both layouts give the same bits.
constexpr int64_t rows_worth_packing = 1024;
constexpr int uses_worth_packing = 4;

struct Sizes {
  int64_t batch, batch_a, batch_b, m, n, k;
};

// The product with as few batches as possible: rows of all batches that share b are one matrix.
Sizes sizes_of(const prim::Matmul& p) {
  Sizes s{p.y.size(0), p.a.size(0), p.b.size(0),
          p.y.size(1), p.y.size(2), p.a.size(p.transpose_a ? 1 : 2)};
  if (s.batch_b == 1 && s.batch_a == s.batch && !p.transpose_a) {
    s.m *= s.batch;
    s.batch = s.batch_a = 1;
  }
  return s;
}

// A [batch, rows, columns] operand, or [rows, columns] if the product is not batched.
Desc operand(bool batched, int64_t batch, int64_t rows, int64_t columns, DType dtype,
             bool transposed) {
  const int64_t row = transposed ? 1 : columns, column = transposed ? rows : 1;
  return batched ? onednn::strided({batch, rows, columns}, dtype, {rows * columns, row, column})
                 : onednn::strided({rows, columns}, dtype, {row, column});
}

struct Product {
  Plan plan;
  Desc b;  // as the caller stores it
  bool packed = false;
};

Product make_product(const prim::Matmul& p, const Sizes& s, bool pack) {
  const DType dtype = p.y.dtype();
  const bool batched = s.batch > 1;
  const Desc a = operand(batched, s.batch_a, s.m, s.k, dtype, p.transpose_a);
  const Desc b = operand(batched, s.batch_b, s.k, s.n, dtype, p.transpose_b);
  const Desc y = operand(batched, s.batch, s.m, s.n, dtype, false);
  const Desc bias = p.bias.defined() ? operand(batched, 1, 1, s.n, dtype, false) : Desc();
  if (pack) {
    Plan plan = onednn::matmul(a, onednn::any_layout({s.k, s.n}, dtype), bias, y);
    if (plan.call.usable()) return {std::move(plan), b, true};
  }
  return {onednn::matmul(a, b, bias, y), b};
}

bool packs(const prim::Matmul& p, const Sizes& s) {
  return s.batch == 1 && p.b.storage()->tag() == MemoryTag::parameters &&
         (s.m >= rows_worth_packing ||
          onednn::count_uses(p.b, p.transpose_b) >= uses_worth_packing);
}

Product& prepared(const prim::Matmul& p) {
  thread_local onednn::PlanCache<Product> cache;
  const Sizes s = sizes_of(p);
  const bool pack = packs(p, s);
  const Key key{static_cast<int64_t>(p.y.dtype()),
                s.batch,
                s.batch_a,
                s.batch_b,
                s.m,
                s.n,
                s.k,
                p.transpose_a | p.transpose_b << 1 | p.bias.defined() << 2 | pack << 3,
                omp_get_max_threads()};
  return cache.get(key, [&] { return make_product(p, s, pack); });
}

// Computes the product with bias by oneDNN into `y`; false if oneDNN has only reference code.
bool run_onednn(const prim::Matmul& p, const Tensor& y, Allocator& allocator) {
  Product& product = prepared(p);
  if (!product.plan.call.usable()) return false;
  const auto run = [&](const void* b) {
    if (p.bias.defined()) {
      product.plan.call.run(allocator, {p.a.raw_data(), b, y.raw_data(), p.bias.raw_data()});
    } else {
      product.plan.call.run(allocator, {p.a.raw_data(), b, y.raw_data()});
    }
  };
  if (product.packed) {
    run(onednn::PackedWeights(p.b, product.b, product.plan.weights, allocator).data());
  } else {
    run(p.b.raw_data());
  }
  return true;
}

template <class T>
void run_eigen(const prim::Matmul& p, const Tensor& y) {
  using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  using Map = Eigen::Map<const Matrix>;
  const Sizes s = sizes_of(p);
  for (int64_t i = 0; i < s.batch; ++i) {
    const T* a = p.a.data<T>() + (s.batch_a == 1 ? 0 : i * s.m * s.k);
    const T* b = p.b.data<T>() + (s.batch_b == 1 ? 0 : i * s.k * s.n);
    Eigen::Map<Matrix> out(y.data<T>() + i * s.m * s.n, s.m, s.n);
    if (p.transpose_a && p.transpose_b) {
      out.noalias() = Map(a, s.k, s.m).transpose() * Map(b, s.n, s.k).transpose();
    } else if (p.transpose_a) {
      out.noalias() = Map(a, s.k, s.m).transpose() * Map(b, s.k, s.n);
    } else if (p.transpose_b) {
      out.noalias() = Map(a, s.m, s.k) * Map(b, s.n, s.k).transpose();
    } else {
      out.noalias() = Map(a, s.m, s.k) * Map(b, s.k, s.n);
    }
    if (p.bias.defined()) {
      out.rowwise() += Eigen::Map<const Eigen::Matrix<T, 1, Eigen::Dynamic>>(p.bias.data<T>(), s.n);
    }
  }
}

// K = 0: y = bias in every row, or 0.
template <class T>
void fill_rows(const Tensor& bias, const Tensor& y) {
  const int64_t n = y.size(2);
  T* to = y.data<T>();
  for (int64_t row = 0; row < y.numel() / n; ++row, to += n) {
    if (bias.defined()) {
      std::copy_n(bias.data<T>(), n, to);
    } else {
      std::fill_n(to, n, T(0.f));
    }
  }
}

}  // namespace

Tensor CpuBackend::widened(const Tensor& x) {
  if (!x.defined()) return {};
  const Tensor wide = wide_output(x);
  kernel(prim::Copy{.x = x, .y = wide});
  return wide;
}

Tensor CpuBackend::wide_output(const Tensor& x) {
  const MemoryTagScope scope(MemoryTag::workspace);
  return Tensor::empty(x.shape(), DType::f32, x.device());
}

std::string implementation_of(const prim::Matmul& p) {
  if (p.y.dtype() == DType::f64 || p.y.dtype() == DType::f16) return "eigen";
  const auto& call = prepared(p).plan.call;
  return call.usable() ? call.implementation() : "eigen";
}

void CpuBackend::kernel(const prim::Matmul& p) {
  if (p.y.numel() == 0) return;
  const bool gelu = p.activation == Activation::gelu_tanh;
  const Tensor& y = gelu ? p.pre_activation : p.y;
  if (p.a.numel() == 0 || p.b.numel() == 0) {
    visit_dtype(y.dtype(), Floats{}, [&]<class T>() { fill_rows<T>(p.bias, y); });
  } else if (y.dtype() == DType::f64) {
    run_eigen<double>(p, y);
  } else if (y.dtype() == DType::f16 || !run_onednn(p, y, allocator_)) {
    if (y.dtype() == DType::f32) {
      run_eigen<float>(p, y);
    } else {
      const Tensor a = widened(p.a), b = widened(p.b), bias = widened(p.bias);
      const Tensor wide = wide_output(y);
      kernel(prim::Matmul{.a = a,
                          .b = b,
                          .transpose_a = p.transpose_a,
                          .transpose_b = p.transpose_b,
                          .bias = bias,
                          .y = wide});
      kernel(prim::Copy{.x = wide, .y = y});
    }
  }
  if (gelu) {
    kernel(prim::Unary{.op = UnaryOp::gelu_tanh, .x = p.pre_activation, .y = p.y});
  } else if (p.activation == Activation::relu) {
    kernel(prim::Unary{.op = UnaryOp::relu, .x = p.y, .y = p.y});
  }
}

}  // namespace crucible::cpu
