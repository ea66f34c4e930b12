#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "core/autograd.h"
#include "core/error.h"
#include "models/gpt.h"
#include "models/mlp.h"
#include "models/resnet.h"
#include "ops/elementwise.h"
#include "ops/loss.h"

namespace crucible::models {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;

std::vector<std::string> names(const Module& model) {
  std::vector<std::string> result;
  for (const NamedTensor& t : model.parameters().state()) result.push_back(t.name);
  return result;
}

TEST(Mlp, NamesItsLayersAndGivesLogits) {
  Mlp model({6, 5, 3});
  EXPECT_THAT(names(model),
              ElementsAre("layers.0.weight", "layers.0.bias", "layers.1.weight", "layers.1.bias"));
  EXPECT_EQ(model(Tensor::zeros({4, 2, 3, 1}, DType::f32)).shape(), (Shape{4, 3}));
  EXPECT_THROW(Mlp({6}), InvalidArgument);
}

TEST(ResNet, HasTheParameterCountsOfThePapers) {
  const auto count = [](std::string_view name, int64_t classes) {
    ResNetConfig config = ResNetConfig::named(name);
    config.classes = classes;
    return ResNet(config).parameters().count();
  };
  EXPECT_EQ(count("resnet18", 1000), 11'689'512);
  EXPECT_EQ(count("resnet50", 1000), 25'557'032);
  EXPECT_EQ(count("resnet20", 10), 272'474);  // 1x1 shortcuts included
}

TEST(ResNet, NamesParametersAsTorchvisionDoes) {
  ResNet model(ResNetConfig::named("resnet50"));
  const std::vector<std::string> all = names(model);
  EXPECT_EQ(all.front(), "conv1.weight");
  for (const char* name :
       {"bn1.running_mean", "layer1.0.conv3.weight", "layer1.0.downsample.0.weight",
        "layer2.3.bn2.bias", "layer4.0.downsample.1.running_var", "fc.weight", "fc.bias"}) {
    EXPECT_THAT(all, Contains(name));
  }
  EXPECT_EQ(all.size(), 161u + 2 * 53);  // parameters, and two buffers a norm
}

TEST(ResNet, TrainsOnImagesOfBothForms) {
  for (const char* name : {"resnet20", "resnet18"}) {
    ResNetConfig config = ResNetConfig::named(name);
    config.channels = 1;
    ResNet model(config, {.seed = 1});
    const Tensor x = Tensor::full({2, 33, 31, 1}, 0.5, DType::f32);
    const Tensor loss = cross_entropy(model(x), Tensor::from(std::vector<int64_t>{1, 2}, {2}));
    loss.backward();
    for (const Parameter& p : model.parameters().parameters()) {
      EXPECT_TRUE(p.tensor.grad().defined()) << name << " " << p.name;
    }
  }
}

TEST(ResNet, EvaluationUsesRunningStatistics) {
  ResNetConfig config = ResNetConfig::named("resnet20");
  ResNet model(config, {.seed = 1});
  const Tensor one = Tensor::full({1, 8, 8, 3}, 0.25, DType::f32);
  model.parameters().set_training(false);
  NoGrad off;
  const auto alone = model(one).to_vector<float>();
  Tensor two = Tensor::full({2, 8, 8, 3}, -1.0, DType::f32);
  copy_(two.as_strided({1, 8, 8, 3}, row_major({1, 8, 8, 3})), one);
  const auto both = model(two).to_vector<float>();
  for (int i = 0; i < 10; ++i) EXPECT_NEAR(alone[i], both[i], 1e-5);
}

TEST(Gpt, HasTheParameterCountAndNamesOfGpt2) {
  GptConfig config = GptConfig::named("gpt2");
  config.layers = 1;
  Gpt model(config);
  EXPECT_EQ(model.parameters().count(), 124'439'808 - 11 * 7'087'872);
  EXPECT_THAT(
      names(model),
      ElementsAre("wte.weight", "wpe.weight", "h.0.ln_1.weight", "h.0.ln_1.bias",
                  "h.0.attn.c_attn.weight", "h.0.attn.c_attn.bias", "h.0.attn.c_proj.weight",
                  "h.0.attn.c_proj.bias", "h.0.ln_2.weight", "h.0.ln_2.bias", "h.0.mlp.c_fc.weight",
                  "h.0.mlp.c_fc.bias", "h.0.mlp.c_proj.weight", "h.0.mlp.c_proj.bias",
                  "ln_f.weight", "ln_f.bias"));
}

TEST(Gpt, DoesNotLookAhead) {
  Gpt model({.layers = 2, .heads = 2, .width = 8, .context = 6, .vocabulary = 11}, {.seed = 5});
  NoGrad off;
  const auto logits = [&](std::vector<int64_t> ids) {
    const int64_t n = static_cast<int64_t>(ids.size());
    return model(Tensor::from(ids, {1, n})).to_vector<float>();
  };
  const auto a = logits({1, 2, 3, 4, 5, 6}), b = logits({1, 2, 3, 9, 9, 9});
  for (int i = 0; i < 3 * 11; ++i) EXPECT_NEAR(a[i], b[i], 1e-6);
  EXPECT_NE(a[4 * 11], b[4 * 11]);
}

TEST(Gpt, ThrowsNamingAContextThatIsTooShort) {
  Gpt model({.layers = 1, .heads = 2, .width = 8, .context = 4, .vocabulary = 11});
  EXPECT_THROW(model(Tensor::zeros({1, 5}, DType::i64)), InvalidArgument);
  EXPECT_THROW(Gpt({.heads = 3, .width = 8}), InvalidArgument);
}

TEST(Models, TheSameSeedGivesTheSameWeights) {
  const auto values = [](uint64_t seed) {
    return Mlp({5, 4, 3}, {.seed = seed}).parameters().values().to_vector<float>();
  };
  EXPECT_EQ(values(1), values(1));
  EXPECT_NE(values(1), values(2));
}

}  // namespace
}  // namespace crucible::models
