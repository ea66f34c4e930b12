#include "ops/dropout.h"

#include "ops/op.h"

namespace crucible {
namespace {

const OpInfo dropout_op{"dropout"};

}  // namespace

Tensor dropout(const Tensor& input, double p, RngState& rng) {
  check(p >= 0.0 && p < 1.0, "dropout: p {} is outside [0, 1).", p);
  const Tensor x = prepare(dropout_op, input);
  if (p == 0.0) return x;
  const Tensor y = empty_like(x);
  const RngState drawn = rng;
  rng.offset += (x.numel() + 3) / 4;
  run(prim::Dropout{.p = p, .rng = drawn, .x = x, .y = y});
  return record(dropout_op, y, {x}, [p, drawn](const Tensor& dy) -> Gradients {
    const Tensor dx = empty_like(dy);
    run(prim::Dropout{.p = p, .rng = drawn, .x = dy, .y = dx});
    return {dx};
  });
}

}  // namespace crucible
