/// Tests that hold on the reference backend and on the CPU alike.
#pragma once

#include <gmock/gmock.h>

#include <vector>

#include "core/error.h"
#include "tests/reference/reference_backend.h"
#include "tests/samples/maker.h"

namespace crucible::testing {

/// The parameter is the kind of device.  f64, so that values can be stated exactly.
class OnEachDevice : public ::testing::TestWithParam<DeviceType> {
 protected:
  Device device() const { return {GetParam(), 0}; }
  Tensor values(const std::vector<double>& v, const Shape& shape) const {
    return Maker(device(), DType::f64, 0).values(shape, v);
  }
  Tensor row(const std::vector<double>& v) const {
    return values(v, {static_cast<int64_t>(v.size())});
  }
  Tensor leaf(const std::vector<double>& v, const Shape& shape) const {
    return values(v, shape).set_requires_grad();
  }
  Tensor leaf(const std::vector<double>& v) const { return row(v).set_requires_grad(); }
  Tensor integers(const std::vector<int64_t>& v) const {
    return Maker(device(), DType::f64, 0).labels(v);
  }
};

inline std::string name_of_device(const ::testing::TestParamInfo<DeviceType>& info) {
  return info.param == DeviceType::cpu ? "Cpu" : "Reference";
}

/// Matches doubles where NaN equals NaN and -0 equals 0.
MATCHER_P(AreExactly, expected, "") {
  if (arg.size() != expected.size()) return false;
  for (size_t i = 0; i < arg.size(); ++i) {
    if (std::isnan(expected[i]) ? !std::isnan(arg[i]) : arg[i] != expected[i]) {
      *result_listener << "element " << i << " is " << arg[i] << ", not " << expected[i];
      return false;
    }
  }
  return true;
}

template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const InvalidArgument& e) {
    return e.what();
  }
  return "nothing was thrown";
}

}  // namespace crucible::testing

/// Runs a suite derived from OnEachDevice on the devices that every build has.
#define CRUCIBLE_ON_EACH_DEVICE(suite)                                                             \
  INSTANTIATE_TEST_SUITE_P(Each, suite, ::testing::Values(DeviceType::reference, DeviceType::cpu), \
                           ::crucible::testing::name_of_device)
