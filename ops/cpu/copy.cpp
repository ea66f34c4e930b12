// Fill and copy: any dtypes, any strides.  A contiguous copy is memcpy in shares; a permutation of
// one dtype goes through square tiles, so that neither side strides through memory line by line;
// everything else walks runs.
#include "core/check.h"
#include "ops/cpu/cpu_backend.h"
#include "ops/cpu/parallel.h"
#include "ops/cpu/strided.h"

namespace crucible::cpu {
namespace {

// Unsigned integers that stand for any element of their size.
template <class F>
void visit_size(DType dtype, F&& f) {
  switch (size_of(dtype)) {
    case 1:
      return f.template operator()<uint8_t>();
    case 2:
      return f.template operator()<uint16_t>();
    case 4:
      return f.template operator()<uint32_t>();
    default:
      return f.template operator()<uint64_t>();
  }
}

// Source and destination with neighbouring axes merged where both are one run.
struct Permutation {
  Permutation(const Tensor& x, const Tensor& y) {
    for (int axis = 0; axis < x.rank(); ++axis) {
      const int64_t size = x.size(axis), from_stride = x.stride(axis), to_stride = y.stride(axis);
      if (size == 1) continue;
      if (rank > 0 && from[rank - 1] == from_stride * size && to[rank - 1] == to_stride * size) {
        sizes[rank - 1] *= size;
        from[rank - 1] = from_stride;
        to[rank - 1] = to_stride;
      } else {
        sizes[rank] = size;
        from[rank] = from_stride;
        to[rank++] = to_stride;
      }
    }
  }

  // The axis whose neighbours touch in the source, or -1.
  int source_axis() const {
    for (int axis = 0; axis < rank; ++axis) {
      if (from[axis] == 1) return axis;
    }
    return -1;
  }

  int rank = 0;
  int64_t sizes[Shape::max_rank];
  int64_t from[Shape::max_rank];
  int64_t to[Shape::max_rank];
};

constexpr int64_t tile = 32;

template <class U>
void transpose_tile(const U* x, int64_t x_stride, U* y, int64_t y_stride, int64_t rows,
                    int64_t columns) {
  // y[r][c] = x[c][r]
  if (rows == tile && columns == tile) {
    for (int64_t r = 0; r < tile; ++r) {
      for (int64_t c = 0; c < tile; ++c) y[r * y_stride + c] = x[c * x_stride + r];
    }
    return;
  }
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) y[r * y_stride + c] = x[c * x_stride + r];
  }
}

// y's last axis and the axis `row` of p, which is contiguous in x, are swapped in tiles.
template <class U>
void transpose(const Permutation& p, int row, const U* x, U* y) {
  const int last = p.rank - 1;
  const int64_t row_tiles = (p.sizes[row] + tile - 1) / tile;
  const int64_t column_tiles = (p.sizes[last] + tile - 1) / tile;
  int64_t tiles = row_tiles * column_tiles;
  for (int axis = 0; axis < last; ++axis) {
    if (axis != row) tiles *= p.sizes[axis];
  }
  parallel_for(tiles, cheap_grain / (tile * tile), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t rest = i / column_tiles;
      const int64_t c = i % column_tiles * tile, r = rest % row_tiles * tile;
      rest /= row_tiles;
      const U* from = x + c * p.from[last] + r;
      U* to = y + r * p.to[row] + c;
      for (int axis = last - 1; axis >= 0; --axis) {
        if (axis == row) continue;
        from += rest % p.sizes[axis] * p.from[axis];
        to += rest % p.sizes[axis] * p.to[axis];
        rest /= p.sizes[axis];
      }
      transpose_tile(from, p.from[last], to, p.to[row], std::min(tile, p.sizes[row] - r),
                     std::min(tile, p.sizes[last] - c));
    }
  });
}

template <class From, class To>
void copy_walking(const Tensor& x, const Tensor& y, const From* from, To* to) {
  const Walk source(x), destination(y);
  parallel_for(y.numel(), cheap_grain, [&](int64_t begin, int64_t end) {
    if (destination.contiguous()) {
      To* out = to + begin;
      source.runs(begin, end - begin, [&](int64_t offset, int64_t stride, int64_t n) {
        read_run(from + offset, stride, out, n);
        out += n;
      });
      return;
    }
    To buffer[block_elements];
    for (int64_t i = begin; i < end; i += block_elements) {
      const int64_t count = std::min(block_elements, end - i);
      To* in = buffer;
      source.runs(i, count, [&](int64_t offset, int64_t stride, int64_t n) {
        read_run(from + offset, stride, in, n);
        in += n;
      });
      in = buffer;
      destination.runs(i, count, [&](int64_t offset, int64_t stride, int64_t n) {
        for (int64_t j = 0; j < n; ++j) to[offset + j * stride] = in[j];
        in += n;
      });
    }
  });
}

template <class U>
void copy_same(const Tensor& x, const Tensor& y) {
  const U* from = reinterpret_cast<const U*>(x.raw_data());
  U* to = reinterpret_cast<U*>(y.raw_data());
  const Permutation p(x, y);
  const int row = p.source_axis();
  if (p.rank > 1 && p.to[p.rank - 1] == 1 && row >= 0 && row < p.rank - 1) {
    transpose(p, row, from, to);
  } else {
    copy_walking(x, y, from, to);
  }
}

}  // namespace

void CpuBackend::kernel(const prim::Fill& p) {
  visit_dtype(p.y.dtype(), AllDTypes{}, [&]<class T>() {
    const T value = convert_value<T>(p.value);
    T* y = p.y.data<T>();
    const Walk walk(p.y);
    parallel_for(p.y.numel(), cheap_grain, [&](int64_t begin, int64_t end) {
      walk.runs(begin, end - begin, [&](int64_t offset, int64_t stride, int64_t n) {
        if (stride == 1) {
          std::fill_n(y + offset, n, value);
        } else {
          for (int64_t i = 0; i < n; ++i) y[offset + i * stride] = value;
        }
      });
    });
  });
}

void CpuBackend::kernel(const prim::Copy& p) {
  if (p.x.dtype() == p.y.dtype()) {
    return visit_size(p.x.dtype(), [&]<class U>() { copy_same<U>(p.x, p.y); });
  }
  visit_dtype(p.x.dtype(), AllDTypes{}, [&]<class From>() {
    visit_dtype(p.y.dtype(), AllDTypes{}, [&]<class To>() {
      if constexpr (!std::is_same_v<From, To>) {
        copy_walking(p.x, p.y, p.x.data<From>(), p.y.data<To>());
      }
    });
  });
}

}  // namespace crucible::cpu
