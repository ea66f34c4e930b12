#include <cmath>
#include <numbers>

#include "tests/reference/activation.h"
#include "tests/reference/reference_backend.h"
#include "tests/reference/values.h"

namespace crucible::reference {
namespace {

const double sqrt_2_over_pi = std::sqrt(2.0 / std::numbers::pi);

// The normal distribution function; in single precision it is good to an absolute unit only.
Real normal_distribution(Real x) {
  return {0.5 * std::erfc(-x.value / std::numbers::sqrt2), x.error + unit};
}
Real normal_density(Real x) {
  return exp(Real(-0.5) * x * x) * Real(1.0 / std::sqrt(2.0 * std::numbers::pi));
}

// 1 + tanh(u) for the argument of the tanh form of GELU; tanh is good to an absolute unit.
Real one_plus_tanh(Real x) {
  const Real u = Real(sqrt_2_over_pi) * (x + Real(0.044715) * x * x * x);
  return {2.0 / (1.0 + std::exp(-2.0 * u.value)), std::min(1.0, 2.0 * u.error) + 2.0 * unit};
}

}  // namespace

Real gelu_tanh(Real x) {
  return Real(0.5) * x * one_plus_tanh(x);
}

Real gelu_tanh_derivative(Real x) {
  const Real t = one_plus_tanh(x);
  const Real slope = Real(sqrt_2_over_pi) * (Real(1.0) + Real(3.0 * 0.044715) * x * x);
  return Real(0.5) * t + Real(0.5) * x * (t * (Real(2.0) - t)) * slope;  // 1 - tanh^2 = t (2 - t)
}

namespace {

Real forward(UnaryOp op, Real x, const UnaryParams& params) {
  switch (op) {
    case UnaryOp::neg:
      return -x;
    case UnaryOp::abs:
      return {std::fabs(x.value), x.error};
    case UnaryOp::exp:
      return exp(x);
    case UnaryOp::log:
      return log(x);
    case UnaryOp::sqrt:
      return sqrt(x);
    case UnaryOp::square:
      return x * x;
    case UnaryOp::relu:
      return std::isnan(x.value) || x.value > 0.0 ? x : Real(0.0);
    case UnaryOp::gelu:
      return x * normal_distribution(x);
    case UnaryOp::gelu_tanh:
      return gelu_tanh(x);
    case UnaryOp::sigmoid:
      return sigmoid(x);
    case UnaryOp::tanh:
      return tanh(x);
    case UnaryOp::silu:
      return x * sigmoid(x);
    case UnaryOp::clamp:
      return std::isnan(x.value) ? x : Real(std::min(std::max(x.value, params.a), params.b));
    case UnaryOp::affine: {  // a fused multiply-add rounds once, so the product counts only there
      const Real product = Real(params.a) * x;
      return {product.value + params.b, product.error + scaled(product.value + params.b, unit)};
    }
    case UnaryOp::power:
      return pow(x, params.a);
  }
  __builtin_unreachable();
}

// The derivative by x, from x or from y, whichever is given.
Real derivative(UnaryOp op, Real x, Real y, const UnaryParams& params) {
  switch (op) {
    case UnaryOp::neg:
      return -1.0;
    case UnaryOp::abs:
      return std::isnan(x.value) ? x : Real((x.value > 0.0) - (x.value < 0.0));
    case UnaryOp::exp:
      return y;
    case UnaryOp::log:
      return Real(1.0) / x;
    case UnaryOp::sqrt:
      return Real(1.0) / (Real(2.0) * y);
    case UnaryOp::square:
      return Real(2.0) * x;
    case UnaryOp::relu:
      return std::isnan(y.value) ? y : Real(y.value > 0.0 ? 1.0 : 0.0);
    case UnaryOp::gelu:
      return normal_distribution(x) + x * normal_density(x);
    case UnaryOp::gelu_tanh:
      return gelu_tanh_derivative(x);
    case UnaryOp::sigmoid:
      return y * (Real(1.0) - y);
    case UnaryOp::tanh:
      return Real(1.0) - y * y;
    case UnaryOp::silu: {
      const Real s = sigmoid(x);
      return s + x * s * (Real(1.0) - s);
    }
    case UnaryOp::clamp:
      return std::isnan(x.value) ? x : Real(x.value >= params.a && x.value <= params.b ? 1.0 : 0.0);
    case UnaryOp::affine:
      return params.a;
    case UnaryOp::power:
      return params.a == 0.0 ? Real(0.0) : Real(params.a) * pow(x, params.a - 1.0);
  }
  __builtin_unreachable();
}

Real forward(BinaryOp op, Real a, Real b) {
  const bool nan = std::isnan(a.value) || std::isnan(b.value);
  switch (op) {
    case BinaryOp::add:
      return a + b;
    case BinaryOp::sub:
      return a - b;
    case BinaryOp::mul:
      return a * b;
    case BinaryOp::div:
      return a / b;
    case BinaryOp::pow:
      return pow(a, b);
    case BinaryOp::maximum:
      return nan ? Real(NAN) : std::max(a.value, b.value);
    case BinaryOp::minimum:
      return nan ? Real(NAN) : std::min(a.value, b.value);
  }
  __builtin_unreachable();
}

// Half of a tie, all of a win.
double share(double mine, double other) {
  return mine > other ? 1.0 : mine == other ? 0.5 : 0.0;
}

Real derivative_by_a(BinaryOp op, Real a, Real b) {
  switch (op) {
    case BinaryOp::add:
    case BinaryOp::sub:
      return 1.0;
    case BinaryOp::mul:
      return b;
    case BinaryOp::div:
      return Real(1.0) / b;
    case BinaryOp::pow:
      return b.value == 0.0 ? Real(0.0) : b * pow(a, b - Real(1.0));
    case BinaryOp::maximum:
      return share(a.value, b.value);
    case BinaryOp::minimum:
      return share(-a.value, -b.value);
  }
  __builtin_unreachable();
}

Real derivative_by_b(BinaryOp op, Real a, Real b) {
  switch (op) {
    case BinaryOp::add:
      return 1.0;
    case BinaryOp::sub:
      return -1.0;
    case BinaryOp::mul:
      return a;
    case BinaryOp::div:
      return -(a / b) / b;
    case BinaryOp::pow:
      return a.value == 0.0 && b.value >= 0.0 ? Real(0.0) : pow(a, b) * log(a);
    case BinaryOp::maximum:
      return share(b.value, a.value);
    case BinaryOp::minimum:
      return share(-b.value, -a.value);
  }
  __builtin_unreachable();
}

int64_t forward_integer(BinaryOp op, int64_t a, int64_t b) {
  const auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  switch (op) {
    case BinaryOp::add:
      return static_cast<int64_t>(ua + ub);
    case BinaryOp::sub:
      return static_cast<int64_t>(ua - ub);
    case BinaryOp::mul:
      return static_cast<int64_t>(ua * ub);
    case BinaryOp::maximum:
      return std::max(a, b);
    case BinaryOp::minimum:
      return std::min(a, b);
    case BinaryOp::div:
    case BinaryOp::pow:
      break;
  }
  __builtin_unreachable();
}

template <class T>
bool holds(CompareOp op, T a, T b) {
  switch (op) {
    case CompareOp::eq:
      return a == b;
    case CompareOp::ne:
      return a != b;
    case CompareOp::lt:
      return a < b;
    case CompareOp::le:
      return a <= b;
    case CompareOp::gt:
      return a > b;
    case CompareOp::ge:
      return a >= b;
  }
  __builtin_unreachable();
}

}  // namespace

void ReferenceBackend::kernel(const prim::Unary& p) {
  std::vector<Real> x = read(p.x);
  for (Real& v : x) v = forward(p.op, v, p.params);
  write(p.y, x);
}

void ReferenceBackend::kernel(const prim::UnaryBackward& p) {
  const std::vector<Real> x = read(p.x), y = read(p.y), dy = read(p.dy);
  std::vector<Real> dx(dy.size());
  for (size_t i = 0; i < dy.size(); ++i) {
    const Real d = derivative(p.op, x.empty() ? NAN : x[i], y.empty() ? NAN : y[i], p.params);
    // The infinite slope of the square root at 0 meets an upstream 0: no gradient, not NaN.
    dx[i] = p.op == UnaryOp::sqrt && dy[i].value == 0.0 ? Real(0.0) : dy[i] * d;
    // Outside of the interval, and where x^0 is constant, dx is 0 whatever dy is.
    if (d.value == 0.0 && d.error == 0.0 && !std::isnan(d.value)) dx[i] = 0.0;
  }
  write(p.dx, dx);
}

void ReferenceBackend::kernel(const prim::Binary& p) {
  if (p.y.dtype() == DType::i64) {
    std::vector<int64_t> a = read_integers(p.a);
    const std::vector<int64_t> b = read_integers(p.b);
    for (size_t i = 0; i < a.size(); ++i) a[i] = forward_integer(p.op, a[i], b[i]);
    return write_integers(p.y, a);
  }
  std::vector<Real> a = read(p.a);
  const std::vector<Real> b = read(p.b);
  for (size_t i = 0; i < a.size(); ++i) a[i] = forward(p.op, a[i], b[i]);
  write(p.y, a);
}

void ReferenceBackend::kernel(const prim::BinaryBackward& p) {
  const std::vector<Real> a = read(p.a), b = read(p.b);
  std::vector<Real> d = read(p.dy);
  for (size_t i = 0; i < d.size(); ++i) {
    const Real slope = p.of == prim::BinaryBackward::Of::a ? derivative_by_a(p.op, a[i], b[i])
                                                           : derivative_by_b(p.op, a[i], b[i]);
    d[i] = d[i] * slope;
  }
  write(p.d, d);
}

void ReferenceBackend::kernel(const prim::Compare& p) {
  std::vector<Real> y(p.y.numel());
  if (p.a.dtype() == DType::i64) {
    const std::vector<int64_t> a = read_integers(p.a), b = read_integers(p.b);
    for (size_t i = 0; i < y.size(); ++i) y[i] = holds(p.op, a[i], b[i]);
  } else {
    const std::vector<Real> a = read(p.a), b = read(p.b);
    for (size_t i = 0; i < y.size(); ++i) y[i] = holds(p.op, a[i].value, b[i].value);
  }
  write(p.y, y);
}

void ReferenceBackend::kernel(const prim::Where& p) {
  const std::vector<Real> condition = read(p.condition);
  if (p.y.dtype() == DType::i64) {
    std::vector<int64_t> a = read_integers(p.a);
    const std::vector<int64_t> b = read_integers(p.b);
    for (size_t i = 0; i < a.size(); ++i) a[i] = condition[i].value != 0.0 ? a[i] : b[i];
    return write_integers(p.y, a);
  }
  std::vector<Real> a = read(p.a);
  const std::vector<Real> b = read(p.b);
  for (size_t i = 0; i < a.size(); ++i) a[i] = condition[i].value != 0.0 ? a[i] : b[i];
  write(p.y, a);
}

}  // namespace crucible::reference
