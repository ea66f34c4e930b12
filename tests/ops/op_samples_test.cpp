// The registry of ops: complete, and refusing what it must with the right words.
#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>

#include "tests/ops/on_each_device.h"
#include "tests/reference/reference_backend.h"
#include "tests/samples/op.h"
#include "tests/samples/seed.h"

namespace crucible::testing {
namespace {

// The names in every `OpInfo x_op{"name"}` below ops/.
std::set<std::string> op_names_in_sources() {
  std::set<std::string> names;
  const std::regex pattern("OpInfo\\s+\\w+\\s*\\{\\s*\"([^\"]+)\"");
  for (const auto& entry : std::filesystem::recursive_directory_iterator(CRUCIBLE_OPS_FOLDER)) {
    if (entry.path().extension() != ".cpp") continue;
    std::ifstream file(entry.path());
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    for (std::sregex_iterator it(text.begin(), text.end(), pattern), end; it != end; ++it) {
      names.insert((*it)[1]);
    }
  }
  return names;
}

std::map<std::string, int> sample_counts() {
  std::map<std::string, int> counts;
  for (const OpSample& s : op_samples().differentiable) ++counts[s.op];
  for (const NoGradientSample& s : op_samples().no_gradient) ++counts[s.op];
  return counts;
}

TEST(OpSamples, CoverEveryOpWithAtLeastSix) {
  const std::set<std::string> names = op_names_in_sources();
  ASSERT_GT(names.size(), 40u) << "no ops found below " << CRUCIBLE_OPS_FOLDER;
  const std::map<std::string, int> counts = sample_counts();
  for (const std::string& name : names) {
    const auto it = counts.find(name);
    EXPECT_TRUE(it != counts.end() && it->second >= 6)
        << name << " has " << (it == counts.end() ? 0 : it->second)
        << " samples; add some to tests/samples/";
  }
  for (const auto& [name, count] : counts) EXPECT_TRUE(names.contains(name)) << name;
}

TEST(OpSamples, CoverEveryOpWithAnError) {
  std::set<std::string> with_errors;
  for (const ErrorSample& s : op_samples().errors) with_errors.insert(s.op);
  for (const std::string& name : op_names_in_sources()) {
    EXPECT_TRUE(with_errors.contains(name)) << name;
  }
}

TEST(OpSamples, HaveDistinctNames) {
  std::set<std::string> names;
  for (const OpSample& s : op_samples().differentiable) {
    EXPECT_TRUE(names.insert(s.op + s.name).second) << s.op << s.name;
  }
  for (const ErrorSample& s : op_samples().errors) {
    EXPECT_TRUE(names.insert("error " + s.op + s.name).second) << s.op << s.name;
  }
}

class ThrowsNaming : public ::testing::TestWithParam<std::tuple<DeviceType, size_t>> {};

TEST_P(ThrowsNaming, TheValueAndTheRemedy) {
  const auto [device, index] = GetParam();
  const ErrorSample& sample = op_samples().errors[index];
  Maker maker(Device{device, 0}, DType::f64, run_seed());
  const std::string error = error_of([&] { sample.call(maker); });
  EXPECT_THAT(error, ::testing::HasSubstr(sample.text));
  EXPECT_EQ(error.back(), '.') << "one sentence: " << error;
}

std::string name_of_error(const ::testing::TestParamInfo<ThrowsNaming::ParamType>& info) {
  const ErrorSample& s = op_samples().errors[std::get<1>(info.param)];
  return camel_case(s.op) + s.name;
}

INSTANTIATE_TEST_SUITE_P(Reference, ThrowsNaming,
                         ::testing::Combine(::testing::Values(DeviceType::reference),
                                            ::testing::Range<size_t>(0,
                                                                     op_samples().errors.size())),
                         name_of_error);
INSTANTIATE_TEST_SUITE_P(Cpu, ThrowsNaming,
                         ::testing::Combine(::testing::Values(DeviceType::cpu),
                                            ::testing::Range<size_t>(0,
                                                                     op_samples().errors.size())),
                         name_of_error);

class NoGradient : public ::testing::TestWithParam<std::tuple<DeviceType, size_t>> {};

TEST_P(NoGradient, GivesTheValueAndRefusesBackward) {
  const auto [device, index] = GetParam();
  const NoGradientSample& sample = op_samples().no_gradient[index];
  Maker maker(Device{device, 0}, DType::f64, run_seed());
  const Tensor y = sample.call(maker);
  EXPECT_THAT(host_values(y), ::testing::ContainerEq(sample.expected));
  Maker ones(y.device(), y.dtype(), 0);
  const Tensor dy = ones.values_as(y.dtype(), y.shape(), std::vector<double>(y.numel(), 1.0));
  EXPECT_THAT(
      error_of([&] { y.backward(dy); }),
      ::testing::HasSubstr(y.requires_grad() ? sample.op + ": backward: this op has no gradient"
                                             : "backward: the tensor has no history"));
}

std::string name_of_no_gradient(const ::testing::TestParamInfo<NoGradient::ParamType>& info) {
  const NoGradientSample& s = op_samples().no_gradient[std::get<1>(info.param)];
  return camel_case(s.op) + s.name;
}

INSTANTIATE_TEST_SUITE_P(
    Reference, NoGradient,
    ::testing::Combine(::testing::Values(DeviceType::reference),
                       ::testing::Range<size_t>(0, op_samples().no_gradient.size())),
    name_of_no_gradient);
INSTANTIATE_TEST_SUITE_P(
    Cpu, NoGradient,
    ::testing::Combine(::testing::Values(DeviceType::cpu),
                       ::testing::Range<size_t>(0, op_samples().no_gradient.size())),
    name_of_no_gradient);

}  // namespace
}  // namespace crucible::testing
