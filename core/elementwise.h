/// The elementwise formulas, forward beside derivative, shared by CPU loops and device kernels.
///
/// Each op is one struct.  T is float or double (integers for the arithmetic binary ops).  The
/// reference backend in tests/ writes its own formulas, or it would be no oracle.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/scalar_math.h"

namespace crucible {

enum class UnaryOp : uint8_t {
  neg,
  abs,
  exp,
  log,
  sqrt,
  square,
  relu,
  gelu,
  gelu_tanh,
  sigmoid,
  tanh,
  silu,
  clamp,
  affine,
  power
};
enum class BinaryOp : uint8_t { add, sub, mul, div, pow, maximum, minimum };

/// clamp: low a, high b.  affine: a * x + b.  power: x^a.  Others ignore both.
struct UnaryParams {
  double a = 0.0;
  double b = 0.0;
};

std::string_view name_of(UnaryOp op);
std::string_view name_of(BinaryOp op);

namespace elementwise {

/// Which of x and y a backward formula reads; the op saves only that.
enum class Uses : uint8_t { nothing, x, y };

struct Neg {
  static constexpr Uses uses = Uses::nothing;
  template <class T>
  CRUCIBLE_HD static T forward(T x, T, T) {
    return -x;
  }
  template <class T>
  CRUCIBLE_HD static T backward(T, T dy, T, T) {
    return -dy;
  }
};
/// |x|; the derivative at 0 is 0.
struct Abs {
  static constexpr Uses uses = Uses::x;
  template <class T>
  CRUCIBLE_HD static T forward(T x, T, T) {
    return x < T(0) ? -x : x == T(0) ? T(0) : x;
  }
  template <class T>
  CRUCIBLE_HD static T backward(T x, T dy, T, T) {
    return x > T(0) ? dy : x < T(0) ? -dy : x == T(0) ? T(0) : x;
  }
};
struct Exp {
  static constexpr Uses uses = Uses::y;
  template <class T>
  CRUCIBLE_HD static T forward(T x, T, T) {
    return scalar::exp(x);
  }
  template <class T>
  CRUCIBLE_HD static T backward(T y, T dy, T, T) {
    return dy * y;
  }
};
struct Log {
  static constexpr Uses uses = Uses::x;
  template <class T>
  CRUCIBLE_HD static T forward(T x, T, T) {
    return scalar::log(x);
  }
  template <class T>
  CRUCIBLE_HD static T backward(T x, T dy, T, T) {
    return dy / x;
  }
};
/// sqrt(x); the derivative at 0 is infinite times dy, but 0 where dy is 0.
struct Sqrt {
  static constexpr Uses uses = Uses::y;
  template <class T>
  CRUCIBLE_HD static T forward(T x, T, T) {
    return scalar::sqrt(x);
  }
  template <class T>
  CRUCIBLE_HD static T backward(T y, T dy, T, T) {
    return dy == T(0) ? T(0) : dy * T(0.5) / y;
  }
};
struct Square {
  static constexpr Uses uses = Uses::x;
  template <class T>
  CRUCIBLE_HD static T forward(T x, T, T) {
    return x * x;
  }
  template <class T>
  CRUCIBLE_HD static T backward(T x, T dy, T, T) {
    return T(2) * x * dy;
  }
};
/// max(x, 0), NaN stays NaN; the derivative at 0 is 0, at NaN it is NaN.
struct Relu {
  static constexpr Uses uses = Uses::y;
  template <class T>
  CRUCIBLE_HD static T forward(T x, T, T) {
    return x <= T(0) ? T(0) : x;
  }
  template <class T>
  CRUCIBLE_HD static T backward(T y, T dy, T, T) {
    return y > T(0) ? dy : y == y ? T(0) : y;
  }
};
/// x Phi(x) with the normal distribution function.  Source: Hendrycks and Gimpel 2016.
struct Gelu {
  static constexpr Uses uses = Uses::x;
  template <class T>
  CRUCIBLE_HD static T phi(T x) {
    return T(0.5) + T(0.5) * scalar::erf(x * T(0.70710678118654752440));
  }
  template <class T>
  CRUCIBLE_HD static T forward(T x, T, T) {
    return x * phi(x);
  }
  template <class T>
  CRUCIBLE_HD static T backward(T x, T dy, T, T) {
    return dy * (phi(x) + x * T(0.39894228040143267794) * scalar::exp(T(-0.5) * x * x));
  }
};
/// x / (1 + exp(-2u)), u = sqrt(2 / pi) (x + 0.044715 x^3): the tanh form of GELU.
struct GeluTanh {
  static constexpr Uses uses = Uses::x;
  template <class T>
  CRUCIBLE_HD static T gate(T x) {
    return scalar::sigmoid(T(1.59576912160573071176) * (x + T(0.044715) * x * x * x));
  }
  template <class T>
  CRUCIBLE_HD static T forward(T x, T, T) {
    return x * gate(x);
  }
  template <class T>
  CRUCIBLE_HD static T backward(T x, T dy, T, T) {
    const T s = gate(x);
    return dy *
           (s + x * s * (T(1) - s) * T(1.59576912160573071176) * (T(1) + T(3 * 0.044715) * x * x));
  }
};
struct Sigmoid {
  static constexpr Uses uses = Uses::y;
  template <class T>
  CRUCIBLE_HD static T forward(T x, T, T) {
    return scalar::sigmoid(x);
  }
  template <class T>
  CRUCIBLE_HD static T backward(T y, T dy, T, T) {
    return dy * y * (T(1) - y);
  }
};
struct Tanh {
  static constexpr Uses uses = Uses::y;
  template <class T>
  CRUCIBLE_HD static T forward(T x, T, T) {
    return scalar::tanh(x);
  }
  template <class T>
  CRUCIBLE_HD static T backward(T y, T dy, T, T) {
    return dy * (T(1) - y * y);
  }
};
/// x / (1 + exp(-x)), from h = exp(-|x| / 2), whose square would underflow long before the result.
struct Silu {
  static constexpr Uses uses = Uses::x;
  template <class T>
  CRUCIBLE_HD static T forward(T x, T, T) {
    const T h = scalar::exp(x < T(0) ? T(0.5) * x : T(-0.5) * x);
    const T scaled = x < T(0) ? x * h * h : x;
    return scaled / (T(1) + h * h);
  }
  template <class T>
  CRUCIBLE_HD static T backward(T x, T dy, T, T) {
    const T s = scalar::sigmoid(x);
    return dy * s * (T(1) + x * (T(1) - s));
  }
};
/// min(max(x, low), high), NaN stays NaN; the derivative is 1 on the closed interval.
struct Clamp {
  static constexpr Uses uses = Uses::x;
  template <class T>
  CRUCIBLE_HD static T forward(T x, T low, T high) {
    return x < low ? low : x > high ? high : x;
  }
  template <class T>
  CRUCIBLE_HD static T backward(T x, T dy, T low, T high) {
    return x >= low && x <= high ? dy : x == x ? T(0) : x;
  }
};
struct Affine {
  static constexpr Uses uses = Uses::nothing;
  template <class T>
  CRUCIBLE_HD static T forward(T x, T a, T b) {
    return a * x + b;
  }
  template <class T>
  CRUCIBLE_HD static T backward(T, T dy, T a, T) {
    return a * dy;
  }
};
/// x^a; the derivative of x^0 is 0 everywhere.
struct Power {
  static constexpr Uses uses = Uses::x;
  template <class T>
  CRUCIBLE_HD static T forward(T x, T a, T) {
    return scalar::pow(x, a);
  }
  template <class T>
  CRUCIBLE_HD static T backward(T x, T dy, T a, T) {
    return a == T(0) ? T(0) : dy * a * scalar::pow(x, a - T(1));
  }
};

struct Add {
  template <class T>
  CRUCIBLE_HD static T forward(T a, T b) {
    return a + b;
  }
  template <class T>
  CRUCIBLE_HD static T grad_a(T, T, T dy) {
    return dy;
  }
  template <class T>
  CRUCIBLE_HD static T grad_b(T, T, T dy) {
    return dy;
  }
};
struct Sub {
  template <class T>
  CRUCIBLE_HD static T forward(T a, T b) {
    return a - b;
  }
  template <class T>
  CRUCIBLE_HD static T grad_a(T, T, T dy) {
    return dy;
  }
  template <class T>
  CRUCIBLE_HD static T grad_b(T, T, T dy) {
    return -dy;
  }
};
struct Mul {
  template <class T>
  CRUCIBLE_HD static T forward(T a, T b) {
    return a * b;
  }
  template <class T>
  CRUCIBLE_HD static T grad_a(T, T b, T dy) {
    return dy * b;
  }
  template <class T>
  CRUCIBLE_HD static T grad_b(T a, T, T dy) {
    return dy * a;
  }
};
struct Div {
  template <class T>
  CRUCIBLE_HD static T forward(T a, T b) {
    return a / b;
  }
  template <class T>
  CRUCIBLE_HD static T grad_a(T, T b, T dy) {
    return dy / b;
  }
  template <class T>
  CRUCIBLE_HD static T grad_b(T a, T b, T dy) {
    return -dy * a / (b * b);
  }
};
/// a^b.  d/da is 0 where b is 0; d/db is 0 where a is 0 and b >= 0.
struct Pow {
  template <class T>
  CRUCIBLE_HD static T forward(T a, T b) {
    return scalar::pow(a, b);
  }
  template <class T>
  CRUCIBLE_HD static T grad_a(T a, T b, T dy) {
    return b == T(0) ? T(0) : dy * b * scalar::pow(a, b - T(1));
  }
  template <class T>
  CRUCIBLE_HD static T grad_b(T a, T b, T dy) {
    return a == T(0) && b >= T(0) ? T(0) : dy * scalar::pow(a, b) * scalar::log(a);
  }
};
/// Ties give half of the gradient to each side; a NaN operand gives NaN.
struct Maximum {
  template <class T>
  CRUCIBLE_HD static T forward(T a, T b) {
    return a > b || a != a ? a : b;
  }
  template <class T>
  CRUCIBLE_HD static T grad_a(T a, T b, T dy) {
    return a > b ? dy : a == b ? dy / T(2) : T(0);
  }
  template <class T>
  CRUCIBLE_HD static T grad_b(T a, T b, T dy) {
    return grad_a(b, a, dy);
  }
};
struct Minimum {
  template <class T>
  CRUCIBLE_HD static T forward(T a, T b) {
    return a < b || a != a ? a : b;
  }
  template <class T>
  CRUCIBLE_HD static T grad_a(T a, T b, T dy) {
    return a < b ? dy : a == b ? dy / T(2) : T(0);
  }
  template <class T>
  CRUCIBLE_HD static T grad_b(T a, T b, T dy) {
    return grad_a(b, a, dy);
  }
};

}  // namespace elementwise

/// Calls `f.operator()<Functor>()` for the struct of `op`.
template <class F>
auto visit_unary(UnaryOp op, F&& f) {
  using namespace elementwise;
  switch (op) {
    case UnaryOp::neg:
      return f.template operator()<Neg>();
    case UnaryOp::abs:
      return f.template operator()<Abs>();
    case UnaryOp::exp:
      return f.template operator()<Exp>();
    case UnaryOp::log:
      return f.template operator()<Log>();
    case UnaryOp::sqrt:
      return f.template operator()<Sqrt>();
    case UnaryOp::square:
      return f.template operator()<Square>();
    case UnaryOp::relu:
      return f.template operator()<Relu>();
    case UnaryOp::gelu:
      return f.template operator()<Gelu>();
    case UnaryOp::gelu_tanh:
      return f.template operator()<GeluTanh>();
    case UnaryOp::sigmoid:
      return f.template operator()<Sigmoid>();
    case UnaryOp::tanh:
      return f.template operator()<Tanh>();
    case UnaryOp::silu:
      return f.template operator()<Silu>();
    case UnaryOp::clamp:
      return f.template operator()<Clamp>();
    case UnaryOp::affine:
      return f.template operator()<Affine>();
    case UnaryOp::power:
      return f.template operator()<Power>();
  }
  __builtin_unreachable();
}

template <class F>
auto visit_binary(BinaryOp op, F&& f) {
  using namespace elementwise;
  switch (op) {
    case BinaryOp::add:
      return f.template operator()<Add>();
    case BinaryOp::sub:
      return f.template operator()<Sub>();
    case BinaryOp::mul:
      return f.template operator()<Mul>();
    case BinaryOp::div:
      return f.template operator()<Div>();
    case BinaryOp::pow:
      return f.template operator()<Pow>();
    case BinaryOp::maximum:
      return f.template operator()<Maximum>();
    case BinaryOp::minimum:
      return f.template operator()<Minimum>();
  }
  __builtin_unreachable();
}

/// Which of x and y the backward of `op` reads.
inline elementwise::Uses backward_uses(UnaryOp op) {
  return visit_unary(op, []<class F>() { return F::uses; });
}

}  // namespace crucible
