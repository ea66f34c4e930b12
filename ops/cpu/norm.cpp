// Batch norm and layer norm.  Batch norm moves 3 values an element forward (x twice, y) and 5 back
// (x and dy twice, dx); the rectifier's mask is recomputed from x, or with a residual read from y
// once and kept in dresidual.  All sums over rows go through RowBlocks.
#include "ops/cpu/level/norm.h"

#include <cmath>

#include "ops/cpu/blocks.h"
#include "ops/cpu/cpu_backend.h"
#include "ops/cpu/level.h"

namespace crucible::cpu {
namespace {

template <class T>
const NormOf<T>& kernels() {
  return at_level(v2::norm, v3::norm, v4::norm).of<T>();
}

template <class T, class A>
BatchNormRows<T, A> slice(BatchNormRows<T, A> b, int64_t row, int64_t rows, int64_t column,
                          int64_t n) {
  const int64_t offset = row * b.stride + column;
  b.x += offset;
  if (b.other) b.other += offset;
  if (b.dy) b.dy += offset;
  if (b.out) b.out += offset;
  b.rows = rows;
  b.n = n;
  b.mean += column;
  b.scale += column;
  b.beta += column;
  return b;
}

// mean, rstd and the running values of a training step.
template <class T>
void batch_statistics(const prim::BatchNorm& p, const RowBlocks& blocks) {
  using A = Accumulator<T>;
  const int64_t c = blocks.columns;
  const auto means = zeros<A>(blocks.count * c), squares = zeros<A>(blocks.count * c);
  const auto pivot = zeros<A>(c);  // the first row, where it is finite
  for (int64_t j = 0; j < c; ++j) {
    const A value = p.x.data<T>()[j];
    if (std::isfinite(value)) pivot[j] = value;
  }
  blocks.for_each([&](int64_t block, int64_t row, int64_t rows, int64_t column, int64_t n) {
    kernels<T>().statistics(p.x.data<T>() + row * c + column, pivot.get() + column, rows, c, n,
                            means.get() + block * c + column, squares.get() + block * c + column);
  });
  A *mean = p.mean.data<A>(), *rstd = p.rstd.data<A>();
  A *running_mean = p.running_mean.data<A>(), *running_var = p.running_var.data<A>();
  blocks.for_columns([&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; ++j) {
      double m = NAN, m2 = NAN, count = 0.0;
      for (int64_t block = 0; block < blocks.count; ++block) {
        const double rows =
            static_cast<double>(std::min(blocks.length, blocks.rows - block * blocks.length));
        const double block_mean = means[block * c + j], block_m2 = squares[block * c + j];
        if (block == 0) {
          m = block_mean;
          m2 = block_m2;
        } else {
          const double delta = block_mean - m;
          m += delta * rows / (count + rows);
          m2 += block_m2 + delta * delta * count * rows / (count + rows);
        }
        count += rows;
      }
      m += pivot[j];
      mean[j] = static_cast<A>(m);
      rstd[j] = static_cast<A>(1.0 / std::sqrt(m2 / count + p.eps));
      running_mean[j] = static_cast<A>((1.0 - p.momentum) * running_mean[j] + p.momentum * m);
      running_var[j] =
          static_cast<A>((1.0 - p.momentum) * running_var[j] + p.momentum * (m2 / (count - 1.0)));
    }
  });
}

template <class T>
void batch_norm(const prim::BatchNorm& p) {
  using A = Accumulator<T>;
  const RowBlocks blocks(p.x.size(0), p.x.size(1));
  const int64_t c = blocks.columns;
  if (p.training) {
    batch_statistics<T>(p, blocks);
  } else {
    for (int64_t j = 0; j < c; ++j) {
      p.mean.data<A>()[j] = p.running_mean.data<A>()[j];
      p.rstd.data<A>()[j] =
          static_cast<A>(1.0 / std::sqrt(static_cast<double>(p.running_var.data<A>()[j]) + p.eps));
    }
  }
  const auto scale = zeros<A>(c);
  for (int64_t j = 0; j < c; ++j) scale[j] = p.gamma.data<A>()[j] * p.rstd.data<A>()[j];
  const BatchNormRows<T, A> all{.x = p.x.data<T>(),
                                .other = p.residual.defined() ? p.residual.data<T>() : nullptr,
                                .dy = nullptr,
                                .out = p.y.data<T>(),
                                .rows = blocks.rows,
                                .stride = c,
                                .n = c,
                                .mean = p.mean.data<A>(),
                                .scale = scale.get(),
                                .beta = p.beta.data<A>()};
  parallel_for(blocks.rows, cheap_grain / std::max<int64_t>(c, 1), [&](int64_t begin, int64_t end) {
    kernels<T>().batch_norm(slice(all, begin, end - begin, 0, c), p.relu);
  });
}

template <class T>
void batch_norm_backward(const prim::BatchNormBackward& p) {
  using A = Accumulator<T>;
  const RowBlocks blocks(p.x.size(0), p.x.size(1));
  const int64_t c = blocks.columns;
  const auto scale = zeros<A>(c), mean_dz = zeros<A>(c), slope = zeros<A>(c);
  for (int64_t j = 0; j < c; ++j) scale[j] = p.gamma.data<A>()[j] * p.rstd.data<A>()[j];
  Mask mask = !p.relu ? Mask::none : p.y.defined() ? Mask::from_y : Mask::from_x;
  BatchNormRows<T, A> all{.x = p.x.data<T>(),
                          .other = mask == Mask::from_y ? p.y.data<T>() : nullptr,
                          .dy = p.dy.data<T>(),
                          .out = p.dresidual.defined() ? p.dresidual.data<T>() : nullptr,
                          .rows = blocks.rows,
                          .stride = c,
                          .n = c,
                          .mean = p.mean.data<A>(),
                          .scale = scale.get(),
                          .beta = p.beta.data<A>()};

  const auto sums = zeros<A>(blocks.count * c), products = zeros<A>(blocks.count * c);
  blocks.for_each([&](int64_t block, int64_t row, int64_t rows, int64_t column, int64_t n) {
    kernels<T>().batch_norm_sums(slice(all, row, rows, column, n), mask,
                                 sums.get() + block * c + column,
                                 products.get() + block * c + column);
  });
  A *dgamma = p.dgamma.data<A>(), *dbeta = p.dbeta.data<A>();
  const A* rstd = p.rstd.data<A>();
  blocks.for_columns([&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; ++j) {
      double sum = 0.0, product = 0.0;
      for (int64_t block = 0; block < blocks.count; ++block) {
        sum += sums[block * c + j];
        product += products[block * c + j];
      }
      const double r = rstd[j];
      dbeta[j] = static_cast<A>(sum);
      dgamma[j] = static_cast<A>(product * r);
      if (p.training) {
        mean_dz[j] = static_cast<A>(sum / static_cast<double>(blocks.rows));
        slope[j] = static_cast<A>(product * r * r / static_cast<double>(blocks.rows));
      }
    }
  });

  if (p.dresidual.defined()) {  // holds dz
    all.dy = p.dresidual.data<T>();
    mask = Mask::none;
  }
  all.out = p.dx.data<T>();
  parallel_for(blocks.rows, cheap_grain / std::max<int64_t>(c, 1), [&](int64_t begin, int64_t end) {
    kernels<T>().batch_norm_backward(slice(all, begin, end - begin, 0, c), mask, mean_dz.get(),
                                     slope.get());
  });
}

template <class T>
void layer_norm_backward(const prim::LayerNormBackward& p) {
  using A = Accumulator<T>;
  const RowBlocks blocks(p.x.size(0), p.x.size(1));
  const int64_t c = blocks.columns;
  const auto dgammas = zeros<A>(blocks.count * c), dbetas = zeros<A>(blocks.count * c);
  parallel_for(blocks.count, cheap_grain / (blocks.length * std::max<int64_t>(c, 1)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t block = begin; block < end; ++block) {
                   const int64_t row = block * blocks.length, at = row * c;
                   kernels<T>().layer_norm_backward(
                       p.x.data<T>() + at, p.dy.data<T>() + at, p.gamma.data<A>(),
                       p.mean.data<A>() + row, p.rstd.data<A>() + row, p.dx.data<T>() + at,
                       dgammas.get() + block * c, dbetas.get() + block * c,
                       std::min(blocks.length, blocks.rows - row), c);
                 }
               });
  A *dgamma = p.dgamma.data<A>(), *dbeta = p.dbeta.data<A>();
  blocks.for_columns([&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; ++j) {
      double gain = 0.0, bias = 0.0;
      for (int64_t block = 0; block < blocks.count; ++block) {
        gain += dgammas[block * c + j];
        bias += dbetas[block * c + j];
      }
      dgamma[j] = static_cast<A>(gain);
      dbeta[j] = static_cast<A>(bias);
    }
  });
}

}  // namespace

void CpuBackend::kernel(const prim::BatchNorm& p) {
  visit_dtype(p.x.dtype(), Floats{}, [&]<class T>() { batch_norm<T>(p); });
}

void CpuBackend::kernel(const prim::BatchNormBackward& p) {
  visit_dtype(p.x.dtype(), Floats{}, [&]<class T>() { batch_norm_backward<T>(p); });
}

void CpuBackend::kernel(const prim::LayerNorm& p) {
  visit_dtype(p.x.dtype(), Floats{}, [&]<class T>() {
    using A = Accumulator<T>;
    const int64_t c = p.x.size(1);
    parallel_for(p.x.size(0), cheap_grain / std::max<int64_t>(c, 1),
                 [&](int64_t begin, int64_t end) {
                   kernels<T>().layer_norm(p.x.data<T>() + begin * c, p.gamma.data<A>(),
                                           p.beta.data<A>(), static_cast<A>(p.eps),
                                           p.y.data<T>() + begin * c, p.mean.data<A>() + begin,
                                           p.rstd.data<A>() + begin, end - begin, c);
                 });
  });
}

void CpuBackend::kernel(const prim::LayerNormBackward& p) {
  visit_dtype(p.x.dtype(), Floats{}, [&]<class T>() { layer_norm_backward<T>(p); });
}

}  // namespace crucible::cpu
