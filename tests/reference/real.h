/// The number type of the reference backend: a double, and how far from it another backend may be.
///
/// The error is a running one, kept beside every value: each operation adds `unit` times the
/// magnitude of its result to what its operands carry, a sum of n terms adds `unit` times the sum
/// of their magnitudes.  So a bound is large exactly where the condition number is, and no
/// tolerance has to be chosen per primitive.
///
/// | data      | unit | | --------- |
/// --------------------------------------------------------------------------------- | | f64 | 8 *
/// 2^-53                                                                         | | all other | 8
/// * 2^-24: arithmetic is f32 and its worst leaf function (tanh) is good to 4 ulp |
///
/// A sum of n terms adds unit * max(1, sqrt(n) / 8): rounding errors of a sum in any order behave
/// like a random walk, which stays below 2^-24 sqrt(n) times the sum of magnitudes.
/// Source    Higham 2002, "Accuracy and stability of numerical algorithms", sections 3.3 and 4.2;
///           Higham and Mary 2019 for the square root.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace crucible::reference {

/// Relative error granted to one operation.  Set by the backend for each primitive.
inline thread_local double unit = 0.0;
/// What an exponential may lose where it flushes subnormal results to zero: twice the smallest
/// normal number of the arithmetic.
inline thread_local double flush = 0.0;

struct Real {
  double value = 0.0;
  double error = 0.0;

  Real() = default;
  Real(double v) : value(v) {}  // NOLINT: implicit on purpose; constants are exact
  Real(double v, double e) : value(v), error(e) {}
};

/// factor * error, with 0 * inf = 0: a factor of exactly zero hides any error.
inline double scaled(double factor, double error) {
  return factor == 0.0 || error == 0.0 ? 0.0 : std::fabs(factor) * error;
}
/// The value with the errors of its operands and one rounding of its own.
inline Real rounded(double value, double inherited) {
  return {value, inherited + scaled(value, unit)};
}

inline Real operator-(Real a) {
  return {-a.value, a.error};
}
inline Real operator+(Real a, Real b) {
  return rounded(a.value + b.value, a.error + b.error);
}
inline Real operator-(Real a, Real b) {
  return rounded(a.value - b.value, a.error + b.error);
}
inline Real operator*(Real a, Real b) {
  return rounded(a.value * b.value,
                 scaled(a.value, b.error) + scaled(b.value, a.error) + scaled(a.error, b.error));
}
inline Real operator/(Real a, Real b) {
  const double value = a.value / b.value;
  return rounded(value,
                 (a.error + scaled(value, b.error)) / std::max(std::fabs(b.value) - b.error, 0.0));
}

inline Real exp(Real x) {
  const double value = std::exp(x.value);
  return rounded(value, scaled(value, std::expm1(x.error)) + flush);
}
inline Real log(Real x) {
  return rounded(std::log(x.value), x.error / std::max(std::fabs(x.value) - x.error, 0.0));
}
inline Real sqrt(Real x) {
  const double value = std::sqrt(x.value);
  const double inherited = x.error == 0.0 ? 0.0 : std::min(std::sqrt(x.error), x.error / value);
  return rounded(value, inherited);
}
inline Real tanh(Real x) {
  return rounded(std::tanh(x.value), x.error);
}
inline Real sigmoid(Real x) {
  const double s = 1.0 / (1.0 + std::exp(-x.value));
  return rounded(s, scaled(s, std::expm1(x.error)) + flush);
}
inline Real pow(Real a, Real b) {
  const double value = std::pow(a.value, b.value);
  const double inherited = scaled(b.value / a.value, a.error) + scaled(std::log(a.value), b.error);
  return rounded(value, scaled(value, inherited));
}
/// Of an angle; the error is absolute.
inline Real cos(Real x) {
  return {std::cos(x.value), x.error + unit};
}
inline Real sin(Real x) {
  return {std::sin(x.value), x.error + unit};
}

/// A sum in an order that is not prescribed.
class Sum {
 public:
  void add(Real term) {
    value_ += term.value;
    magnitude_ += std::fabs(term.value);
    error_ += term.error;
    ++count_;
  }
  Real total() const {
    const double growth = std::max(1.0, std::sqrt(static_cast<double>(count_)) / 8.0);
    return {static_cast<double>(value_), error_ + scaled(magnitude_, unit * growth)};
  }

 private:
  long double value_ = 0.0L;  // wider than the f64 kernels it judges
  double magnitude_ = 0.0, error_ = 0.0;
  int64_t count_ = 0;
};

}  // namespace crucible::reference
