#include "core/device.h"

#include <gmock/gmock.h>

#include "core/backend.h"
#include "core/error.h"
#include "core/registry.h"
#include "core/tensor.h"
#include "tests/reference/reference_backend.h"

namespace crucible {
namespace {

TEST(Device, ParsesItsNames) {
  EXPECT_EQ(Device::parse("cpu"), Device::cpu());
  EXPECT_EQ(Device::parse("cuda"), Device::cuda(0));
  EXPECT_EQ(Device::parse("cuda:0"), Device::cuda(0));
  EXPECT_EQ(Device::parse("cuda:7"), Device::cuda(7));
  EXPECT_EQ(Device::parse("cuda:1023"), Device::cuda(1023));
  EXPECT_EQ(Device::parse("reference"), reference::device);
}

TEST(Device, NamesRoundTrip) {
  for (const char* text : {"cpu", "cuda:0", "cuda:12"}) {
    EXPECT_EQ(to_string(Device::parse(text)), text);
  }
}

TEST(Device, ThrowsNamingTextThatIsNoDevice) {
  for (const char* text : {"", "gpu", "CPU", "cpu:0", "cpu:1", "cuda:", "cuda:-1", "cuda:+1",
                           "cuda:1024", "cuda: 1", "cuda:1 ", "cuda:0x1",
                           "cuda:99999999999999999999", "cuda0", "cudax:1", " cpu", "cuda:1:2"}) {
    try {
      Device::parse(text);
      ADD_FAILURE() << "'" << text << "' was accepted";
    } catch (const InvalidArgument& e) {
      EXPECT_THAT(e.what(), ::testing::HasSubstr("device: '" + std::string(text) +
                                                 "' is not a device; write cpu, cuda or cuda:N"));
    }
  }
}

TEST(Device, OneThatIsAbsentIsADeviceError) {
  if (Device::best() != Device::cpu()) GTEST_SKIP() << "a GPU is here";
  try {
    Tensor::zeros({1}, DType::f32, Device::cuda(0));
    FAIL();
  } catch (const DeviceError& e) {
    EXPECT_THAT(e.what(), ::testing::HasSubstr("cuda:0 is not available"));
    EXPECT_THAT(e.what(), ::testing::HasSubstr("--device cpu"));
  }
}

TEST(RunObserver, SeesEveryPrimitiveAndPassesItOn) {
  std::vector<std::string_view> names;
  {
    const RunObserver observer([&](const Primitive& p, const RunObserver::Next& next) {
      names.push_back(std::visit([](const auto& q) { return q.name; }, p));
      next(p);
    });
    const Tensor x = Tensor::full({2}, 4.0, DType::f32, reference::device);
    EXPECT_EQ(x.to_vector<float>()[1], 4.0f);
    EXPECT_THROW(RunObserver([](const Primitive&, const RunObserver::Next&) {}), InvalidArgument);
  }
  Tensor::zeros({2}, DType::f32, reference::device);
  EXPECT_THAT(names, ::testing::ElementsAre("fill"));
}

}  // namespace
}  // namespace crucible
