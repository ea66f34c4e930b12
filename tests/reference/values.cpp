#include "tests/reference/values.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace crucible::reference {
namespace {

bool keep_errors = false;

std::map<const void*, std::vector<double>>& kept() {
  static std::map<const void*, std::vector<double>> errors;
  return errors;
}

template <class T>
T convert(double value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value != 0.0;
  } else if constexpr (std::is_integral_v<T>) {
    using Limits = std::numeric_limits<T>;
    if (std::isnan(value)) return 0;
    if (value <= static_cast<double>(Limits::min())) return Limits::min();
    if (value >= static_cast<double>(Limits::max())) return Limits::max();
    return static_cast<T>(value);
  } else if constexpr (std::is_same_v<T, double>) {
    return value;
  } else {
    return T(static_cast<float>(value));
  }
}

template <class T>
double as_double(T value) {
  if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
    return static_cast<double>(static_cast<float>(value));
  } else {
    return static_cast<double>(value);
  }
}

}  // namespace

std::vector<int64_t> offsets(const Tensor& x) {
  std::vector<int64_t> result(x.numel());
  for (int64_t i = 0; i < x.numel(); ++i) {
    int64_t rest = i;
    for (int axis = x.rank() - 1; axis >= 0; --axis) {
      result[i] += rest % x.shape()[axis] * x.stride(axis);
      rest /= x.shape()[axis];
    }
  }
  return result;
}

std::vector<Real> read(const Tensor& x) {
  std::vector<Real> values;
  if (!x.defined()) return values;
  const std::vector<int64_t> at = offsets(x);
  values.reserve(at.size());
  visit_dtype(x.dtype(), AllDTypes{}, [&]<class T>() {
    for (const int64_t i : at) values.emplace_back(as_double(x.data<T>()[i]));
  });
  return values;
}

std::vector<int64_t> read_integers(const Tensor& x) {
  std::vector<int64_t> values;
  for (const int64_t i : offsets(x)) values.push_back(x.data<int64_t>()[i]);
  return values;
}

Real read_scalar(const Tensor& x, double otherwise) {
  return x.defined() ? read(x).front() : Real(otherwise);
}

void write(const Tensor& y, std::span<const Real> values) {
  if (!y.defined()) return;
  const std::vector<int64_t> at = offsets(y);
  visit_dtype(y.dtype(), AllDTypes{}, [&]<class T>() {
    for (size_t i = 0; i < at.size(); ++i) y.data<T>()[at[i]] = convert<T>(values[i].value);
  });
  if (!keep_errors) return;
  std::vector<double>& errors = kept()[y.raw_data()];
  errors.clear();
  for (const Real& r : values) errors.push_back(r.error);
}

void write_integers(const Tensor& y, std::span<const int64_t> values) {
  const std::vector<int64_t> at = offsets(y);
  for (size_t i = 0; i < at.size(); ++i) y.data<int64_t>()[at[i]] = values[i];
  if (keep_errors) kept()[y.raw_data()].assign(values.size(), 0.0);
}

double spacing(DType dtype, double value) {
  // Fraction bits and the exponent of the smallest normal number.
  const auto [bits, lowest] = dtype == DType::f64   ? std::pair(52, -1022)
                              : dtype == DType::f32 ? std::pair(23, -126)
                              : dtype == DType::f16 ? std::pair(10, -14)
                                                    : std::pair(7, -126);
  if (!std::isfinite(value)) return 0.0;
  const int exponent = value == 0.0 ? lowest : std::max(std::ilogb(value), lowest);
  return std::ldexp(1.0, exponent - bits);
}

Real stored(Real x, DType dtype) {
  return {x.value, x.error + spacing(dtype, x.value) / 2};
}

KeepErrors::KeepErrors() {
  keep_errors = true;
}
KeepErrors::~KeepErrors() {
  keep_errors = false;
  kept().clear();
}
const std::vector<double>* KeepErrors::of(const Tensor& y) const {
  const auto it = kept().find(y.raw_data());
  return it == kept().end() ? nullptr : &it->second;
}

}  // namespace crucible::reference
