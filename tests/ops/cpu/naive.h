/// Plain loops in double that the tests of the CPU kernels compare with.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "core/primitives.h"
#include "core/tensor.h"

namespace crucible::naive {

/// Deterministic values in [-1, 1), different for each `seed`.
inline std::vector<double> values(int64_t count, uint64_t seed) {
  std::vector<double> v(count);
  uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
  for (double& x : v) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    x = static_cast<double>(static_cast<int64_t>(state) >> 11) * 0x1p-52;
  }
  return v;
}

/// A tensor of `dtype` with these values, rounded; `v` becomes what the tensor holds.
inline Tensor tensor(std::vector<double>& v, const Shape& shape, DType dtype) {
  const Tensor t = Tensor::empty(shape, dtype);
  visit_dtype(dtype, Floats{}, [&]<class T>() {
    for (size_t i = 0; i < v.size(); ++i) {
      if constexpr (sizeof(T) == 2) {
        t.data<T>()[i] = T(static_cast<float>(v[i]));
        v[i] = static_cast<float>(t.data<T>()[i]);
      } else {
        t.data<T>()[i] = static_cast<T>(v[i]);
        v[i] = static_cast<double>(t.data<T>()[i]);
      }
    }
  });
  return t;
}

inline std::vector<double> read(const Tensor& t) {
  std::vector<double> v(t.numel());
  visit_dtype(t.dtype(), Floats{}, [&]<class T>() {
    for (size_t i = 0; i < v.size(); ++i) {
      if constexpr (sizeof(T) == 2) {
        v[i] = static_cast<float>(t.data<T>()[i]);
      } else {
        v[i] = static_cast<double>(t.data<T>()[i]);
      }
    }
  });
  return v;
}

/// Half the distance from 1 to the next value of `dtype`.
inline double unit_roundoff(DType dtype) {
  return dtype == DType::f64   ? 0x1p-53
         : dtype == DType::f32 ? 0x1p-24
         : dtype == DType::f16 ? 0x1p-11
                               : 0x1p-8;
}

/// |actual - expected| <= bound of each element.  `magnitude` is the sum of the absolute values of
/// the `terms` terms that were added: (terms + 2) u magnitude bounds any order of summation in
/// f32 (Higham 2002, section 4.2), plus one rounding to the dtype of the result.
inline ::testing::AssertionResult close(const std::vector<double>& actual,
                                        const std::vector<double>& expected,
                                        const std::vector<double>& magnitude, int64_t terms,
                                        DType dtype) {
  const double sums = unit_roundoff(dtype == DType::f64 ? DType::f64 : DType::f32);
  if (actual.size() != expected.size()) return ::testing::AssertionFailure() << "sizes differ";
  for (size_t i = 0; i < actual.size(); ++i) {
    const double smallest = dtype == DType::f16 ? 0x1p-25 : 0x1p-140;  // half a subnormal step
    const double bound = static_cast<double>(terms + 2) * sums * magnitude[i] +
                         unit_roundoff(dtype) * std::abs(expected[i]) * 1.01 + smallest;
    if (!(std::abs(actual[i] - expected[i]) <= bound)) {
      return ::testing::AssertionFailure() << "element " << i << " is " << actual[i]
                                           << ", expected " << expected[i] << " within " << bound;
    }
  }
  return ::testing::AssertionSuccess();
}

}  // namespace crucible::naive
