#include <gmock/gmock.h>

#include <cmath>
#include <vector>

#include "core/autograd.h"
#include "core/backend.h"
#include "core/error.h"
#include "models/mlp.h"
#include "models/resnet.h"
#include "ops/elementwise.h"
#include "ops/loss.h"
#include "ops/reduce.h"
#include "optim/adamw.h"
#include "optim/clip.h"
#include "optim/sgd.h"

namespace crucible::optim {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

// Gives `p` the gradient `values`: the derivative of sum(p * values).
void set_gradient(const Tensor& p, const std::vector<float>& values) {
  p.zero_grad();
  sum(p * Tensor::from(values, p.shape())).backward();
}

TEST(Sgd, FollowsTheFormulaWithMomentumNesterovAndDecay) {
  for (const bool nesterov : {false, true}) {
    for (const bool decoupled : {false, true}) {
      ParameterSet set;
      const Tensor p = set.add("p", {2}, Init::constant(1.0));
      Sgd sgd(set, {.lr = 0.1,
                    .momentum = 0.9,
                    .weight_decay = 0.5,
                    .nesterov = nesterov,
                    .decoupled = decoupled});
      double want[2] = {1.0, 1.0}, velocity[2] = {0.0, 0.0};
      for (int step = 0; step < 3; ++step) {
        const std::vector<float> grads = {0.5f, -2.0f + static_cast<float>(step)};
        set_gradient(p, grads);
        sgd.step();
        for (int i = 0; i < 2; ++i) {
          double g = grads[i];
          if (!decoupled) g += 0.5 * want[i];
          velocity[i] = 0.9 * velocity[i] + g;
          if (decoupled) want[i] *= 1 - 0.1 * 0.5;
          want[i] -= 0.1 * (nesterov ? g + 0.9 * velocity[i] : velocity[i]);
        }
      }
      EXPECT_THAT(p.to_vector<float>(),
                  Pointwise(FloatNear(1e-5), std::vector<float>{static_cast<float>(want[0]),
                                                                static_cast<float>(want[1])}))
          << "nesterov " << nesterov << " decoupled " << decoupled;
    }
  }
}

TEST(AdamW, FollowsTheFormula) {
  ParameterSet set;
  const Tensor p = set.add("p", {2}, Init::constant(1.0));
  AdamW adam(set, {.lr = 0.01, .beta1 = 0.8, .beta2 = 0.9, .eps = 1e-6, .weight_decay = 0.1});
  double want[2] = {1.0, 1.0}, m[2] = {}, v[2] = {};
  for (int step = 1; step <= 4; ++step) {
    const std::vector<float> grads = {0.3f, -1.0f / static_cast<float>(step)};
    set_gradient(p, grads);
    adam.step();
    for (int i = 0; i < 2; ++i) {
      const double g = grads[i];
      m[i] = 0.8 * m[i] + 0.2 * g;
      v[i] = 0.9 * v[i] + 0.1 * g * g;
      want[i] *= 1 - 0.01 * 0.1;
      want[i] -= 0.01 * (m[i] / (1 - std::pow(0.8, step))) /
                 (std::sqrt(v[i] / (1 - std::pow(0.9, step))) + 1e-6);
    }
  }
  EXPECT_THAT(p.to_vector<float>(),
              Pointwise(FloatNear(1e-6), std::vector<float>{static_cast<float>(want[0]),
                                                            static_cast<float>(want[1])}));
}

// All gradients zero, AdamW lr 0.01, decay 0.1, 10 steps: only matrices and kernels shrink.
TEST(WeightDecay, SparesBiasesAndNormGains) {
  models::ResNet model(models::ResNetConfig::named("resnet20"), {.seed = 3});
  AdamW adam(model.parameters(), {.lr = 0.01, .weight_decay = 0.1});
  std::vector<std::vector<float>> before;
  for (const Parameter& p : model.parameters().parameters()) {
    before.push_back(p.tensor.to_vector<float>());
  }
  for (int i = 0; i < 10; ++i) adam.step();
  size_t k = 0;
  for (const Parameter& p : model.parameters().parameters()) {
    const std::vector<float> after = p.tensor.to_vector<float>();
    const bool matrix = p.tensor.rank() >= 2;
    EXPECT_EQ(p.decay, matrix) << p.name;
    for (size_t i = 0; i < after.size(); ++i) {
      if (matrix) {
        ASSERT_NEAR(after[i], before[k][i] * 0.99004488, 1e-6 * std::abs(before[k][i]) + 1e-9)
            << p.name;
      } else {
        ASSERT_EQ(after[i], before[k][i]) << p.name;
      }
    }
    ++k;
  }
}

TEST(Optimizer, CountsUnreachedParametersAsGradientZero) {
  ParameterSet set;
  const Tensor used = set.add("used", {1}, Init::constant(1.0));
  const Tensor unused = set.add("unused", {1}, Init::constant(5.0));
  Sgd sgd(set, {.lr = 1.0});
  set_gradient(unused, {3.0f});  // a stale gradient in the arena
  sgd.zero_grad();
  set_gradient(used, {1.0f});
  sgd.step();
  EXPECT_EQ(used.item<float>(), 0.0f);
  EXPECT_EQ(unused.item<float>(), 5.0f);
}

TEST(Optimizer, StepDoesNotChangeGradients) {
  ParameterSet set;
  const Tensor p = set.add("p", {2}, Init::constant(1.0));
  Sgd sgd(set, {.lr = 0.1, .momentum = 0.9, .weight_decay = 0.1});
  set_gradient(p, {1.0f, 2.0f});
  sgd.step(Tensor::full({}, 0.5, DType::f32));
  EXPECT_THAT(p.grad().to_vector<float>(), ElementsAre(1.0f, 2.0f));
}

TEST(Optimizer, GradScaleMultipliesEveryGradient) {
  ParameterSet set;
  const Tensor p = set.add("p", {1}, Init::constant(1.0));
  Sgd sgd(set, {.lr = 1.0});
  set_gradient(p, {2.0f});
  sgd.step(Tensor::full({}, 0.25, DType::f32));
  EXPECT_EQ(p.item<float>(), 0.5f);
}

TEST(Optimizer, BackwardAfterAStepIsAnError) {
  models::Mlp model({4, 3, 2}, {.seed = 1});
  Sgd sgd(model.parameters(), {.lr = 0.1});
  const Tensor x = Tensor::full({2, 4}, 0.5, DType::f32);
  const Tensor loss = sum(model(x));
  sgd.step();
  try {
    loss.backward();
    FAIL() << "the weights changed between forward and backward";
  } catch (const InvalidArgument& e) {
    EXPECT_THAT(e.what(), HasSubstr("linear: backward: a saved tensor"));
  }
}

TEST(Optimizer, StateIsNamedByParameterAndRestores) {
  const auto make = [] { return std::make_unique<models::Mlp>(std::vector<int64_t>{3, 4, 2}); };
  const Tensor x = Tensor::full({2, 3}, 0.5, DType::f32);
  const auto train = [&](models::Mlp& model, Optimizer& optimizer, int steps) {
    for (int i = 0; i < steps; ++i) {
      sum(square(model(x))).backward();
      optimizer.step();
      optimizer.zero_grad();
    }
  };
  const auto one = make(), two = make();
  AdamW first(one->parameters(), {}), second(two->parameters(), {});
  train(*one, first, 3);
  for (size_t i = 0; i < one->parameters().parameters().size(); ++i) {
    copy_(two->parameters().parameters()[i].tensor, one->parameters().parameters()[i].tensor);
  }
  const auto from = first.state(), to = second.state();
  ASSERT_EQ(from.size(), 8u);
  EXPECT_EQ(from[0].name, "exp_avg.layers.0.weight");
  for (size_t i = 0; i < from.size(); ++i) copy_(to[i].tensor, from[i].tensor);
  second.set_applied_steps(first.applied_steps());
  train(*one, first, 2);
  train(*two, second, 2);
  EXPECT_EQ(one->parameters().values().to_vector<float>(),
            two->parameters().values().to_vector<float>());
}

TEST(Optimizer, ThrowsNamingTheOptionThatIsOutOfRange) {
  ParameterSet set;
  set.add("p", {1}, Init::constant(1.0));
  EXPECT_THROW(Sgd(set, {.lr = NAN}), InvalidArgument);
  EXPECT_THROW(Sgd(set, {.lr = -1.0}), InvalidArgument);
  EXPECT_THROW(Sgd(set, {.momentum = 1.0}), InvalidArgument);
  EXPECT_THROW(Sgd(set, {.nesterov = true}), InvalidArgument);
  EXPECT_THROW(AdamW(set, {.beta2 = 1.0}), InvalidArgument);
  EXPECT_THROW(AdamW(set, {.eps = 0.0}), InvalidArgument);
}

// One batch of 32 and 8 batches of 4 give the same weights.
TEST(Accumulation, EqualsOneLargeBatch) {
  Tensor x = Tensor::empty({32, 5}, DType::f32);
  run(prim::Random{.kind = prim::Random::Kind::normal, .a = 0, .b = 1, .rng = {1, 2, 0}, .y = x});
  std::vector<int64_t> labels(32);
  for (int i = 0; i < 32; ++i) labels[i] = i % 3;
  const auto run_with = [&](int64_t micro) {
    models::Mlp model({5, 7, 3}, {.seed = 11});
    Sgd sgd(model.parameters(), {.lr = 0.1, .momentum = 0.9});
    for (int step = 0; step < 3; ++step) {
      for (int64_t i = 0; i < 32; i += micro) {
        const Tensor part = x.as_strided({micro, 5}, row_major({micro, 5}), i * 5);
        const Tensor target =
            Tensor::from(std::span<const int64_t>(labels).subspan(i, micro), {micro});
        cross_entropy(model(part), target, {.reduction = Reduction::sum}).backward();
      }
      sgd.step(Tensor::full({}, 1.0 / 32, DType::f32));
      sgd.zero_grad();
    }
    return model.parameters().values().to_vector<float>();
  };
  EXPECT_THAT(run_with(4), Pointwise(FloatNear(1e-6), run_with(32)));
}

}  // namespace
}  // namespace crucible::optim
