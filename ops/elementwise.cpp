#include "ops/elementwise.h"

#include "core/storage.h"
#include "ops/op.h"

namespace crucible {
namespace {

const OpInfo add_op{"add"};
const OpInfo sub_op{"sub"};
const OpInfo mul_op{"mul"};
const OpInfo div_op{"div"};
const OpInfo pow_op{"pow", Autocast::widen};
const OpInfo maximum_op{"maximum"};
const OpInfo minimum_op{"minimum"};
const OpInfo neg_op{"neg"};
const OpInfo abs_op{"abs"};
const OpInfo exp_op{"exp", Autocast::widen};
const OpInfo log_op{"log", Autocast::widen};
const OpInfo sqrt_op{"sqrt"};
const OpInfo square_op{"square"};
const OpInfo relu_op{"relu"};
const OpInfo gelu_op{"gelu"};
const OpInfo gelu_tanh_op{"gelu_tanh"};
const OpInfo sigmoid_op{"sigmoid"};
const OpInfo tanh_op{"tanh"};
const OpInfo silu_op{"silu"};
const OpInfo clamp_op{"clamp"};
const OpInfo affine_op{"affine"};
const OpInfo power_op{"power", Autocast::widen};
const OpInfo where_op{"where"};
const OpInfo compare_op{"compare"};
const OpInfo in_place_op{"in-place change"};

Tensor unary(const OpInfo& info, UnaryOp op, const Tensor& input, UnaryParams params = {}) {
  const Tensor x = prepare(info, input);
  Tensor y = empty_like(x);
  run(prim::Unary{.op = op, .params = params, .x = x, .y = y});

  const auto uses = backward_uses(op);
  const Tensor none;
  return record(info, y, {x},
                [op, params, x = save(uses == elementwise::Uses::x ? x : none),
                 y = save(uses == elementwise::Uses::y ? y : none)](const Tensor& dy) -> Gradients {
                  Tensor dx = empty_like(dy);
                  run(prim::UnaryBackward{
                      .op = op, .params = params, .x = x.get(), .y = y.get(), .dy = dy, .dx = dx});
                  return {dx};
                });
}

// Whether the gradient of `op` is dy itself, up to a sign.
bool linear(BinaryOp op) {
  return op == BinaryOp::add || op == BinaryOp::sub;
}

Tensor binary_gradient(BinaryOp op, prim::BinaryBackward::Of of, const Saved& a, const Saved& b,
                       const Tensor& dy, const Shape& shape) {
  if (op == BinaryOp::add || (op == BinaryOp::sub && of == prim::BinaryBackward::Of::a)) {
    return sum_to_data(dy, shape);
  }
  if (op == BinaryOp::sub) {
    const Tensor sum = sum_to_data(dy, shape);
    Tensor d = empty_like(sum);
    run(prim::Unary{.op = UnaryOp::neg, .x = sum, .y = d});
    return d;
  }
  Tensor d = empty_like(dy);
  run(prim::BinaryBackward{.op = op,
                           .of = of,
                           .a = expand_data(a.get(), dy.shape()),
                           .b = expand_data(b.get(), dy.shape()),
                           .dy = dy,
                           .d = d});
  return sum_to_data(d, shape);
}

Tensor binary(const OpInfo& info, BinaryOp op, const Tensor& left, const Tensor& right) {
  check_defined(info, left, "a");
  check_defined(info, right, "b");
  const auto [a, b] = autocast_pair(info, left, right);
  check_same_kind(info, a, b);
  const bool arithmetic = linear(op) || op == BinaryOp::mul;
  check(is_floating(a.dtype()) || (a.dtype() == DType::i64 && arithmetic),
        "{}: the operands hold {}; cast them to a floating dtype first.", info.name,
        name_of(a.dtype()));
  const Shape shape = broadcast_shapes(info.name, a.shape(), b.shape());
  Tensor y = Tensor::empty(shape, a.dtype(), a.device());
  run(prim::Binary{.op = op, .a = expand_data(a, shape), .b = expand_data(b, shape), .y = y});

  const Tensor none;
  return record(
      info, y, {a, b},
      [op, sa = a.shape(), sb = b.shape(), a = save(linear(op) ? none : a),
       b = save(linear(op) ? none : b)](const Tensor& dy, const Needs& needs) -> Gradients {
        using Of = prim::BinaryBackward::Of;
        return {needs[0] ? binary_gradient(op, Of::a, a, b, dy, sa) : Tensor(),
                needs[1] ? binary_gradient(op, Of::b, a, b, dy, sb) : Tensor()};
      });
}

Tensor affine(const Tensor& x, double scale, double shift) {
  return unary(affine_op, UnaryOp::affine, x, {scale, shift});
}

}  // namespace

Tensor add(const Tensor& a, const Tensor& b) {
  return binary(add_op, BinaryOp::add, a, b);
}
Tensor sub(const Tensor& a, const Tensor& b) {
  return binary(sub_op, BinaryOp::sub, a, b);
}
Tensor mul(const Tensor& a, const Tensor& b) {
  return binary(mul_op, BinaryOp::mul, a, b);
}
Tensor div(const Tensor& a, const Tensor& b) {
  return binary(div_op, BinaryOp::div, a, b);
}
Tensor pow(const Tensor& a, const Tensor& b) {
  return binary(pow_op, BinaryOp::pow, a, b);
}
Tensor maximum(const Tensor& a, const Tensor& b) {
  return binary(maximum_op, BinaryOp::maximum, a, b);
}
Tensor minimum(const Tensor& a, const Tensor& b) {
  return binary(minimum_op, BinaryOp::minimum, a, b);
}

Tensor add(const Tensor& x, double value) {
  return affine(x, 1.0, value);
}
Tensor sub(const Tensor& x, double value) {
  return affine(x, 1.0, -value);
}
Tensor mul(const Tensor& x, double value) {
  return affine(x, value, 0.0);
}
Tensor div(const Tensor& x, double value) {
  return affine(x, 1.0 / value, 0.0);
}
Tensor pow(const Tensor& x, double exponent) {
  return exponent == 2.0 ? square(x) : unary(power_op, UnaryOp::power, x, {exponent, 0.0});
}

Tensor neg(const Tensor& x) {
  return unary(neg_op, UnaryOp::neg, x);
}
Tensor abs(const Tensor& x) {
  return unary(abs_op, UnaryOp::abs, x);
}
Tensor exp(const Tensor& x) {
  return unary(exp_op, UnaryOp::exp, x);
}
Tensor log(const Tensor& x) {
  return unary(log_op, UnaryOp::log, x);
}
Tensor sqrt(const Tensor& x) {
  return unary(sqrt_op, UnaryOp::sqrt, x);
}
Tensor square(const Tensor& x) {
  return unary(square_op, UnaryOp::square, x);
}
Tensor relu(const Tensor& x) {
  return unary(relu_op, UnaryOp::relu, x);
}
Tensor gelu(const Tensor& x) {
  return unary(gelu_op, UnaryOp::gelu, x);
}
Tensor gelu_tanh(const Tensor& x) {
  return unary(gelu_tanh_op, UnaryOp::gelu_tanh, x);
}
Tensor sigmoid(const Tensor& x) {
  return unary(sigmoid_op, UnaryOp::sigmoid, x);
}
Tensor tanh(const Tensor& x) {
  return unary(tanh_op, UnaryOp::tanh, x);
}
Tensor silu(const Tensor& x) {
  return unary(silu_op, UnaryOp::silu, x);
}

Tensor clamp(const Tensor& x, double low, double high) {
  check(low <= high, "clamp: low {} is above high {}; exchange them.", low, high);
  return unary(clamp_op, UnaryOp::clamp, x, {low, high});
}

Tensor where(const Tensor& condition, const Tensor& left, const Tensor& right) {
  check_defined(where_op, condition, "condition");
  check_defined(where_op, left, "a");
  check_defined(where_op, right, "b");
  const auto [a, b] = autocast_pair(where_op, left, right);
  check(condition.dtype() == DType::boolean, "where: condition holds {}; it must be bool.",
        name_of(condition.dtype()));
  check_same_kind(where_op, a, b);
  const Shape shape =
      broadcast_shapes("where", condition.shape(), broadcast_shapes("where", a.shape(), b.shape()));
  Tensor y = Tensor::empty(shape, a.dtype(), a.device());
  run(prim::Where{.condition = expand_data(condition, shape),
                  .a = expand_data(a, shape),
                  .b = expand_data(b, shape),
                  .y = y});
  return record(
      where_op, y, {a, b},
      [sa = a.shape(), sb = b.shape(), condition = save(condition)](
          const Tensor& dy, const Needs& needs) -> Gradients {
        const Tensor mask = expand_data(condition.get(), dy.shape());
        const Tensor zero = expand_data(Tensor::zeros({}, dy.dtype(), dy.device()), dy.shape());
        Gradients gradients(2);
        for (int i = 0; i < 2; ++i) {
          if (!needs[i]) continue;
          Tensor d = empty_like(dy);
          run(prim::Where{
              .condition = mask, .a = i == 0 ? dy : zero, .b = i == 0 ? zero : dy, .y = d});
          gradients[i] = sum_to_data(d, i == 0 ? sa : sb);
        }
        return gradients;
      });
}

Tensor compare(CompareOp op, const Tensor& a, const Tensor& b) {
  check_defined(compare_op, a, "a");
  check_defined(compare_op, b, "b");
  check_same_kind(compare_op, a, b);
  const Shape shape = broadcast_shapes("compare", a.shape(), b.shape());
  Tensor y = Tensor::empty(shape, DType::boolean, a.device());
  run(prim::Compare{.op = op, .a = expand_data(a, shape), .b = expand_data(b, shape), .y = y});
  return no_gradient(compare_op, y, {a, b});
}

void add_(const Tensor& y, const Tensor& x) {
  check_defined(in_place_op, y, "y");
  check_defined(in_place_op, x, "x");
  check_same_kind(in_place_op, y, x);
  check(broadcast_shapes("add_", x.shape(), y.shape()) == y.shape(),
        "add_: {} does not broadcast to {}.", to_string(x.shape()), to_string(y.shape()));
  Tensor sum = Tensor::empty(y.shape(), y.dtype(), y.device());
  run(prim::Binary{.op = BinaryOp::add, .a = y, .b = expand_data(x, y.shape()), .y = sum});
  run(prim::Copy{.x = sum, .y = y});
  y.storage()->bump_version();
}

void mul_(const Tensor& y, double value) {
  check_defined(in_place_op, y, "y");
  NoGrad off;
  copy_(y, mul(y, value));
}

void fill_(const Tensor& y, double value) {
  check_defined(in_place_op, y, "y");
  run(prim::Fill{.value = value, .y = y});
  y.storage()->bump_version();
}

void copy_(const Tensor& y, const Tensor& x) {
  check_defined(in_place_op, y, "y");
  check_defined(in_place_op, x, "x");
  check(broadcast_shapes("copy_", x.shape(), y.shape()) == y.shape(),
        "copy_: {} does not broadcast to {}.", to_string(x.shape()), to_string(y.shape()));
  Tensor source = x.detach();
  if (x.device() != y.device() && y.numel() > 0) {  // through the host, in x's dtype
    const Tensor packed = contiguous_data(x);
    std::vector<std::byte> host(packed.nbytes());
    backend(x.device()).copy_to_host(host.data(), packed.raw_data(), packed.nbytes());
    source = Tensor::empty(x.shape(), x.dtype(), y.device());
    backend(y.device()).copy_from_host(source.raw_data(), host.data(), packed.nbytes());
  }
  run(prim::Copy{.x = expand_data(source, y.shape()), .y = y});
  y.storage()->bump_version();
}

}  // namespace crucible
