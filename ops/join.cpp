#include "ops/join.h"

#include "ops/op.h"
#include "ops/view.h"

namespace crucible {
namespace {

const OpInfo concat_op{"concat"};
const OpInfo stack_op{"stack"};
const OpInfo pad_op{"pad"};

// The part [begin, begin + count) of `x` along `axis`, as a view without history.
Tensor part(const Tensor& x, int axis, int64_t begin, int64_t count) {
  return x.as_strided(x.shape().with(axis, count), x.strides(), begin * x.stride(axis));
}

}  // namespace

Tensor concat(const std::vector<Tensor>& tensors, int axis) {
  check(!tensors.empty(), "concat: the list is empty; pass at least one tensor.");
  for (const Tensor& t : tensors) check_defined(concat_op, t, "a tensor");
  const Tensor& first = tensors.front();
  axis = normalize_axis(concat_op, axis, first.rank());
  int64_t total = 0;
  for (const Tensor& t : tensors) {
    check_same_kind(concat_op, first, t);
    check(t.rank() == first.rank() && t.shape().with(axis, 0) == first.shape().with(axis, 0),
          "concat: {} and {} differ outside axis {}.", to_string(first.shape()),
          to_string(t.shape()), axis);
    check(!__builtin_add_overflow(total, t.shape()[axis], &total), "concat: the sizes pass 2^63.");
  }
  Tensor y = Tensor::empty(first.shape().with(axis, total), first.dtype(), first.device());
  int64_t begin = 0;
  for (const Tensor& t : tensors) {
    run(prim::Copy{.x = t, .y = part(y, axis, begin, t.shape()[axis])});
    begin += t.shape()[axis];
  }
  std::vector<int64_t> sizes;
  for (const Tensor& t : tensors) sizes.push_back(t.shape()[axis]);
  return record(concat_op, y, tensors, [axis, sizes](const Tensor& dy) -> Gradients {
    Gradients d;
    int64_t begin = 0;
    for (const int64_t size : sizes) {
      d.push_back(part(dy, axis, begin, size));
      begin += size;
    }
    return d;
  });
}

Tensor stack(const std::vector<Tensor>& tensors, int axis) {
  check(!tensors.empty(), "stack: the list is empty; pass at least one tensor.");
  check_defined(stack_op, tensors.front(), "a tensor");
  axis = normalize_axis(stack_op, axis, tensors.front().rank() + 1);
  std::vector<Tensor> rows;
  for (const Tensor& t : tensors) {
    check_defined(stack_op, t, "a tensor");
    check(t.shape() == tensors.front().shape(), "stack: shapes differ: {} and {}.",
          to_string(tensors.front().shape()), to_string(t.shape()));
    rows.push_back(unsqueeze(t, axis));
  }
  return concat(rows, axis);
}

Tensor pad(const Tensor& x, const std::vector<std::array<int64_t, 2>>& widths, double value) {
  check_defined(pad_op, x, "x");
  check(static_cast<int>(widths.size()) == x.rank(), "pad: {} pairs are given; {} has {} axes.",
        widths.size(), to_string(x.shape()), x.rank());
  Shape shape = x.shape();
  for (int i = 0; i < x.rank(); ++i) {
    const auto [before, after] = widths[i];
    int64_t size = 0;
    check(before >= 0 && after >= 0 && !__builtin_add_overflow(before, after, &size) &&
              !__builtin_add_overflow(size, shape[i], &size),
          "pad: widths {} and {} at axis {} are out of range; they start at 0.", before, after, i);
    shape = shape.with(i, size);
  }
  const Tensor y = Tensor::empty(shape, x.dtype(), x.device());
  run(prim::Fill{.value = value, .y = y});
  auto inner = [widths](const Tensor& t, const Shape& sizes) {
    int64_t offset = 0;
    for (int i = 0; i < t.rank(); ++i) offset += widths[i][0] * t.stride(i);
    return t.as_strided(sizes, t.strides(), offset);
  };
  run(prim::Copy{.x = x, .y = inner(y, x.shape())});
  return record(pad_op, y, {x}, [inner, from = x.shape()](const Tensor& dy) -> Gradients {
    return {inner(dy, from)};
  });
}

}  // namespace crucible
