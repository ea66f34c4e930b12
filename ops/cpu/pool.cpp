// Pooling: forward is shared over rows of output pixels, backward over images and blocks of
// channels, so that no two threads add to the same element.  16-bit gradients are summed in f32.
#include "ops/cpu/level/pool.h"
#include "ops/cpu/cpu_backend.h"
#include "ops/cpu/level.h"
#include "ops/cpu/parallel.h"

namespace crucible::cpu {
namespace {

template <class T>
const PoolOf<T>& kernels() {
  const PoolKernels& all = at_level(v2::pool, v3::pool, v4::pool);
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

// Image `n` of x and y.
template <class T>
PoolImage<T> image_of(const Tensor& x, const Tensor& y, const Window& window, const Shape& input,
                      int64_t n) {
  const int64_t h = input[1], w = input[2], c = input[3], ho = y.size(1), wo = y.size(2);
  return {.h = h,
          .w = w,
          .c = c,
          .ho = ho,
          .wo = wo,
          .window = window,
          .x = x.defined() ? x.data<T>() + n * h * w * c : nullptr,
          .y = y.data<T>() + n * ho * wo * c};
}

}  // namespace

void CpuBackend::kernel(const prim::Pool& p) {
  if (p.y.numel() == 0) return;
  const int64_t rows = p.y.size(1), taps = p.window.kernel[0] * p.window.kernel[1];
  const int64_t row_cost = p.y.size(2) * p.y.size(3) * taps;
  visit_dtype(p.y.dtype(), Floats{}, [&]<class T>() {
    const auto kernel = p.op == PoolOp::max ? kernels<T>().maximum : kernels<T>().average;
    parallel_for(p.y.size(0) * rows, std::max<int64_t>(cheap_grain / row_cost, 1),
                 [&](int64_t begin, int64_t end) {
                   while (begin < end) {  // rows of one image at a time
                     const int64_t n = begin / rows, first = begin % rows;
                     const int64_t last = std::min(rows, first + end - begin);
                     kernel(image_of<T>(p.x, p.y, p.window, p.x.shape(), n), first, last);
                     begin += last - first;
                   }
                 });
  });
}

void CpuBackend::kernel(const prim::PoolBackward& p) {
  if (p.dx.numel() == 0) return;
  const Tensor sums = p.dx.dtype() == statistics_dtype(p.dx.dtype()) ? p.dx : wide_output(p.dx);
  const int64_t channels = p.dx.size(3), pixels = p.dx.size(1) * p.dx.size(2);
  const int64_t blocks = (channels + pool_channels - 1) / pool_channels;
  visit_dtype(p.dx.dtype(), Floats{}, [&]<class T>() {
    using A = Accumulator<T>;
    const auto kernel =
        p.op == PoolOp::max ? kernels<T>().maximum_backward : kernels<T>().average_backward;
    const int64_t task_cost = pixels * std::min(channels, pool_channels);
    parallel_for(p.dx.size(0) * blocks, std::max<int64_t>(cheap_grain / task_cost, 1),
                 [&](int64_t begin, int64_t end) {
                   for (; begin < end; ++begin) {
                     const int64_t n = begin / blocks, c = begin % blocks * pool_channels;
                     const int64_t count = std::min(pool_channels, channels - c);
                     PoolImage<T> image = image_of<T>(p.x, p.dy, p.window, p.dx.shape(), n);
                     image.dx = sums.data<A>() + n * pixels * channels;
                     image.channel_begin = c;
                     image.channel_end = c + count;
                     for (int64_t i = 0; i < pixels; ++i) {
                       std::fill_n(image.dx + i * channels + c, count, A(0));
                     }
                     kernel(image);
                   }
                 });
  });
  if (p.dx.dtype() != sums.dtype()) kernel(prim::Copy{.x = sums, .y = p.dx});
}

}  // namespace crucible::cpu
