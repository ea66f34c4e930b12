#include "tests/ops/parity.h"

#include <set>

#include "tests/reference/reference_backend.h"
#include "tests/samples/seed.h"

namespace crucible::testing {
namespace {

class Parity : public ::testing::TestWithParam<size_t> {};

TEST_P(Parity, MatchesReference) {
  EXPECT_TRUE(matches_reference(parity_cases()[GetParam()], Device::cpu(), run_seed()));
}

INSTANTIATE_TEST_SUITE_P(Cpu, Parity, ::testing::Range<size_t>(0, parity_cases().size()),
                         [](const auto& info) { return parity_cases()[info.param].name; });

template <class... P>
std::vector<std::pair<std::string, size_t>> sample_counts(std::type_identity<std::variant<P...>>) {
  return {{std::string(P::name), Samples<P>::all().size()}...};
}

TEST(ParitySamples, AreAtLeastSixAPrimitive) {
  for (const auto& [name, count] : sample_counts(std::type_identity<Primitive>{})) {
    EXPECT_GE(count, 6u) << name;
  }
}

TEST(ParitySamples, HaveDistinctNames) {
  std::set<std::string> names;
  for (const ParityCase& c : parity_cases()) EXPECT_TRUE(names.insert(c.name).second) << c.name;
}

// The comparison itself: a value off by more than its bound, or not written, must be seen.
TEST(ParitySamples, NoticeAWrongElement) {
  int runs = 0;
  ParityCase c{"Case", {"Case", {}}, DType::f32};
  c.sample.run = [&](Maker& m) {
    run(prim::Fill{.value = ++runs == 1 ? 1.0 : 1.0 + 1e-6, .y = m.output("y", {3})});
  };
  EXPECT_FALSE(matches_reference(c, reference::device, 1));
}

TEST(ParitySamples, NoticeAnUnwrittenElement) {
  int runs = 0;
  ParityCase c{"Case", {"Case", {}}, DType::f32};
  c.sample.run = [&](Maker& m) {
    const Tensor& y = m.output("y", {3});
    run(prim::Fill{.value = 1.0, .y = ++runs == 1 ? y : y.as_strided({2}, {1})});
  };
  EXPECT_FALSE(matches_reference(c, reference::device, 1));
}

// Samples are well formed: the oracle runs them all, writes every output, and agrees with itself.
TEST(ParitySamples, RunOnTheReferenceBackend) {
  for (const ParityCase& c : parity_cases()) {
    EXPECT_TRUE(matches_reference(c, reference::device, run_seed())) << c.name;
  }
}

}  // namespace
}  // namespace crucible::testing
