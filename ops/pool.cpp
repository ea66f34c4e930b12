#include "ops/pool.h"

#include "ops/op.h"
#include "ops/reduce.h"
#include "ops/window.h"

namespace crucible {
namespace {

const OpInfo max_pool2d_op{"max_pool2d"};
const OpInfo avg_pool2d_op{"avg_pool2d"};

Tensor pool(const OpInfo& info, PoolOp op, const Tensor& input, const PoolOptions& options) {
  const Tensor x = prepare(info, input);
  check(x.rank() == 4, "{}: x is {}; it must be [N, H, W, C].", info.name, to_string(x.shape()));
  const Window window{{options.kernel.height, options.kernel.width},
                      {options.stride.height, options.stride.width},
                      {options.padding.height, options.padding.width}};
  for (int i = 0; i < 2; ++i) {
    check(window.padding[i] <= window.kernel[i] / 2,
          "{}: padding {} is more than half of kernel {}; windows would hold padding only.",
          info.name, window.padding[i], window.kernel[i]);
  }
  const auto [height, width] = window_output(info, window, x.shape());
  const Tensor y = Tensor::empty({x.size(0), height, width, x.size(3)}, x.dtype(), x.device());
  run(prim::Pool{.op = op, .window = window, .x = x, .y = y});
  const Tensor none;
  return record(
      info, y, {x},
      [op, window, x = save(op == PoolOp::max ? x : none)](const Tensor& dy,
                                                           const Needs& needs) -> Gradients {
        const Tensor dx = needs.destination(0);
        run(prim::PoolBackward{.op = op, .window = window, .x = x.get(), .dy = dy, .dx = dx});
        return {dx};
      });
}

}  // namespace

Tensor max_pool2d(const Tensor& x, const PoolOptions& options) {
  return pool(max_pool2d_op, PoolOp::max, x, options);
}

Tensor avg_pool2d(const Tensor& x, const PoolOptions& options) {
  return pool(avg_pool2d_op, PoolOp::average, x, options);
}

Tensor global_avg_pool2d(const Tensor& x) {
  check(x.defined() && x.rank() == 4, "global_avg_pool2d: x must be [N, H, W, C].");
  return mean(x, {.axes = {1, 2}});
}

}  // namespace crucible
