#include "core/cost.h"

#include <initializer_list>

namespace crucible {
namespace {

constexpr double transcendental = 8.0;

// Bytes behind the tensors that are defined; repeated elements (stride 0) count once.
int64_t bytes(std::initializer_list<const Tensor*> tensors) {
  int64_t total = 0;
  for (const Tensor* t : tensors) {
    if (!t->defined()) continue;
    int64_t elements = 1;
    for (int i = 0; i < t->rank(); ++i) {
      if (t->stride(i) != 0 || t->shape()[i] == 0) elements *= t->shape()[i];
    }
    total += elements * size_of(t->dtype());
  }
  return total;
}

double flops_of(UnaryOp op) {
  switch (op) {
    case UnaryOp::exp:
    case UnaryOp::log:
    case UnaryOp::sqrt:
    case UnaryOp::gelu:
    case UnaryOp::gelu_tanh:
    case UnaryOp::sigmoid:
    case UnaryOp::tanh:
    case UnaryOp::silu:
    case UnaryOp::power:
      return transcendental;
    default:
      return 1.0;
  }
}

double per_element(const Tensor& t, double flops) {
  return flops * static_cast<double>(t.numel());
}

Cost vector(double flops, std::initializer_list<const Tensor*> read,
            std::initializer_list<const Tensor*> written) {
  return {flops, bytes(read), bytes(written), false};
}

Cost matrix(double flops, std::initializer_list<const Tensor*> read,
            std::initializer_list<const Tensor*> written) {
  return {flops, bytes(read), bytes(written), true};
}

// Two per tap: output pixels x channels per group x kernel.
double convolution_flops(const Tensor& y, const Tensor& w) {
  const double taps = static_cast<double>(w.size(1)) * w.size(2) * w.size(3);
  return 2.0 * static_cast<double>(y.numel()) * taps;
}

// Pairs of a row and a column it sees.
double visible(const Tensor& q, const Tensor& k, bool causal) {
  const double t = q.size(1), s = k.size(1), heads = static_cast<double>(q.size(0)) * q.size(2);
  return heads * (causal ? t * (s - t / 2.0) : t * s);
}

double pool_taps(const Window& w, const Tensor& y) {
  return static_cast<double>(y.numel()) * w.kernel[0] * w.kernel[1];
}

Cost of(const prim::Fill& p) {
  return vector(0, {}, {&p.y});
}
Cost of(const prim::Copy& p) {
  return vector(0, {&p.x}, {&p.y});
}
Cost of(const prim::Unary& p) {
  return vector(per_element(p.y, flops_of(p.op)), {&p.x}, {&p.y});
}
Cost of(const prim::UnaryBackward& p) {
  return vector(per_element(p.dx, 2.0 + flops_of(p.op)), {&p.x, &p.y, &p.dy}, {&p.dx});
}
Cost of(const prim::Binary& p) {
  const double flops = p.op == BinaryOp::pow ? transcendental : 1.0;
  return vector(per_element(p.y, flops), {&p.a, &p.b}, {&p.y});
}
Cost of(const prim::BinaryBackward& p) {
  const double flops = p.op == BinaryOp::pow ? 2 * transcendental : 2.0;
  return vector(per_element(p.d, flops), {&p.a, &p.b, &p.dy}, {&p.d});
}
Cost of(const prim::Compare& p) {
  return vector(per_element(p.y, 1.0), {&p.a, &p.b}, {&p.y});
}
Cost of(const prim::Where& p) {
  return vector(0, {&p.condition, &p.a, &p.b}, {&p.y});
}
Cost of(const prim::Reduce& p) {
  const double flops = p.op == ReduceOp::logsumexp ? transcendental : 1.0;
  return vector(per_element(p.x, flops), {&p.x}, {&p.y});
}
Cost of(const prim::ReduceBackward& p) {
  const double flops = p.op == ReduceOp::logsumexp ? transcendental : 1.0;
  return vector(per_element(p.dx, flops), {&p.x, &p.y, &p.dy}, {&p.dx});
}
Cost of(const prim::ArgMax& p) {
  return vector(per_element(p.x, 1.0), {&p.x}, {&p.y});
}
Cost of(const prim::Matmul& p) {
  const double k = static_cast<double>(p.transpose_a ? p.a.size(1) : p.a.size(2));
  double flops = 2.0 * static_cast<double>(p.y.numel()) * k;
  return matrix(flops, {&p.a, &p.b, &p.bias}, {&p.y, &p.pre_activation});
}
Cost of(const prim::BiasActivationBackward& p) {
  const double flops = p.activation == Activation::gelu_tanh ? 1.0 + transcendental : 2.0;
  return vector(per_element(p.dy, flops), {&p.saved, &p.dy}, {&p.dz, &p.db});
}
Cost of(const prim::Convolution& p) {
  return matrix(convolution_flops(p.y, p.w), {&p.x, &p.w, &p.bias}, {&p.y});
}
Cost of(const prim::ConvolutionDataGradient& p) {
  return matrix(convolution_flops(p.dy, p.w), {&p.dy, &p.w}, {&p.dx});
}
Cost of(const prim::ConvolutionFilterGradient& p) {
  return matrix(convolution_flops(p.dy, p.dw), {&p.x, &p.dy}, {&p.dw});
}
Cost of(const prim::BatchNorm& p) {
  return vector(per_element(p.x, p.training ? 7.0 : 4.0),
                {&p.x, &p.residual, &p.gamma, &p.beta, &p.running_mean, &p.running_var},
                {&p.y, &p.mean, &p.rstd});
}
Cost of(const prim::BatchNormBackward& p) {
  return vector(per_element(p.x, 10.0), {&p.x, &p.y, &p.dy, &p.gamma, &p.mean, &p.rstd},
                {&p.dx, &p.dresidual, &p.dgamma, &p.dbeta});
}
Cost of(const prim::LayerNorm& p) {
  return vector(per_element(p.x, 8.0), {&p.x, &p.gamma, &p.beta}, {&p.y, &p.mean, &p.rstd});
}
Cost of(const prim::LayerNormBackward& p) {
  return vector(per_element(p.x, 12.0), {&p.x, &p.dy, &p.gamma, &p.mean, &p.rstd},
                {&p.dx, &p.dgamma, &p.dbeta});
}
Cost of(const prim::Pool& p) {
  return vector(pool_taps(p.window, p.y), {&p.x}, {&p.y});
}
Cost of(const prim::PoolBackward& p) {
  return vector(pool_taps(p.window, p.dy), {&p.x, &p.dy}, {&p.dx});
}
Cost of(const prim::Softmax& p) {
  return vector(per_element(p.x, 3.0 + transcendental), {&p.x}, {&p.y});
}
Cost of(const prim::SoftmaxBackward& p) {
  return vector(per_element(p.y, p.log ? 2.0 + transcendental : 4.0), {&p.y, &p.dy}, {&p.dx});
}
Cost of(const prim::CrossEntropy& p) {
  return vector(per_element(p.logits, 2.0 + transcendental), {&p.logits, &p.labels},
                {&p.lse, &p.count, &p.loss});
}
Cost of(const prim::CrossEntropyBackward& p) {
  return vector(per_element(p.logits, 3.0 + transcendental),
                {&p.logits, &p.labels, &p.lse, &p.scale}, {&p.dlogits});
}
Cost of(const prim::CountCorrect& p) {
  return vector(per_element(p.logits, 1.0), {&p.logits, &p.labels}, {&p.correct});
}
Cost of(const prim::Embedding& p) {
  return vector(0, {&p.ids, &p.y}, {&p.y});
}
Cost of(const prim::EmbeddingBackward& p) {
  return vector(per_element(p.dy, 1.0), {&p.ids, &p.dy}, {&p.dtable});
}
Cost of(const prim::Attention& p) {
  const double pairs = visible(p.q, p.k, p.causal);
  return matrix(4.0 * pairs * static_cast<double>(p.q.size(3)), {&p.q, &p.k, &p.v, &p.mask},
                {&p.o, &p.lse});
}
Cost of(const prim::AttentionBackward& p) {  // the scores again, then four products
  const double pairs = visible(p.q, p.k, p.causal);
  return matrix(10.0 * pairs * static_cast<double>(p.q.size(3)),
                {&p.q, &p.k, &p.v, &p.mask, &p.o, &p.lse, &p.doutput}, {&p.dq, &p.dk, &p.dv});
}
Cost of(const prim::Dropout& p) {
  return vector(per_element(p.x, 2.0), {&p.x}, {&p.y});
}
Cost of(const prim::Random& p) {
  const bool normal = p.kind == prim::Random::Kind::normal;
  return vector(per_element(p.y, normal ? 2.0 * transcendental : 2.0), {}, {&p.y});
}
Cost of(const prim::SgdStep& p) {
  return vector(per_element(p.param, 5.0), {&p.grad, &p.velocity, &p.param},
                {&p.velocity, &p.param});
}
Cost of(const prim::AdamWStep& p) {
  return vector(per_element(p.param, 12.0 + transcendental), {&p.grad, &p.m, &p.v, &p.param},
                {&p.m, &p.v, &p.param});
}
Cost of(const prim::SumSquares& p) {
  return vector(per_element(p.x, 2.0), {&p.x}, {&p.y});
}

}  // namespace

Cost cost(const Primitive& primitive) {
  return std::visit([](const auto& p) { return of(p); }, primitive);
}

std::string_view name_of(const Primitive& primitive) {
  return std::visit([](const auto& p) { return p.name; }, primitive);
}

}  // namespace crucible
