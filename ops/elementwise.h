/// Elementwise functions, with broadcasting where they take two tensors.
///
/// Shapes    One argument: y has x's shape.  Two: both are broadcast to a common shape (aligned at
///           the last axis, sizes equal or 1); gradients are summed back to each operand's shape.
/// Dtypes    f16, bf16, f32, f64; computed in f32 (f64 for f64).  add, sub, mul also i64.
/// Throws    InvalidArgument if shapes do not broadcast or dtypes or devices differ.
/// The formulas and their values at singular points are in core/elementwise.h.
#pragma once

#include "core/primitives.h"
#include "core/tensor.h"

namespace crucible {

Tensor add(const Tensor& a, const Tensor& b);
Tensor sub(const Tensor& a, const Tensor& b);
Tensor mul(const Tensor& a, const Tensor& b);
Tensor div(const Tensor& a, const Tensor& b);
Tensor pow(const Tensor& a, const Tensor& b);
Tensor maximum(const Tensor& a, const Tensor& b);
Tensor minimum(const Tensor& a, const Tensor& b);

Tensor add(const Tensor& x, double value);
Tensor sub(const Tensor& x, double value);
Tensor mul(const Tensor& x, double value);
Tensor div(const Tensor& x, double value);
/// x^exponent; the derivative of x^0 is 0 everywhere.
Tensor pow(const Tensor& x, double exponent);

inline Tensor operator+(const Tensor& a, const Tensor& b) {
  return add(a, b);
}
inline Tensor operator-(const Tensor& a, const Tensor& b) {
  return sub(a, b);
}
inline Tensor operator*(const Tensor& a, const Tensor& b) {
  return mul(a, b);
}
inline Tensor operator/(const Tensor& a, const Tensor& b) {
  return div(a, b);
}
inline Tensor operator+(const Tensor& x, double value) {
  return add(x, value);
}
inline Tensor operator-(const Tensor& x, double value) {
  return sub(x, value);
}
inline Tensor operator*(const Tensor& x, double value) {
  return mul(x, value);
}
inline Tensor operator/(const Tensor& x, double value) {
  return div(x, value);
}

Tensor neg(const Tensor& x);
inline Tensor operator-(const Tensor& x) {
  return neg(x);
}
Tensor abs(const Tensor& x);
Tensor exp(const Tensor& x);
Tensor log(const Tensor& x);
Tensor sqrt(const Tensor& x);
Tensor square(const Tensor& x);
Tensor relu(const Tensor& x);
/// x Phi(x), exact.  Source: Hendrycks and Gimpel 2016, arXiv:1606.08415.
Tensor gelu(const Tensor& x);
/// The tanh form of GELU, as GPT-2 uses it.
Tensor gelu_tanh(const Tensor& x);
Tensor sigmoid(const Tensor& x);
Tensor tanh(const Tensor& x);
/// x sigmoid(x).
Tensor silu(const Tensor& x);
/// min(max(x, low), high).  Throws InvalidArgument if low > high.
Tensor clamp(const Tensor& x, double low, double high);

/// condition ? a : b, all three broadcast.  condition: bool.
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);

/// a op b as bool, broadcast; any dtype; backward through it throws.
Tensor compare(CompareOp op, const Tensor& a, const Tensor& b);

/// In-place changes.  They record nothing; a backward that saved the old values then throws.
/// y += x (x broadcast to y).
void add_(const Tensor& y, const Tensor& x);
/// y *= value.
void mul_(const Tensor& y, double value);
/// y = value.
void fill_(const Tensor& y, double value);
/// y = x, converted to y's dtype, broadcast to y; x may live on another device.
void copy_(const Tensor& y, const Tensor& x);

}  // namespace crucible
