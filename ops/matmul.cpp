#include "ops/matmul.h"

#include "ops/op.h"
#include "ops/view.h"

namespace crucible {
namespace {

const OpInfo matmul_op{"matmul", Autocast::narrow};
const OpInfo linear_op{"linear", Autocast::narrow};

// A [B, rows, columns] operand as the primitive takes it: contiguous, perhaps stored transposed.
struct Operand {
  Tensor data;
  bool transposed = false;
};

// Collapses the leading axes of `x`, which is [..., R, C], to one batch axis.
Operand operand(const Tensor& x, const Shape& batch) {
  const int rank = x.rank();
  const int64_t rows = x.shape()[rank - 2], columns = x.shape()[rank - 1];
  int64_t own = 1;
  for (int i = 0; i < rank - 2; ++i) own *= x.shape()[i];
  Tensor source = x;
  const bool repeated = own != 1 && own != batch.numel();
  if (repeated) {  // broadcast over some leading axes only: materialise
    source = expand_data(x, batch.insert(batch.rank(), rows).insert(batch.rank() + 1, columns));
    own = batch.numel();
  }
  std::array<int, Shape::max_rank> axes{};
  for (int i = 0; i < source.rank(); ++i) axes[i] = i;
  std::swap(axes[source.rank() - 2], axes[source.rank() - 1]);
  if (!source.is_contiguous()) {
    NoGrad off;
    const Tensor flipped =
        permute(source.detach(), std::span<const int>(axes.data(), source.rank()));
    if (flipped.is_contiguous()) {
      return {reshape_data(flipped, {own, columns, rows}), true};
    }
  }
  return {reshape_data(contiguous_data(source), {own, rows, columns}), false};
}

// y [B, M, N] = op(a) op(b).
void product(const Operand& a, const Operand& b, const Tensor& y) {
  run(prim::Matmul{
      .a = a.data, .b = b.data, .transpose_a = a.transposed, .transpose_b = b.transposed, .y = y});
}

Operand flipped(const Operand& x) {
  return {x.data, !x.transposed};
}

Tensor matmul_matrices(const Tensor& a, const Tensor& b) {
  const int ra = a.rank(), rb = b.rank();
  const int64_t m = a.shape()[ra - 2], k = a.shape()[ra - 1], n = b.shape()[rb - 1];
  check(k == b.shape()[rb - 2],
        "matmul: inner sizes differ: a is {}, b is {}; a's last axis ({}) must equal b's second to "
        "last ({}).",
        to_string(a.shape()), to_string(b.shape()), k, b.shape()[rb - 2]);
  const Shape batch = broadcast_shapes("matmul", Shape(a.shape().sizes().first(ra - 2)),
                                       Shape(b.shape().sizes().first(rb - 2)));
  const Operand oa = operand(a, batch), ob = operand(b, batch);
  const Tensor y = Tensor::empty({batch.numel(), m, n}, a.dtype(), a.device());
  product(oa, ob, y);

  const Shape result = batch.insert(batch.rank(), m).insert(batch.rank() + 1, n);
  return record(
      matmul_op, reshape_data(y, result), {a, b},
      [sa = a.shape(), sb = b.shape(), batch, m, k, n, a = save(oa.data), ta = oa.transposed,
       b = save(ob.data), tb = ob.transposed](const Tensor& dy, const Needs& needs) -> Gradients {
        const int64_t count = batch.numel();
        const Operand upstream{reshape_data(dy, {count, m, n}), false};
        // Gradient of one side: full batch, then summed to that operand's own leading axes.
        auto gradient = [&](int input, const Operand& left, const Operand& right, int64_t rows,
                            int64_t columns, const Shape& shape) -> Tensor {
          if (!needs[input]) return {};
          const Shape wide = batch.insert(batch.rank(), rows).insert(batch.rank() + 1, columns);
          if (wide.numel() == shape.numel()) {
            const Tensor d = needs.destination(input);
            product(left, right, reshape_data(d, {count, rows, columns}));
            return d;
          }
          const Tensor d = Tensor::empty({count, rows, columns}, dy.dtype(), dy.device());
          product(left, right, d);
          return sum_to_data(reshape_data(d, wide), shape);
        };
        return {gradient(0, upstream, flipped({b.get(), tb}), m, k, sa),
                gradient(1, flipped({a.get(), ta}), upstream, k, n, sb)};
      });
}

}  // namespace

Tensor matmul(const Tensor& left, const Tensor& right) {
  check_defined(matmul_op, left, "a");
  check_defined(matmul_op, right, "b");
  const Tensor a = autocast(matmul_op, left), b = autocast(matmul_op, right);
  check_same_kind(matmul_op, a, b);
  check(is_floating(a.dtype()), "matmul: the operands hold {}; cast them to a floating dtype.",
        name_of(a.dtype()));
  check(a.rank() >= 1 && b.rank() >= 1, "matmul: a is {}, b is {}; both need at least one axis.",
        to_string(a.shape()), to_string(b.shape()));
  Tensor y =
      matmul_matrices(a.rank() == 1 ? unsqueeze(a, 0) : a, b.rank() == 1 ? unsqueeze(b, 1) : b);
  if (b.rank() == 1) y = squeeze(y, -1);
  if (a.rank() == 1) y = squeeze(y, b.rank() == 1 ? -1 : -2);
  return y;
}

Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& bias_input,
              Activation activation) {
  const Tensor x = prepare(linear_op, input);
  const Tensor w = prepare(linear_op, weight, "weight");
  const Tensor bias = autocast(linear_op, bias_input);
  check_same_kind(linear_op, x, w);
  check(x.rank() >= 1 && w.rank() == 2 && x.size(-1) == w.size(1),
        "linear: x is {}, weight is {}; x's last axis must equal weight's second [out, in].",
        to_string(x.shape()), to_string(w.shape()));
  const int64_t in = w.size(1), out = w.size(0);
  if (bias.defined()) {
    check_same_kind(linear_op, x, bias);
    check(bias.shape() == Shape{out}, "linear: bias is {}, weight is {}; bias must be [{}].",
          to_string(bias.shape()), to_string(w.shape()), out);
  }
  int64_t rows = 1;
  for (int i = 0; i < x.rank() - 1; ++i) rows *= x.shape()[i];
  const Tensor x2 = reshape_data(x, {1, rows, in});
  const Tensor w2 = reshape_data(w, {1, out, in});
  const Tensor y = Tensor::empty({1, rows, out}, x.dtype(), x.device());
  const bool gelu = activation == Activation::gelu_tanh;
  const Tensor pre = gelu ? empty_like(y) : Tensor();
  run(prim::Matmul{.a = x2,
                   .b = w2,
                   .transpose_b = true,
                   .bias = bias,
                   .activation = activation,
                   .pre_activation = pre,
                   .y = y});

  const Tensor kept = gelu ? pre : activation == Activation::relu ? y : Tensor();
  return record(
      linear_op, reshape_data(y, x.shape().with(x.rank() - 1, out)), {x, w, bias},
      [activation, in, out, rows, x = save(x2), w = save(w2), kept = save(kept)](
          const Tensor& upstream, const Needs& needs) -> Gradients {
        const Tensor dy = reshape_data(upstream, {rows, out});
        const bool fused = activation != Activation::none;
        const Tensor dz = fused ? empty_like(dy) : dy;
        const Tensor db = needs[2] ? needs.destination(2) : Tensor();
        if (fused || db.defined()) {
          run(prim::BiasActivationBackward{
              .activation = activation,
              .saved = kept.defined() ? reshape_data(kept.get(), {rows, out}) : prim::none,
              .dy = dy,
              .dz = fused ? dz : prim::none,
              .db = db});
        }
        const Tensor dz2 = reshape_data(dz, {1, rows, out});
        Tensor dw, dx;
        if (needs[1]) {
          dw = needs.destination(1);
          run(prim::Matmul{
              .a = dz2, .b = x.get(), .transpose_a = true, .y = reshape_data(dw, {1, out, in})});
        }
        if (needs[0]) {
          dx = needs.destination(0);
          run(prim::Matmul{.a = dz2, .b = w.get(), .y = reshape_data(dx, {1, rows, in})});
        }
        return {dx, dw, db};
      });
}

}  // namespace crucible
