#include "ops/softmax.h"

#include "ops/op.h"
#include "ops/view.h"

namespace crucible {
namespace {

const OpInfo softmax_op{"softmax", Autocast::widen};
const OpInfo log_softmax_op{"log_softmax", Autocast::widen};

Tensor rows_of(const Tensor& x) {
  const int64_t n = x.size(-1);
  return reshape_data(x, {n ? x.numel() / n : 0, n});
}

// Along the last axis.
Tensor softmax_rows(const OpInfo& info, bool log, const Tensor& input) {
  const Tensor x = prepare(info, input);
  const Tensor y = empty_like(x);
  run(prim::Softmax{.log = log, .x = rows_of(x), .y = rows_of(y)});
  return record(info, y, {x}, [log, y = save(y)](const Tensor& dy) -> Gradients {
    const Tensor dx = empty_like(dy);
    run(prim::SoftmaxBackward{
        .log = log, .y = rows_of(y.get()), .dy = rows_of(dy), .dx = rows_of(dx)});
    return {dx};
  });
}

Tensor softmax_along(const OpInfo& info, bool log, const Tensor& x, int axis) {
  check_defined(info, x, "x");
  axis = normalize_axis(info, axis, x.rank());
  if (axis == x.rank() - 1) return softmax_rows(info, log, x);
  return transpose(softmax_rows(info, log, transpose(x, axis, -1)), axis, -1);
}

}  // namespace

Tensor softmax(const Tensor& x, int axis) {
  return softmax_along(softmax_op, false, x, axis);
}

Tensor log_softmax(const Tensor& x, int axis) {
  return softmax_along(log_softmax_op, true, x, axis);
}

}  // namespace crucible
