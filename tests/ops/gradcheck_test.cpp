#include "tests/ops/gradcheck.h"

#include "ops/attention.h"
#include "ops/conv.h"
#include "ops/elementwise.h"
#include "ops/embedding.h"
#include "ops/loss.h"
#include "ops/matmul.h"
#include "ops/norm.h"
#include "ops/pool.h"
#include "ops/reduce.h"
#include "ops/softmax.h"
#include "tests/reference/reference_backend.h"
#include "tests/samples/seed.h"

namespace crucible::testing {
namespace {

const std::vector<OpSample>& samples() {
  return op_samples().differentiable;
}

class GradCheck : public ::testing::TestWithParam<std::tuple<DeviceType, size_t>> {};

TEST_P(GradCheck, AgreesWithDifferenceQuotients) {
  const auto [device, index] = GetParam();
  EXPECT_TRUE(gradients_agree(samples()[index], Device{device, 0}, run_seed()));
}

std::string name_of_case(const ::testing::TestParamInfo<GradCheck::ParamType>& info) {
  const OpSample& s = samples()[std::get<1>(info.param)];
  return camel_case(s.op) + s.name;
}

INSTANTIATE_TEST_SUITE_P(Reference, GradCheck,
                         ::testing::Combine(::testing::Values(DeviceType::reference),
                                            ::testing::Range<size_t>(0, samples().size())),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(Cpu, GradCheck,
                         ::testing::Combine(::testing::Values(DeviceType::cpu),
                                            ::testing::Range<size_t>(0, samples().size())),
                         name_of_case);

// Layers as the reference models have them, along one random direction, on the CPU backend.
const std::vector<OpSample>& layers() {
  using Inputs = std::vector<Tensor>;
  static const std::vector<OpSample> list{
      {"linear", "MlpHidden",
       [](Maker& m) {
         return Inputs{m.normal({64, 784}), m.normal({512, 784}, 0, 0.04), m.normal({512})};
       },
       [](const Inputs& x, Maker&) { return linear(x[0], x[1], x[2], Activation::gelu_tanh); }},
      {"conv2d", "ResnetStage",
       [](Maker& m) {
         return Inputs{m.normal({2, 16, 16, 32}), m.normal({32, 3, 3, 32}, 0, 0.06)};
       },
       [](const Inputs& x, Maker&) { return conv2d(x[0], x[1], {}, {.padding = 1}); }},
      {"conv2d", "ResnetDownsample",
       [](Maker& m) {
         return Inputs{m.normal({2, 16, 16, 16}), m.normal({32, 3, 3, 16}, 0, 0.06)};
       },
       [](const Inputs& x, Maker&) { return conv2d(x[0], x[1], {}, {.stride = 2, .padding = 1}); }},
      {"conv2d", "ImagenetStem",
       [](Maker& m) {
         return Inputs{m.normal({1, 64, 64, 3}), m.normal({16, 7, 7, 3}, 0, 0.1), m.normal({16})};
       },
       [](const Inputs& x, Maker&) {
         return conv2d(x[0], x[1], x[2], {.stride = 2, .padding = 3});
       }},
      {"batch_norm", "ResnetStage",
       [](Maker& m) {
         return Inputs{m.normal({4, 16, 16, 32}), m.uniform({32}, 0.5, 2), m.normal({32})};
       },
       [](const Inputs& x, Maker& m) {
         const Tensor mean = m.normal({32}), var = m.uniform({32}, 0.5, 2);
         return batch_norm(x[0], x[1], x[2], mean, var);
       }},
      {"layer_norm", "GptBlock",
       [](Maker& m) {
         return Inputs{m.normal({2, 64, 256}), m.uniform({256}, 0.5, 2), m.normal({256})};
       },
       [](const Inputs& x, Maker&) { return layer_norm(x[0], x[1], x[2]); }},
      {"attention_packed", "GptBlock",
       [](Maker& m) {
         return Inputs{m.normal({2, 96, 3 * 64})};
       },
       [](const Inputs& x, Maker&) { return attention_packed(x[0], 4, {.causal = true}); }},
      {"cross_entropy", "GptHead",
       [](Maker& m) {
         return Inputs{m.normal({128, 500})};
       },
       [](const Inputs& x, Maker& m) { return cross_entropy(x[0], m.integers({128}, 0, 500)); }},
      {"embedding", "GptTokens",
       [](Maker& m) {
         return Inputs{m.normal({500, 64})};
       },
       [](const Inputs& x, Maker& m) {
         return embedding(x[0], m.integers({4, 64}, 0, 500));
       }},
      {"matmul", "BatchedAttentionScores",
       [](Maker& m) {
         return Inputs{m.normal({8, 64, 32}), m.normal({8, 32, 64})};
       },
       [](const Inputs& x, Maker&) { return matmul(x[0], x[1]); }},
      {"avg_pool2d", "Stage",
       [](Maker& m) {
         return Inputs{m.normal({2, 28, 28, 16})};
       },
       [](const Inputs& x, Maker&) { return avg_pool2d(x[0]); }},
      {"softmax", "Wide",
       [](Maker& m) {
         return Inputs{m.normal({64, 1000})};
       },
       [](const Inputs& x, Maker&) { return softmax(x[0]); }},
      {"gelu", "Long", [](Maker& m) { return Inputs{m.normal({100000})}; },
       [](const Inputs& x, Maker&) { return gelu(x[0]); }},
      {"mse_loss", "Composed",
       [](Maker& m) {
         return Inputs{m.normal({64, 32}), m.normal({32})};
       },
       [](const Inputs& x, Maker&) { return mse_loss(x[0], x[1]); }},
      {"logsumexp", "Columns",
       [](Maker& m) {
         return Inputs{m.normal({300, 40})};
       },
       [](const Inputs& x, Maker&) { return logsumexp(x[0], {{0}}); }},
  };
  return list;
}

class GradCheckLayer : public ::testing::TestWithParam<size_t> {};

TEST_P(GradCheckLayer, AgreesAlongARandomDirection) {
  EXPECT_TRUE(direction_agrees(layers()[GetParam()], Device::cpu(), run_seed()));
}

INSTANTIATE_TEST_SUITE_P(Cpu, GradCheckLayer, ::testing::Range<size_t>(0, layers().size()),
                         [](const auto& info) {
                           const OpSample& s = layers()[info.param];
                           return camel_case(s.op) + s.name;
                         });

// The checks themselves: a wrong gradient must be seen.
TEST(GradCheckItself, NoticesAWrongJacobian) {
  const OpSample wrong{"mul", "Wrong", [](Maker& m) { return std::vector<Tensor>{m.normal({3})}; },
                       [](const std::vector<Tensor>& x, Maker&) {
                         return mul(x[0], x[0].detach());  // half of the derivative of the square
                       }};
  EXPECT_FALSE(gradients_agree(wrong, reference::device, 1));
  EXPECT_FALSE(direction_agrees(wrong, reference::device, 1));
}

TEST(GradCheckItself, NoticesAWrongStatedGradient) {
  const OpSample wrong{"square",
                       "Wrong",
                       [](Maker& m) { return std::vector<Tensor>{m.values({1}, {3})}; },
                       [](const std::vector<Tensor>& x, Maker&) { return square(x[0]); },
                       {{{5.0}}}};
  EXPECT_FALSE(gradients_agree(wrong, reference::device, 1));
}

}  // namespace
}  // namespace crucible::testing
