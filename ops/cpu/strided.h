/// Walking a strided tensor in row-major order, and reading blocks of it as contiguous values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "core/tensor.h"
#include "ops/cpu/level.h"
#include "ops/cpu/level/convert.h"

namespace crucible::cpu {

/// Elements that the slice kernels see at a time where values pass through a buffer: the buffers of
/// a primitive stay in the first-level cache.
constexpr int64_t block_elements = 1024;

inline const ConvertKernels& convert_kernels() {
  return at_level(v2::convert, v3::convert, v4::convert);
}

/// The axes of a tensor with neighbours merged where they are one run in memory.
struct Walk {
  explicit Walk(const Tensor& x) : Walk(x.shape(), x.strides()) {}
  Walk(const Shape& shape, const Strides& of) {
    for (int axis = 0; axis < shape.rank(); ++axis) {
      if (shape[axis] == 1) continue;
      if (rank > 0 && strides[rank - 1] == of[axis] * shape[axis]) {
        sizes[rank - 1] *= shape[axis];
        strides[rank - 1] = of[axis];
      } else {
        sizes[rank] = shape[axis];
        strides[rank++] = of[axis];
      }
    }
    if (rank == 0) {
      sizes[0] = 1;
      strides[0] = 1;
      rank = 1;
    }
  }

  bool contiguous() const { return rank == 1 && strides[0] == 1; }
  bool constant() const { return rank == 1 && strides[0] == 0; }

  /// Calls f(offset, stride, count) for the runs along the last axis that make up elements
  /// [begin, begin + count) in row-major order.
  template <class F>
  void runs(int64_t begin, int64_t count, F&& f) const {
    int64_t index[Shape::max_rank];
    int64_t offset = 0;
    for (int axis = rank - 1; axis >= 0; --axis) {
      index[axis] = begin % sizes[axis];
      begin /= sizes[axis];
      offset += index[axis] * strides[axis];
    }
    const int last = rank - 1;
    while (count > 0) {
      const int64_t n = std::min(count, sizes[last] - index[last]);
      f(offset, strides[last], n);
      count -= n;
      offset -= index[last] * strides[last];
      index[last] = 0;
      for (int axis = last - 1; axis >= 0; --axis) {
        offset += strides[axis];
        if (++index[axis] < sizes[axis]) break;
        offset -= sizes[axis] * strides[axis];
        index[axis] = 0;
      }
    }
  }

  int rank = 0;
  int64_t sizes[Shape::max_rank];
  int64_t strides[Shape::max_rank];
};

/// A value of type From as To: floating to integer truncates and saturates, NaN becomes 0; to bool
/// is "not zero".
template <class To, class From>
To convert_value(From x) {
  constexpr bool half = std::is_same_v<From, Float16> || std::is_same_v<From, BFloat16>;
  if constexpr (std::is_same_v<To, From>) {
    return x;
  } else if constexpr (half) {
    return convert_value<To>(static_cast<float>(x));
  } else if constexpr (std::is_same_v<To, bool>) {
    return x != From(0);
  } else if constexpr (std::is_same_v<To, Float16> || std::is_same_v<To, BFloat16>) {
    return To(static_cast<float>(x));
  } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
    using Limits = std::numeric_limits<To>;
    // 2^digits is exact in every floating type, max() is not.
    constexpr From past_max = From(2) * static_cast<From>(Limits::max() / 2 + 1);
    if (x >= past_max) return Limits::max();
    if (x <= static_cast<From>(Limits::min())) return Limits::min();
    return x == x ? static_cast<To>(x) : To(0);
  } else if constexpr (std::is_integral_v<To> && sizeof(To) < sizeof(From)) {
    using Limits = std::numeric_limits<To>;
    return static_cast<To>(std::clamp<From>(x, Limits::min(), Limits::max()));
  } else if constexpr (std::is_same_v<To, uint8_t> && std::is_signed_v<From>) {
    return static_cast<To>(std::clamp<From>(x, 0, 255));
  } else {
    return static_cast<To>(x);
  }
}

/// y[i] = x[i * stride], converted.
template <class To, class From>
void read_run(const From* x, int64_t stride, To* y, int64_t n) {
  if (stride == 1) {
    if constexpr (std::is_same_v<To, From>) {
      std::memcpy(y, x, n * sizeof(To));
    } else if constexpr (std::is_same_v<From, BFloat16> && std::is_same_v<To, float>) {
      convert_kernels().widen_bf16(x, y, n);
    } else if constexpr (std::is_same_v<From, Float16> && std::is_same_v<To, float>) {
      convert_kernels().widen_f16(x, y, n);
    } else if constexpr (std::is_same_v<From, float> && std::is_same_v<To, BFloat16>) {
      convert_kernels().narrow_bf16(x, y, n);
    } else if constexpr (std::is_same_v<From, float> && std::is_same_v<To, Float16>) {
      convert_kernels().narrow_f16(x, y, n);
    } else {
      for (int64_t i = 0; i < n; ++i) y[i] = convert_value<To>(x[i]);
    }
  } else if (stride == 0) {
    std::fill_n(y, n, convert_value<To>(x[0]));
  } else {
    for (int64_t i = 0; i < n; ++i) y[i] = convert_value<To>(x[i * stride]);
  }
}

/// Reads blocks of a tensor of T as contiguous A.
template <class T, class A>
class Reader {
 public:
  explicit Reader(const Tensor& x) : data_(x.data<T>()), walk_(x) {}

  /// Elements [begin, begin + count): in place where they lie so, else through `buffer`.
  const A* read(int64_t begin, int64_t count, A* buffer) const {
    if constexpr (std::is_same_v<T, A>) {
      if (walk_.contiguous()) return data_ + begin;
      const int last = walk_.rank - 1;
      const int64_t column = begin % walk_.sizes[last];
      if (walk_.strides[last] == 1 && column + count <= walk_.sizes[last]) {
        const A* found = nullptr;
        walk_.runs(begin, count, [&](int64_t offset, int64_t, int64_t) { found = data_ + offset; });
        return found;
      }
    }
    A* to = buffer;
    walk_.runs(begin, count, [&](int64_t offset, int64_t stride, int64_t n) {
      read_run(data_ + offset, stride, to, n);
      to += n;
    });
    return buffer;
  }

  /// Whether every part can be read in place.
  bool contiguous() const { return std::is_same_v<T, A> && walk_.contiguous(); }

 private:
  const T* data_;
  Walk walk_;
};

}  // namespace crucible::cpu
