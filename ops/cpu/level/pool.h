/// Pooling of one image; one table a level.
#pragma once

#include <cstdint>

#include "core/primitives.h"

namespace crucible::cpu {

/// One image x, dx [h, w, c], y, dy [ho, wo, c].
template <class T>
struct PoolImage {
  int64_t h, w, c, ho, wo;
  Window window;
  const T* x;  ///< Unused by the gradient of the average.
  T* y;        ///< Written by forward, holds dy for backward.
  /// Backward only: zeroed sums [h, w, c] and what of the channels to do, at most pool_channels.
  Accumulator<T>* dx = nullptr;
  int64_t channel_begin = 0, channel_end = 0;
};

/// Channels that pass through the registers and the first-level cache together.
constexpr int64_t pool_channels = 64;

template <class T>
struct PoolOf {
  /// Rows [row_begin, row_end) of y.
  void (*maximum)(const PoolImage<T>& image, int64_t row_begin, int64_t row_end);
  void (*average)(const PoolImage<T>& image, int64_t row_begin, int64_t row_end);
  void (*maximum_backward)(const PoolImage<T>& image);
  void (*average_backward)(const PoolImage<T>& image);
};

struct PoolKernels {
  PoolOf<double> f64;
  PoolOf<float> f32;
  PoolOf<Float16> f16;
  PoolOf<BFloat16> bf16;
};

namespace v2 {
extern const PoolKernels pool;
}
namespace v3 {
extern const PoolKernels pool;
}
namespace v4 {
extern const PoolKernels pool;
}

}  // namespace crucible::cpu
