#include "ops/cast.h"

#include "ops/elementwise.h"
#include "ops/op.h"

namespace crucible {
namespace {

const OpInfo cast_op{"cast"};
const OpInfo to_device_op{"to_device"};

}  // namespace

Tensor cast(const Tensor& x, DType dtype) {
  check_defined(cast_op, x, "x");
  if (x.dtype() == dtype) return x;
  Tensor y = Tensor::empty(x.shape(), dtype, x.device());
  run(prim::Copy{.x = x, .y = y});
  if (!is_floating(dtype)) return no_gradient(cast_op, y, {x});
  return record(cast_op, y, {x}, [from = x.dtype()](const Tensor& dy) -> Gradients {
    Tensor dx = Tensor::empty(dy.shape(), from, dy.device());
    run(prim::Copy{.x = dy, .y = dx});
    return {dx};
  });
}

Tensor to_device(const Tensor& x, Device device) {
  check_defined(to_device_op, x, "x");
  if (x.device() == device) return x;
  Tensor y = Tensor::empty(x.shape(), x.dtype(), device);
  copy_(y, x);
  return record(to_device_op, y, {x}, [from = x.device()](const Tensor& dy) -> Gradients {
    Tensor dx = Tensor::empty(dy.shape(), dy.dtype(), from);
    copy_(dx, dy);
    return {dx};
  });
}

}  // namespace crucible
