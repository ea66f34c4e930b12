#include "core/cost.h"

#include <gtest/gtest.h>

#include "core/autograd.h"
#include "core/registry.h"
#include "models/gpt.h"
#include "models/resnet.h"

namespace crucible::models {
namespace {

// Matrix FLOPs of a forward pass on zeros; nothing is computed.
double forward_flops(Module& model, const Tensor& x) {
  double flops = 0.0;
  const RunObserver count([&](const Primitive& p, const RunObserver::Next&) {
    const Cost c = cost(p);
    if (c.matrix) flops += c.flops;
  });
  NoGrad off;
  model(x);
  return flops;
}

// Published multiply-adds of torchvision's models at 224 x 224: 1.814 and 4.089 billion.
TEST(Cost, MatchesThePublishedCountsOfResNets) {
  const Tensor x = Tensor::zeros({1, 224, 224, 3}, DType::f32);
  ResNetConfig config = ResNetConfig::named("resnet18");
  config.classes = 1000;
  ResNet small(config);
  EXPECT_NEAR(forward_flops(small, x), 2 * 1.814e9, 2e6);
  config = ResNetConfig::named("resnet50");
  config.classes = 1000;
  ResNet large(config);
  EXPECT_NEAR(forward_flops(large, x), 2 * 4.089e9, 2e6);
}

// 2 FLOPs a weight of every linear layer and token, and the visible half of the attention.
TEST(Cost, CountsCausalAttentionOnce) {
  const GptConfig c = {.layers = 2, .heads = 2, .width = 8, .context = 16, .vocabulary = 32};
  Gpt model(c);
  const double tokens = 3 * 16;
  const double linears =
      2.0 * tokens * (c.layers * 12 * c.width * c.width + c.width * c.vocabulary);
  const double attention = c.layers * 4.0 * 3 * c.width * (16 * 16 / 2);
  EXPECT_DOUBLE_EQ(forward_flops(model, Tensor::zeros({3, 16}, DType::i64)), linears + attention);
}

TEST(Cost, CountsRepeatedElementsOnce) {
  const Tensor row = Tensor::zeros({4}, DType::f32), y = Tensor::zeros({3, 4}, DType::f32);
  const Tensor wide = row.as_strided({3, 4}, {0, 1});
  const Cost c = cost(prim::Binary{.op = BinaryOp::add, .a = wide, .b = y, .y = y});
  EXPECT_EQ(c.read_bytes, 16 + 48);
  EXPECT_EQ(c.written_bytes, 48);
  EXPECT_EQ(c.flops, 12);
}

}  // namespace
}  // namespace crucible::models
