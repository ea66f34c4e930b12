// Conversions of 16-bit storage, every value, at every level of this machine.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "core/half.h"
#include "ops/cpu/level/convert.h"
#include "tests/ops/cpu/levels.h"

namespace crucible::cpu {
namespace {

// The value of a binary16 by its definition.
double value_of_f16(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double sign = bits & 0x8000 ? -1.0 : 1.0;
  if (exponent == 31) return fraction ? NAN : sign * INFINITY;
  return exponent ? sign * std::ldexp(1024 + fraction, exponent - 25)
                  : sign * std::ldexp(fraction, -24);
}

double value_of_bf16(uint16_t bits) {
  const int exponent = bits >> 7 & 255, fraction = bits & 127;
  const double sign = bits & 0x8000 ? -1.0 : 1.0;
  if (exponent == 255) return fraction ? NAN : sign * INFINITY;
  return exponent ? sign * std::ldexp(128 + fraction, exponent - 134)
                  : sign * std::ldexp(fraction, -133);
}

const ConvertKernels& kernels_of(Level level) {
  return level == Level::v4 ? v4::convert : level == Level::v3 ? v3::convert : v2::convert;
}

// Both directions for one format: widening is exact, narrowing picks the nearest, ties to even.
template <class Half, class Widen, class Narrow, class Value>
void check_format(Widen widen, Narrow narrow, Value value, uint16_t infinity) {
  std::vector<Half> all(65536);
  for (int i = 0; i < 65536; ++i) all[i].bits = static_cast<uint16_t>(i);
  std::vector<float> wide(65536);
  widen(all.data(), wide.data(), 65536);
  for (int i = 0; i < 65536; ++i) {
    const double expected = value(static_cast<uint16_t>(i));
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(wide[i])) << i;
    } else {
      ASSERT_EQ(wide[i], expected) << i;
      ASSERT_EQ(std::signbit(wide[i]), (i & 0x8000) != 0) << i;
    }
    const float scalar = all[i];
    ASSERT_TRUE(scalar == wide[i] || (std::isnan(scalar) && std::isnan(wide[i]))) << i;
  }

  // Around the midpoint of each pair of neighbours, in floats; past the last finite value too.
  std::vector<float> inputs;
  std::vector<uint16_t> expected;
  for (uint16_t i = 0; i < infinity; ++i) {
    const double below = value(i);
    const double step = value(i ? i : 1) - value(i ? i - 1 : 0);
    const double above = i + 1 == infinity ? below + step : value(i + 1);
    const float middle = static_cast<float>(0.5 * (below + above));
    ASSERT_EQ(middle, 0.5 * (below + above)) << i;
    inputs.insert(inputs.end(), {std::nextafter(middle, 0.0f), middle,
                                 std::nextafter(middle, INFINITY), static_cast<float>(below)});
    const uint16_t next = static_cast<uint16_t>(i + 1);
    expected.insert(expected.end(), {i, i & 1 ? next : i, next, i});
  }
  inputs.push_back(INFINITY);
  expected.push_back(infinity);
  const size_t n = inputs.size();
  for (size_t i = 0; i < n; ++i) {
    inputs.push_back(-inputs[i]);
    expected.push_back(expected[i] | 0x8000);
  }
  std::vector<Half> narrowed(inputs.size());
  narrow(inputs.data(), narrowed.data(), static_cast<int64_t>(inputs.size()));
  for (size_t i = 0; i < inputs.size(); ++i) {
    ASSERT_EQ(narrowed[i].bits, expected[i]) << inputs[i];
    ASSERT_EQ(Half(inputs[i]).bits, expected[i]) << inputs[i];
  }

  const std::vector<float> nans(67, std::nanf(""));
  narrow(nans.data(), narrowed.data(), 67);
  for (int i = 0; i < 67; ++i) ASSERT_GT(narrowed[i].bits & 0x7fff, infinity);
}

class Convert : public testing::TestWithParam<Level> {};

TEST_P(Convert, Float16IsIeeeForEveryValue) {
  const ConvertKernels& k = kernels_of(GetParam());
  check_format<Float16>(k.widen_f16, k.narrow_f16, value_of_f16, 0x7c00);
}

TEST_P(Convert, BFloat16IsExactForEveryValue) {
  const ConvertKernels& k = kernels_of(GetParam());
  check_format<BFloat16>(k.widen_bf16, k.narrow_bf16, value_of_bf16, 0x7f80);
}

INSTANTIATE_TEST_SUITE_P(Levels, Convert, testing::ValuesIn(levels_here()), level_name);

}  // namespace
}  // namespace crucible::cpu
