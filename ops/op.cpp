#include "ops/op.h"

#include "ops/view.h"

namespace crucible {

Tensor contiguous_data(const Tensor& x) {
  if (x.is_contiguous()) return x.detach();
  Tensor y = empty_like(x);
  run(prim::Copy{.x = x, .y = y});
  return y;
}

void check_defined(const OpInfo& op, const Tensor& x, std::string_view argument) {
  check(x.defined(), "{}: {} is undefined; pass a tensor with data.", op.name, argument);
}

Tensor prepare(const OpInfo& op, const Tensor& x, std::string_view argument) {
  check_defined(op, x, argument);
  check(is_floating(x.dtype()), "{}: {} holds {}; f16, bf16, f32 or f64 is needed, cast it first.",
        op.name, argument, name_of(x.dtype()));
  return contiguous(autocast(op, x));
}

void check_same_kind(const OpInfo& op, const Tensor& a, const Tensor& b) {
  check(a.dtype() == b.dtype(), "{}: dtypes differ: {} and {}; cast one of them.", op.name,
        name_of(a.dtype()), name_of(b.dtype()));
  check(a.device() == b.device(), "{}: devices differ: {} and {}; copy one of them.", op.name,
        to_string(a.device()), to_string(b.device()));
}

int normalize_axis(const OpInfo& op, int axis, int rank) {
  check(axis >= -rank && axis < rank,
        "{}: axis {} is outside [{}, {}); pass an axis of the tensor.", op.name, axis, -rank, rank);
  return axis < 0 ? axis + rank : axis;
}

Tensor expand_data(const Tensor& x, const Shape& shape) {
  Strides strides{};
  const int shift = shape.rank() - x.rank();
  for (int i = 0; i < x.rank(); ++i) {
    strides[i + shift] = x.shape()[i] == shape[i + shift] ? x.stride(i) : 0;
  }
  return x.as_strided(shape, strides);
}

Tensor reshape_data(const Tensor& x, const Shape& shape) {
  return x.as_strided(shape, row_major(shape));
}

Tensor sum_to_data(const Tensor& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  // Runs of neighbouring repeated axes are summed together, from the last to the first.
  Tensor y = contiguous_data(x);
  const int shift = x.rank() - shape.rank();
  auto repeated = [&](int axis) {
    return axis < shift || (shape[axis - shift] == 1 && x.shape()[axis] != 1);
  };
  int64_t inner = 1;
  for (int axis = x.rank() - 1; axis >= 0;) {
    if (!repeated(axis)) {
      inner *= x.shape()[axis--];
      continue;
    }
    int64_t n = 1;
    for (; axis >= 0 && repeated(axis); --axis) n *= x.shape()[axis];
    int64_t outer = 1;
    for (int i = 0; i <= axis; ++i) outer *= x.shape()[i];
    Tensor sum = Tensor::empty({outer, inner}, x.dtype(), x.device());
    run(prim::Reduce{.op = ReduceOp::sum, .x = reshape_data(y, {outer, n, inner}), .y = sum});
    y = sum;
  }
  return reshape_data(y, shape);
}

}  // namespace crucible
