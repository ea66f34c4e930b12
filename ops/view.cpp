#include "ops/view.h"

#include <numeric>

#include "ops/op.h"

namespace crucible {
namespace {

const OpInfo contiguous_op{"contiguous"};
const OpInfo reshape_op{"reshape"};
const OpInfo permute_op{"permute"};
const OpInfo transpose_op{"transpose"};
const OpInfo slice_op{"slice"};
const OpInfo select_op{"select"};
const OpInfo unsqueeze_op{"unsqueeze"};
const OpInfo squeeze_op{"squeeze"};
const OpInfo expand_op{"expand"};

// The gradient of a view with the same element count: dy's data under x's shape.
Tensor record_reshape(const OpInfo& op, const Tensor& x, const Tensor& y) {
  return record(op, y, {x}, [shape = x.shape()](const Tensor& dy) -> Gradients {
    return {reshape_data(dy, shape)};
  });
}

Tensor reshape_as(const OpInfo& op, const Tensor& x, const Shape& shape) {
  const Tensor packed = contiguous(x);
  return record_reshape(op, packed, reshape_data(packed, shape));
}

Tensor permute_as(const OpInfo& op, const Tensor& x, std::span<const int> axes) {
  const int rank = x.rank();
  check(static_cast<int>(axes.size()) == rank, "{}: {} axes are given; the tensor has {}.", op.name,
        axes.size(), rank);
  std::array<int64_t, Shape::max_rank> sizes{};
  std::array<int, Shape::max_rank> inverse{};
  Strides strides{};
  unsigned seen = 0;
  for (int i = 0; i < rank; ++i) {
    const int axis = normalize_axis(op, axes[i], rank);
    check(!(seen >> axis & 1u), "{}: axis {} is named twice; name each axis once.", op.name,
          axes[i]);
    seen |= 1u << axis;
    sizes[i] = x.shape()[axis];
    strides[i] = x.stride(axis);
    inverse[axis] = i;
  }
  const Tensor y = x.as_strided(Shape(std::span<const int64_t>(sizes.data(), rank)), strides);
  return record(op, y, {x}, [inverse, rank](const Tensor& dy) -> Gradients {
    return {permute_as(permute_op, dy, std::span<const int>(inverse.data(), rank))};
  });
}

}  // namespace

Tensor contiguous(const Tensor& x) {
  check_defined(contiguous_op, x, "x");
  if (x.is_contiguous()) return x;
  return record(contiguous_op, contiguous_data(x), {x},
                [](const Tensor& dy) -> Gradients { return {dy}; });
}

Tensor reshape(const Tensor& x, std::span<const int64_t> sizes) {
  check_defined(reshape_op, x, "x");
  std::vector<int64_t> wanted(sizes.begin(), sizes.end());
  int inferred = -1;
  int64_t known = 1;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] == -1) {
      check(inferred < 0, "reshape: two sizes are -1; only one can be inferred.");
      inferred = static_cast<int>(i);
    } else {
      check(wanted[i] >= 0 && !__builtin_mul_overflow(known, wanted[i], &known),
            "reshape: size {} at axis {} is out of range; sizes start at 0.", wanted[i], i);
    }
  }
  if (inferred >= 0) {
    check(known > 0 && x.numel() % known == 0,
          "reshape: {} elements do not fill the -1 of a shape whose other sizes give {}.",
          x.numel(), known);
    wanted[inferred] = x.numel() / known;
  }
  const Shape shape{std::span<const int64_t>(wanted)};
  check(shape.numel() == x.numel(), "reshape: {} has {} elements, {} has {}; they must be equal.",
        to_string(x.shape()), x.numel(), to_string(shape), shape.numel());
  return reshape_as(reshape_op, x, shape);
}

Tensor reshape(const Tensor& x, std::initializer_list<int64_t> sizes) {
  return reshape(x, std::span<const int64_t>(sizes.begin(), sizes.size()));
}

Tensor reshape(const Tensor& x, const Shape& shape) {
  return reshape(x, shape.sizes());
}

Tensor permute(const Tensor& x, std::span<const int> axes) {
  check_defined(permute_op, x, "x");
  return permute_as(permute_op, x, axes);
}

Tensor permute(const Tensor& x, std::initializer_list<int> axes) {
  return permute(x, std::span<const int>(axes.begin(), axes.size()));
}

Tensor transpose(const Tensor& x, int axis0, int axis1) {
  check_defined(transpose_op, x, "x");
  std::array<int, Shape::max_rank> axes;
  std::iota(axes.begin(), axes.end(), 0);
  std::swap(axes[normalize_axis(transpose_op, axis0, x.rank())],
            axes[normalize_axis(transpose_op, axis1, x.rank())]);
  return permute_as(transpose_op, x, std::span<const int>(axes.data(), x.rank()));
}

Tensor slice(const Tensor& x, int axis, int64_t begin, int64_t end, int64_t step) {
  check_defined(slice_op, x, "x");
  axis = normalize_axis(slice_op, axis, x.rank());
  const int64_t n = x.shape()[axis];
  const int64_t first = begin < 0 ? begin + n : begin;
  const int64_t last = end < 0 ? end + n : end;
  check(0 <= first && first <= last && last <= n,
        "slice: [{}, {}) is not inside axis {} of size {}.", begin, end, axis, n);
  check(step >= 1, "slice: step {} is not positive.", step);
  Strides strides = x.strides();
  const int64_t offset = first * strides[axis];
  strides[axis] *= step;
  const int64_t count = (last - first + step - 1) / step;
  const Shape shape = x.shape().with(axis, count);
  return record(slice_op, x.as_strided(shape, strides, offset), {x},
                [axis, first, step, count](const Tensor& dy, const Needs& needs) -> Gradients {
                  Tensor dx = needs.destination(0);
                  run(prim::Fill{.value = 0.0, .y = dx});
                  Strides target = dx.strides();
                  const int64_t start = first * target[axis];
                  target[axis] *= step;
                  const Tensor part = dx.as_strided(dx.shape().with(axis, count), target, start);
                  run(prim::Copy{.x = dy, .y = part});
                  return {dx};
                });
}

Tensor select(const Tensor& x, int axis, int64_t index) {
  check_defined(select_op, x, "x");
  axis = normalize_axis(select_op, axis, x.rank());
  const int64_t n = x.shape()[axis];
  check(index >= -n && index < n, "select: index {} is outside axis {} of size {}.", index, axis,
        n);
  const int64_t i = index < 0 ? index + n : index;
  return squeeze(slice(x, axis, i, i + 1), axis);
}

Tensor unsqueeze(const Tensor& x, int axis) {
  check_defined(unsqueeze_op, x, "x");
  axis = normalize_axis(unsqueeze_op, axis, x.rank() + 1);
  Strides strides{};
  for (int i = 0; i <= x.rank(); ++i)
    strides[i] = i < axis ? x.stride(i) : i > axis ? x.stride(i - 1) : 0;
  return record_reshape(unsqueeze_op, x, x.as_strided(x.shape().insert(axis, 1), strides));
}

Tensor squeeze(const Tensor& x, int axis) {
  check_defined(squeeze_op, x, "x");
  axis = normalize_axis(squeeze_op, axis, x.rank());
  check(x.shape()[axis] == 1, "squeeze: axis {} of {} has size {}; it must be 1.", axis,
        to_string(x.shape()), x.shape()[axis]);
  Strides strides{};
  for (int i = 0; i < x.rank() - 1; ++i) strides[i] = x.stride(i < axis ? i : i + 1);
  return record_reshape(squeeze_op, x, x.as_strided(x.shape().without(axis), strides));
}

Tensor expand(const Tensor& x, const Shape& shape) {
  check_defined(expand_op, x, "x");
  check(broadcast_shapes("expand", x.shape(), shape) == shape,
        "expand: {} does not broadcast to {}.", to_string(x.shape()), to_string(shape));
  return record(
      expand_op, expand_data(x, shape), {x},
      [from = x.shape()](const Tensor& dy) -> Gradients { return {sum_to_data(dy, from)}; });
}

}  // namespace crucible
