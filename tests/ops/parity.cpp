#include "tests/ops/parity.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "core/registry.h"
#include "tests/reference/reference_backend.h"
#include "tests/reference/values.h"
#include "tests/samples/seed.h"

namespace crucible::testing {
namespace {

template <class P>
void add_cases(std::vector<ParityCase>& cases) {
  for (const PrimitiveSample& sample : Samples<P>::all()) {
    for (const DType dtype : sample.dtypes) {
      cases.push_back(
          {camel_case(P::name) + sample.name + camel_case(name_of(dtype)), sample, dtype});
    }
  }
}

template <class... P>
std::vector<ParityCase> all_cases(std::type_identity<std::variant<P...>>) {
  std::vector<ParityCase> cases;
  (add_cases<P>(cases), ...);
  return cases;
}

// How far `actual` may be from `expected`, whose running error is `error`.
double bound(DType dtype, double expected, double error) {
  if (!is_floating(dtype)) return 0.0;
  const double tiny =
      dtype == DType::f64 ? std::numeric_limits<double>::min() : std::numeric_limits<float>::min();
  const bool narrow = dtype == DType::f16 || dtype == DType::bf16;
  return error + (narrow ? reference::spacing(dtype, std::fabs(expected) + error) : 0.0) + tiny;
}

// The largest finite value of a dtype.
double largest(DType dtype) {
  return dtype == DType::f64    ? std::numeric_limits<double>::max()
         : dtype == DType::f32  ? std::numeric_limits<float>::max()
         : dtype == DType::f16  ? 65504.0
         : dtype == DType::bf16 ? 0x1.fep127
                                : 0x1p63;
}

bool agrees(DType dtype, double expected, double actual, double limit) {
  if (std::isnan(expected) || std::isnan(actual)) return std::isnan(expected) && std::isnan(actual);
  if (expected == actual) return true;
  if (std::isinf(actual)) {  // right where the value, moved by its error, leaves the type
    return std::copysign(1.0, expected) == std::copysign(1.0, actual) &&
           std::fabs(expected) + limit > largest(dtype);
  }
  if (std::isinf(expected)) {
    return std::copysign(1.0, expected) == std::copysign(1.0, actual) &&
           std::fabs(actual) + limit > largest(dtype);
  }
  return std::fabs(expected - actual) <= limit;
}

std::string index_text(const Shape& shape, int64_t i) {
  std::string text;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    text = fmt::format("{}{}{}", i % shape[axis], text.empty() ? "" : ", ", text);
    i /= shape[axis];
  }
  return "[" + text + "]";
}

}  // namespace

const std::vector<ParityCase>& parity_cases() {
  static const std::vector<ParityCase> cases = all_cases(std::type_identity<Primitive>{});
  return cases;
}

::testing::AssertionResult matches_reference(const ParityCase& c, Device device, uint64_t seed) {
  Maker expected_maker(reference::device, c.dtype, seed), actual_maker(device, c.dtype, seed);
  const reference::KeepErrors errors;
  c.sample.run(expected_maker);
  c.sample.run(actual_maker);
  backend(device).synchronize();

  for (size_t o = 0; o < expected_maker.outputs().size(); ++o) {
    const auto& [name, expected] = expected_maker.outputs()[o];
    const Tensor& actual = actual_maker.outputs()[o].tensor;
    const std::vector<double> e = host_values(expected), a = host_values(actual);
    // A tensor that the reference leaves alone must be left alone.
    const std::vector<double>* kept = errors.of(expected);
    const std::vector<double> error = kept ? *kept : std::vector<double>(e.size());
    int64_t worst = -1, wrong = 0;
    double excess = -1.0;
    for (size_t i = 0; i < e.size(); ++i) {
      const double limit = bound(expected.dtype(), e[i], error[i]);
      if (agrees(expected.dtype(), e[i], a[i], limit)) continue;
      ++wrong;
      const double by = std::isfinite(a[i]) && std::isfinite(e[i])
                            ? std::fabs(a[i] - e[i]) / limit
                            : std::numeric_limits<double>::infinity();
      if (by > excess) {
        excess = by;
        worst = static_cast<int64_t>(i);
      }
    }
    if (wrong == 0) continue;
    return ::testing::AssertionFailure() << fmt::format(
               "{} {} of {}: {} of {} elements differ; worst at {}: expected {:.9g}, actual "
               "{:.9g}, "
               "difference {:.3g}, bound {:.3g} (running error {:.3g} in {} arithmetic{}), {:.3g} "
               "times the bound.\n  on {}, arguments {}\n  {}",
               name, to_string(expected.shape()), name_of(expected.dtype()), wrong, e.size(),
               index_text(expected.shape(), worst), e[worst], a[worst],
               std::fabs(e[worst] - a[worst]), bound(expected.dtype(), e[worst], error[worst]),
               error[worst], expected.dtype() == DType::f64 ? "f64" : "f32",
               size_of(expected.dtype()) == 2 ? " plus 1 ulp" : "", excess, to_string(device),
               expected_maker.shapes(), rerun_line());
  }
  return ::testing::AssertionSuccess();
}

}  // namespace crucible::testing
