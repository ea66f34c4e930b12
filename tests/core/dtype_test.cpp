#include "core/dtype.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/tensor.h"
#include "tests/reference/reference_backend.h"

namespace crucible {
namespace {

TEST(DType, KnowsItsSizeAndName) {
  EXPECT_EQ(size_of(DType::f64), 8);
  EXPECT_EQ(size_of(DType::bf16), 2);
  EXPECT_EQ(size_of(DType::boolean), 1);
  EXPECT_EQ(name_of(DType::bf16), "bf16");
  EXPECT_EQ(name_of(DType::boolean), "bool");
  EXPECT_TRUE(is_floating(DType::f16));
  EXPECT_FALSE(is_floating(DType::i64));
}

TEST(DType, VisitCallsTheMatchingTypeOnly) {
  DType seen{};
  EXPECT_TRUE(visit_dtype(DType::f16, Floats{}, [&]<class T>() { seen = dtype_of<T>; }));
  EXPECT_EQ(seen, DType::f16);
  EXPECT_FALSE(visit_dtype(DType::i64, Floats{}, [&]<class T>() { ADD_FAILURE(); }));
}

// Every one of the 65536 bit patterns survives a trip through float.
TEST(Half, RoundTripsEveryValue) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    Float16 h;
    h.bits = static_cast<uint16_t>(bits);
    const float f = h;
    if (std::isnan(f)) {
      EXPECT_TRUE(std::isnan(static_cast<float>(Float16(f))));
    } else {
      ASSERT_EQ(Float16(f).bits, bits);
    }
    BFloat16 b;
    b.bits = static_cast<uint16_t>(bits);
    const float g = b;
    if (std::isnan(g)) {
      EXPECT_TRUE(std::isnan(static_cast<float>(BFloat16(g))));
    } else {
      ASSERT_EQ(BFloat16(g).bits, bits);
    }
  }
}

// Between two neighbours the nearer one is taken, and the even one from the middle.
template <class T>
void expect_nearest_even(uint32_t largest_finite) {
  for (uint32_t bits = 0; bits < largest_finite; ++bits) {
    T low, high;
    low.bits = static_cast<uint16_t>(bits);
    high.bits = static_cast<uint16_t>(bits + 1);
    const double a = static_cast<float>(low), b = static_cast<float>(high);
    const float middle = static_cast<float>((a + b) / 2);
    ASSERT_EQ(T(middle).bits, bits % 2 == 0 ? bits : bits + 1) << bits;
    ASSERT_EQ(T(std::nextafter(middle, 0.0f)).bits, bits) << bits;
    ASSERT_EQ(T(std::nextafter(middle, INFINITY)).bits, bits + 1) << bits;
    ASSERT_EQ(T(-middle).bits, T(middle).bits | 0x8000) << bits;
  }
}

TEST(Half, RoundsToNearestEven) {
  expect_nearest_even<Float16>(0x7bff);
  expect_nearest_even<BFloat16>(0x7f7f);
}

TEST(Half, OverflowsToInfinity) {
  EXPECT_EQ(static_cast<float>(Float16(65504.0f)), 65504.0f);
  EXPECT_EQ(static_cast<float>(Float16(65519.9f)), 65504.0f);
  EXPECT_EQ(static_cast<float>(Float16(65520.0f)), INFINITY);
  EXPECT_EQ(static_cast<float>(Float16(-1e30f)), -INFINITY);
  EXPECT_EQ(static_cast<float>(BFloat16(std::numeric_limits<float>::max())), INFINITY);
  EXPECT_EQ(static_cast<float>(Float16(INFINITY)), INFINITY);
}

TEST(Tensor, RoundTripsHostValues) {
  const std::vector<int64_t> v{INT64_MIN, -1, 0, INT64_MAX};
  EXPECT_EQ(Tensor::from(v, {2, 2}, reference::device).to_vector<int64_t>(), v);
  EXPECT_EQ(Tensor::full({}, 2.5, DType::bf16, reference::device).item<double>(), 2.5);
  EXPECT_EQ(Tensor::zeros({0, 3}, DType::f32, reference::device).to_vector<float>().size(), 0u);
}

TEST(Tensor, ThrowsNamingMismatches) {
  const Tensor x = Tensor::zeros({2, 3}, DType::f32, reference::device);
  EXPECT_THROW(x.item<float>(), InvalidArgument);
  EXPECT_THROW(x.to_vector<double>(), InvalidArgument);
  EXPECT_THROW(x.size(2), InvalidArgument);
  EXPECT_THROW(x.size(-3), InvalidArgument);
  EXPECT_EQ(x.size(-1), 3);
  EXPECT_THROW(Tensor::from(std::vector<float>{1, 2}, {3}, reference::device), InvalidArgument);
}

}  // namespace
}  // namespace crucible
