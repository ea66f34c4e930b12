// Pooling of one image: for each output pixel, blocks of channels are kept in registers while the
// window is walked in row-major order.  Reads x once per window, writes y once; backward adds.
#include "ops/cpu/level/pool.h"

#include <limits>
#include <type_traits>

#include "core/dtype.h"

namespace crucible::cpu::CRUCIBLE_LEVEL {
namespace {

// The pixels of the image that the window of output pixel (i, j) covers.
struct Covered {
  int64_t top, bottom, left, right;
  int64_t count() const { return (bottom - top) * (right - left); }
};

template <class T>
Covered covered(const PoolImage<T>& m, int64_t i, int64_t j) {
  const int64_t top = i * m.window.stride[0] - m.window.padding[0];
  const int64_t left = j * m.window.stride[1] - m.window.padding[1];
  const int64_t bottom = top + m.window.kernel[0], right = left + m.window.kernel[1];
  return {top < 0 ? 0 : top, bottom < m.h ? bottom : m.h, left < 0 ? 0 : left,
          right < m.w ? right : m.w};
}

// Calls visit(covered pixels, offset of y, first channel, channels) for blocks of channels.
template <class T, class F>
[[gnu::always_inline]] inline void for_each_block(const PoolImage<T>& m, int64_t row_begin,
                                                  int64_t row_end, int64_t channel_begin,
                                                  int64_t channel_end, F&& visit) {
  for (int64_t i = row_begin; i < row_end; ++i) {
    for (int64_t j = 0; j < m.wo; ++j) {
      const Covered area = covered(m, i, j);
      for (int64_t c = channel_begin; c < channel_end; c += pool_channels) {
        const int64_t left = channel_end - c;
        visit(area, (i * m.wo + j) * m.c, c, left < pool_channels ? left : pool_channels);
      }
    }
  }
}

template <class T>
void maximum(const PoolImage<T>& m, int64_t row_begin, int64_t row_end) {
  using A = Accumulator<T>;
  for_each_block(m, row_begin, row_end, 0, m.c,
                 [&](const Covered& area, int64_t to, int64_t c, int64_t n) {
                   A best[pool_channels];
                   for (A& b : best) b = -std::numeric_limits<A>::infinity();
                   for (int64_t h = area.top; h < area.bottom; ++h) {
                     for (int64_t w = area.left; w < area.right; ++w) {
                       const T* x = m.x + (h * m.w + w) * m.c + c;
#pragma omp simd
                       for (int64_t k = 0; k < n; ++k) {
                         const A value = static_cast<A>(x[k]);
                         best[k] = (value > best[k]) | (value != value) ? value : best[k];
                       }
                     }
                   }
                   for (int64_t k = 0; k < n; ++k) m.y[to + c + k] = T(best[k]);
                 });
}

template <class T>
void average(const PoolImage<T>& m, int64_t row_begin, int64_t row_end) {
  using A = Accumulator<T>;
  for_each_block(m, row_begin, row_end, 0, m.c,
                 [&](const Covered& area, int64_t to, int64_t c, int64_t n) {
                   A sum[pool_channels] = {};
                   for (int64_t h = area.top; h < area.bottom; ++h) {
                     for (int64_t w = area.left; w < area.right; ++w) {
                       const T* x = m.x + (h * m.w + w) * m.c + c;
#pragma omp simd
                       for (int64_t k = 0; k < n; ++k) sum[k] += static_cast<A>(x[k]);
                     }
                   }
                   const A count = static_cast<A>(area.count());
                   for (int64_t k = 0; k < n; ++k) m.y[to + c + k] = T(sum[k] / count);
                 });
}

// The first largest pixel is found anew; a NaN is larger than all.
template <class T>
void maximum_backward(const PoolImage<T>& m) {
  using A = Accumulator<T>;
  using Index = std::conditional_t<sizeof(A) == 8, int64_t, int32_t>;  // as wide as A, for vectors
  for_each_block(m, 0, m.ho, m.channel_begin, m.channel_end,
                 [&](const Covered& area, int64_t from, int64_t c, int64_t n) {
                   A best[pool_channels];
                   Index winner[pool_channels];
                   for (int64_t k = 0; k < n; ++k) {
                     best[k] = -std::numeric_limits<A>::infinity();
                     winner[k] = static_cast<Index>(area.top * m.w + area.left);
                   }
                   for (int64_t h = area.top; h < area.bottom; ++h) {
                     for (int64_t w = area.left; w < area.right; ++w) {
                       const Index pixel = static_cast<Index>(h * m.w + w);
                       const T* x = m.x + pixel * m.c + c;
#pragma omp simd
                       for (int64_t k = 0; k < n; ++k) {
                         const A value = static_cast<A>(x[k]);
                         const bool wins =
                             (value > best[k]) | ((value != value) & (best[k] == best[k]));
                         best[k] = wins ? value : best[k];
                         winner[k] = wins ? pixel : winner[k];
                       }
                     }
                   }
                   if (area.count() <= 0) return;
                   for (int64_t k = 0; k < n; ++k) {
                     m.dx[winner[k] * m.c + c + k] += static_cast<A>(m.y[from + c + k]);
                   }
                 });
}

template <class T>
void average_backward(const PoolImage<T>& m) {
  using A = Accumulator<T>;
  for_each_block(m, 0, m.ho, m.channel_begin, m.channel_end,
                 [&](const Covered& area, int64_t from, int64_t c, int64_t n) {
                   A share[pool_channels];
                   const A count = static_cast<A>(area.count());
                   for (int64_t k = 0; k < n; ++k) {
                     share[k] = static_cast<A>(m.y[from + c + k]) / count;
                   }
                   for (int64_t h = area.top; h < area.bottom; ++h) {
                     for (int64_t w = area.left; w < area.right; ++w) {
                       A* dx = m.dx + (h * m.w + w) * m.c + c;
#pragma omp simd
                       for (int64_t k = 0; k < n; ++k) dx[k] += share[k];
                     }
                   }
                 });
}

template <class T>
constexpr PoolOf<T> kernels{maximum<T>, average<T>, maximum_backward<T>, average_backward<T>};

}  // namespace

extern const PoolKernels pool{kernels<double>, kernels<float>, kernels<Float16>, kernels<BFloat16>};

}  // namespace crucible::cpu::CRUCIBLE_LEVEL
