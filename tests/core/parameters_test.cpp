#include "core/parameters.h"

#include <gmock/gmock.h>

#include <cstdint>

#include "core/allocator.h"
#include "core/autograd.h"
#include "core/backend.h"
#include "core/error.h"
#include "ops/elementwise.h"
#include "ops/reduce.h"

namespace crucible {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

TEST(ParameterSet, PackKeepsValuesAndPutsDecayedParametersFirst) {
  ParameterSet set;
  const Tensor bias = set.add("bias", {3}, Init::constant(2.0), {.decay = false});
  const Tensor weight = set.add("weight", {2, 2}, Init::constant(5.0));
  set.pack();
  EXPECT_THAT(bias.to_vector<float>(), ElementsAre(2, 2, 2));
  EXPECT_EQ(set.parameters()[1].arena_offset, 0);
  EXPECT_EQ(set.parameters()[0].arena_offset, 16);  // 64 bytes
  EXPECT_EQ(set.decayed_elements(), 16);
  EXPECT_EQ(set.values().numel(), 32);
  EXPECT_EQ(set.count(), 7);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(bias.raw_data()) % 64, 0u);
  EXPECT_EQ(weight.raw_data(), set.values().raw_data());
}

TEST(ParameterSet, GradientsLandInTheArenaAndGapsStayZero) {
  ParameterSet set;
  const Tensor a = set.add("a", {3}, Init::constant(2.0));
  set.pack();
  sum(square(a)).backward();
  EXPECT_EQ(a.grad().raw_data(), set.gradients().raw_data());
  std::vector<float> all = set.gradients().to_vector<float>();
  EXPECT_THAT(std::vector<float>(all.begin(), all.begin() + 3), Each(4.0f));
  EXPECT_THAT(std::vector<float>(all.begin() + 3, all.end()), Each(0.0f));
  sum(square(a)).backward();  // accumulates
  EXPECT_THAT(a.grad().to_vector<float>(), Each(8.0f));
  set.zero_grad();
  EXPECT_FALSE(a.grad().defined());
  set.complete_gradients();
  EXPECT_THAT(set.gradients().to_vector<float>(), Each(0.0f));
}

TEST(ParameterSet, OneParameterUsedTwiceByOneOpGetsBothGradients) {
  ParameterSet set;
  const Tensor a = set.add("a", {2}, Init::constant(3.0));
  set.pack();
  sum(mul(a, a)).backward();
  EXPECT_THAT(a.grad().to_vector<float>(), Each(6.0f));
}

TEST(ParameterSet, MemoryIsTaggedAndGivenBack) {
  Allocator& allocator = backend(Device::cpu()).allocator();
  const auto live = [&](MemoryTag tag) {
    return allocator.statistics().live_by_tag[static_cast<int>(tag)];
  };
  const int64_t parameters = live(MemoryTag::parameters), gradients = live(MemoryTag::gradients);
  {
    ParameterSet set;
    set.add("a", {1024}, Init::constant(0.0));
    set.pack();
    EXPECT_EQ(live(MemoryTag::parameters) - parameters, 4096);
    EXPECT_EQ(live(MemoryTag::gradients) - gradients, 4096);
  }
  EXPECT_EQ(live(MemoryTag::parameters), parameters);
  EXPECT_EQ(live(MemoryTag::gradients), gradients);
}

TEST(ParameterSet, ThrowsNamingATakenNameOrALateParameter) {
  ParameterSet set;
  set.add("a", {1}, Init::constant(0.0));
  EXPECT_THROW(set.add("a", {1}, Init::constant(0.0)), InvalidArgument);
  EXPECT_THROW(set.add("", {1}, Init::constant(0.0)), InvalidArgument);
  set.pack();
  EXPECT_THROW(set.add("b", {1}, Init::constant(0.0)), InvalidArgument);
}

TEST(Scope, JoinsNamesLikePaths) {
  ParameterSet set;
  (Scope(set) / "layer1" / 0 / "conv").parameter("weight", {1}, Init::constant(0.0));
  EXPECT_EQ(set.parameters()[0].name, "layer1.0.conv.weight");
}

}  // namespace
}  // namespace crucible
