#include "ops/reduce.h"

#include <bit>

#include "ops/op.h"
#include "ops/view.h"

namespace crucible {
namespace {

const OpInfo sum_op{"sum", Autocast::widen};
const OpInfo mean_op{"mean", Autocast::widen};
const OpInfo prod_op{"prod", Autocast::widen};
const OpInfo max_op{"max"};
const OpInfo min_op{"min"};
const OpInfo logsumexp_op{"logsumexp", Autocast::widen};
const OpInfo norm_op{"norm", Autocast::widen};
const OpInfo argmax_op{"argmax"};

// How to see x as [outer, n, inner] with the reduced axes in the middle.
struct Plan {
  std::vector<int> order;  // a permutation that makes them neighbours; empty if they already are
  int64_t outer = 1, n = 1, inner = 1;
  std::vector<int64_t> sizes;  // of the result
};

Plan plan_reduction(const OpInfo& info, const Tensor& x, const ReduceOptions& options) {
  const int rank = x.rank();
  unsigned reduced = options.axes.empty() ? (1u << rank) - 1 : 0;
  for (const int a : options.axes) {
    const int axis = normalize_axis(info, a, rank);
    check(!(reduced >> axis & 1u), "{}: axis {} is named twice; name each axis once.", info.name,
          a);
    reduced |= 1u << axis;
  }
  Plan plan;
  int first = rank, last = -1;
  for (int i = 0; i < rank; ++i) {
    const bool r = reduced >> i & 1u;
    if (!r || options.keep_dims) plan.sizes.push_back(r ? 1 : x.shape()[i]);
    if (!r) continue;
    plan.n *= x.shape()[i];
    first = std::min(first, i);
    last = i;
  }
  const bool neighbours = last < 0 || std::popcount(reduced) == last - first + 1;
  for (int i = 0; i < rank; ++i) {
    if (reduced >> i & 1u) continue;
    (neighbours && i > last ? plan.inner : plan.outer) *= x.shape()[i];
    if (!neighbours) plan.order.push_back(i);
  }
  for (int i = 0; !neighbours && i < rank; ++i) {
    if (reduced >> i & 1u) plan.order.push_back(i);
  }
  return plan;
}

Tensor reduce(const OpInfo& info, ReduceOp op, const Tensor& input, const ReduceOptions& options) {
  check_defined(info, input, "x");
  const Plan plan = plan_reduction(info, input, options);
  const Tensor x = prepare(info, plan.order.empty() ? input : permute(input, plan.order));
  const Tensor rows = reshape_data(x, {plan.outer, plan.n, plan.inner});
  const Tensor y = Tensor::empty({plan.outer, plan.inner}, x.dtype(), x.device());
  run(prim::Reduce{.op = op, .x = rows, .y = y});

  const bool keep_x = op != ReduceOp::sum && op != ReduceOp::mean;
  const bool keep_y = keep_x && op != ReduceOp::prod;
  const Tensor none;
  return record(info, reshape_data(y, Shape(std::span<const int64_t>(plan.sizes))), {x},
                [op, shape = x.shape(), sizes = rows.shape(), x = save(keep_x ? rows : none),
                 y = save(keep_y ? y : none)](const Tensor& dy) -> Gradients {
                  Tensor dx = Tensor::empty(sizes, dy.dtype(), dy.device());
                  run(prim::ReduceBackward{.op = op,
                                           .x = x.get(),
                                           .y = y.get(),
                                           .dy = reshape_data(dy, {sizes[0], sizes[2]}),
                                           .dx = dx});
                  return {reshape_data(dx, shape)};
                });
}

}  // namespace

Tensor sum(const Tensor& x, const ReduceOptions& o) {
  return reduce(sum_op, ReduceOp::sum, x, o);
}
Tensor mean(const Tensor& x, const ReduceOptions& o) {
  return reduce(mean_op, ReduceOp::mean, x, o);
}
Tensor prod(const Tensor& x, const ReduceOptions& o) {
  return reduce(prod_op, ReduceOp::prod, x, o);
}
Tensor max(const Tensor& x, const ReduceOptions& o) {
  return reduce(max_op, ReduceOp::max, x, o);
}
Tensor min(const Tensor& x, const ReduceOptions& o) {
  return reduce(min_op, ReduceOp::min, x, o);
}
Tensor logsumexp(const Tensor& x, const ReduceOptions& o) {
  return reduce(logsumexp_op, ReduceOp::logsumexp, x, o);
}
Tensor norm(const Tensor& x, const ReduceOptions& o) {
  return reduce(norm_op, ReduceOp::norm, x, o);
}

Tensor argmax(const Tensor& input, int axis, bool keep_dims) {
  check_defined(argmax_op, input, "x");
  axis = normalize_axis(argmax_op, axis, input.rank());
  check(input.shape()[axis] > 0, "argmax: axis {} of {} is empty; there is no largest element.",
        axis, to_string(input.shape()));
  const Plan plan = plan_reduction(argmax_op, input, {{axis}, keep_dims});
  const Tensor x = prepare(argmax_op, input.detach());
  const Tensor y = Tensor::empty({plan.outer, plan.inner}, DType::i64, x.device());
  run(prim::ArgMax{.x = reshape_data(x, {plan.outer, plan.n, plan.inner}), .y = y});
  return no_gradient(argmax_op, reshape_data(y, Shape(std::span<const int64_t>(plan.sizes))),
                     {input});
}

}  // namespace crucible
