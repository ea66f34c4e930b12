#include "tools/train/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>

#include "core/error.h"
#include "core/rng.h"
#include "models/mlp.h"
#include "optim/sgd.h"

namespace crucible::train {
namespace {

constexpr Device device{DeviceType::reference, 0};
constexpr int64_t ignored = -100;

/// A small classifier with its optimizer; every instance starts alike.
struct Learner {
  explicit Learner(const TrainerOptions& options, const optim::Schedule& schedule = constant(0.5))
      : model({5, 7, 3}, {.device = device, .seed = 3}),
        sgd(model.parameters(), {.lr = schedule.lr, .momentum = 0.9, .weight_decay = 0.01}),
        trainer(model, sgd, schedule, options) {}

  static optim::Schedule constant(double lr) { return {.lr = lr, .total_steps = 100}; }
  std::vector<float> weights() const { return model.parameters().values().to_vector<float>(); }

  models::Mlp model;
  optim::Sgd sgd;
  Trainer trainer;
};

Tensor inputs_of(int64_t begin, int64_t count) {
  std::vector<float> values;
  for (int64_t i = begin; i < begin + count; ++i) {
    Rng rng(1, static_cast<uint64_t>(i));
    for (int j = 0; j < 5; ++j) values.push_back(rng.normal());
  }
  return Tensor::from(values, {count, 5});
}

Tensor labels_of(int64_t begin, int64_t count) {
  std::vector<int64_t> labels;
  for (int64_t i = begin; i < begin + count; ++i) labels.push_back(i % 3);
  return Tensor::from(labels, {count});
}

void expect_near(const std::vector<float>& a, const std::vector<float>& b, float bound) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], bound) << "at " << i;
}

TEST(Trainer, AccumulationEqualsOneLargeBatch) {
  Learner whole({.accumulation = 1}), cut({.accumulation = 4});
  for (int step = 0; step < 3; ++step) {
    whole.trainer.accumulate(inputs_of(32 * step, 32), labels_of(32 * step, 32));
    const Update a = whole.trainer.apply();
    for (int micro = 0; micro < 4; ++micro) {
      EXPECT_FALSE(cut.trainer.window_full());
      cut.trainer.accumulate(inputs_of(32 * step + 8 * micro, 8),
                             labels_of(32 * step + 8 * micro, 8));
    }
    EXPECT_TRUE(cut.trainer.window_full());
    const Update b = cut.trainer.apply();
    EXPECT_NEAR(a.loss, b.loss, 1e-6);
    EXPECT_EQ(a.correct, b.correct);
    EXPECT_EQ(a.counted, b.counted);
    EXPECT_EQ(b.micro_batches, 4);
  }
  expect_near(whole.weights(), cut.weights(), 1e-6f);
}

TEST(Trainer, ShortLastWindowIsDividedByWhatItHolds) {
  Learner whole({.accumulation = 1}), cut({.accumulation = 4});
  whole.trainer.accumulate(inputs_of(0, 16), labels_of(0, 16));
  whole.trainer.apply();
  cut.trainer.accumulate(inputs_of(0, 8), labels_of(0, 8));
  cut.trainer.accumulate(inputs_of(8, 8), labels_of(8, 8));
  cut.trainer.apply();
  expect_near(whole.weights(), cut.weights(), 1e-6f);
  EXPECT_EQ(cut.trainer.pending(), 0);
}

TEST(Trainer, EveryTargetCountsAlikeWhereverItWas) {
  Learner whole({}), cut({.accumulation = 2});
  whole.trainer.accumulate(inputs_of(0, 4), labels_of(0, 4));
  const Update a = whole.trainer.apply();
  // Three targets that count, then one among three that do not.
  cut.trainer.accumulate(inputs_of(0, 3), labels_of(0, 3));
  cut.trainer.accumulate(inputs_of(3, 4),
                         Tensor::from(std::vector<int64_t>{0, ignored, ignored, ignored}, {4}));
  const Update b = cut.trainer.apply();
  EXPECT_EQ(b.targets, 4);
  EXPECT_NEAR(a.loss, b.loss, 1e-6);
  expect_near(whole.weights(), cut.weights(), 1e-6f);
}

TEST(Trainer, LossIsTheMeanOverTargetsNotOfMeans) {
  std::vector<double> losses;
  for (const int64_t i : {0, 1, 2, 3}) {
    Learner alone({});
    alone.trainer.accumulate(inputs_of(i, 1), labels_of(i, 1));
    losses.push_back(alone.trainer.apply().loss);
  }
  Learner cut({.accumulation = 2});
  cut.trainer.accumulate(inputs_of(0, 3), labels_of(0, 3));
  cut.trainer.accumulate(inputs_of(3, 1), labels_of(3, 1));
  const double mean = (losses[0] + losses[1] + losses[2] + losses[3]) / 4;
  const double mean_of_means = ((losses[0] + losses[1] + losses[2]) / 3 + losses[3]) / 2;
  ASSERT_GT(std::abs(mean - mean_of_means), 1e-3);
  EXPECT_NEAR(cut.trainer.apply().loss, mean, 1e-6);
}

TEST(Trainer, ScheduleCountsAppliedUpdates) {
  optim::Schedule schedule{.kind = optim::Schedule::Kind::linear, .lr = 1.0, .total_steps = 4};
  Learner learner({.accumulation = 3}, schedule);
  for (int step = 0; step < 4; ++step) {
    for (int micro = 0; micro < 3; ++micro) {
      learner.trainer.accumulate(inputs_of(micro, 1), labels_of(micro, 1));
    }
    EXPECT_DOUBLE_EQ(learner.trainer.apply().lr, 1.0 - step / 4.0);
  }
  EXPECT_EQ(learner.trainer.applied(), 4);
}

TEST(Trainer, IgnoredTargetsOnlyGiveLossZeroAndFiniteWeights) {
  Learner learner({});
  learner.trainer.accumulate(inputs_of(0, 2),
                             Tensor::from(std::vector<int64_t>{ignored, ignored}, {2}));
  EXPECT_EQ(learner.trainer.apply().loss, 0.0);
  for (const float w : learner.weights()) EXPECT_TRUE(std::isfinite(w));
}

TEST(Trainer, NonFiniteLossStopsNamingStepAndParameterAndChangesNothing) {
  Learner learner({});
  learner.trainer.accumulate(inputs_of(0, 2), labels_of(0, 2));
  learner.trainer.apply();
  const std::vector<float> before = learner.weights();
  std::vector<float> values(10, 1.0f);
  values[3] = std::numeric_limits<float>::quiet_NaN();
  learner.trainer.accumulate(Tensor::from(values, {2, 5}), labels_of(0, 2));
  try {
    learner.trainer.apply();
    FAIL() << "accepted";
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), testing::HasSubstr("step 2 has loss nan"));
    EXPECT_THAT(e.what(), testing::HasSubstr("first in parameter layers.0.weight"));
    EXPECT_EQ(e.exit_code(), 1);
  }
  EXPECT_EQ(learner.weights(), before);
}

TEST(Trainer, ClippingBoundsTheStepAndReportsTheNormBefore) {
  Learner free({}), clipped({.clip_grad = 1e-3});
  free.trainer.accumulate(inputs_of(0, 8), labels_of(0, 8));
  clipped.trainer.accumulate(inputs_of(0, 8), labels_of(0, 8));
  const double norm = free.trainer.apply(true).grad_norm;
  EXPECT_GT(norm, 1e-2);
  EXPECT_NEAR(clipped.trainer.apply().grad_norm, norm, 1e-6 * norm);
  EXPECT_NE(free.weights(), clipped.weights());
}

TEST(Trainer, MeasuringTheNormDoesNotChangeTheUpdate) {
  Learner measured({}), plain({});
  for (Learner* learner : {&measured, &plain}) {
    learner->trainer.accumulate(inputs_of(0, 8), labels_of(0, 8));
    learner->trainer.apply(learner == &measured);
  }
  EXPECT_EQ(measured.weights(), plain.weights());
}

// bf16 keeps 8 bits: gradients are off by some 2^-8 of themselves, the loss by less.
TEST(Trainer, MixedPrecisionFollowsFullPrecision) {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    Learner full({}), mixed({.autocast = dtype});
    const std::vector<float> begin = full.weights();
    for (int step = 0; step < 3; ++step) {
      double loss[2];
      for (Learner* learner : {&full, &mixed}) {
        learner->trainer.accumulate(inputs_of(32 * step, 32), labels_of(32 * step, 32));
        loss[learner == &mixed] = learner->trainer.apply().loss;
      }
      EXPECT_NEAR(loss[1], loss[0], 0.01 * loss[0]) << "step " << step;
      EXPECT_NE(loss[1], loss[0]);
    }
    float moved = 0.0f;
    const std::vector<float> a = full.weights(), b = mixed.weights();
    for (size_t i = 0; i < a.size(); ++i) moved = std::max(moved, std::abs(a[i] - begin[i]));
    expect_near(a, b, 0.02f * moved);
  }
}

TEST(Trainer, ScaledLossDoesNotChangeWhatIsLearned) {
  // The same f16 arithmetic at two scales, both powers of two: only what underflows may differ.
  Learner low({.autocast = DType::f16}), high({.autocast = DType::f16});
  low.trainer.scaler()->restore({.scale = 256});
  high.trainer.scaler()->restore({.scale = 4096});
  for (Learner* learner : {&low, &high}) {
    learner->trainer.accumulate(inputs_of(0, 32), labels_of(0, 32));
    learner->trainer.apply();
  }
  expect_near(low.weights(), high.weights(), 1e-5f);
}

TEST(Trainer, OverflowSkipsTheUpdateAndHalvesTheScale) {
  Learner learner({.autocast = DType::f16});
  learner.trainer.scaler()->restore({.scale = 16777216});  // times a gradient near 1 / 32
  const std::vector<float> before = learner.weights();
  learner.trainer.accumulate(inputs_of(0, 2), labels_of(0, 2));
  const Update skipped = learner.trainer.apply();
  EXPECT_TRUE(skipped.skipped);
  EXPECT_EQ(learner.trainer.applied(), 0);
  EXPECT_EQ(learner.weights(), before);
  EXPECT_EQ(learner.trainer.scaler()->scale(), 8388608);
  // The next windows halve on until the gradients fit, and then learn.
  int tries = 0;
  while (learner.trainer.applied() == 0 && ++tries < 25) {
    learner.trainer.accumulate(inputs_of(0, 2), labels_of(0, 2));
    learner.trainer.apply();
  }
  EXPECT_EQ(learner.trainer.applied(), 1);
  EXPECT_EQ(learner.trainer.scaler()->state().consecutive_skips, 0);
  EXPECT_NE(learner.weights(), before);
}

TEST(Trainer, TooManySkipsStopNamingTheParameter) {
  Learner learner({.autocast = DType::f16});
  std::vector<float> values(10, 1.0f);
  values[3] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> before = learner.weights();
  std::string error;
  int skips = 0;
  for (; skips < 100 && error.empty(); ++skips) {
    learner.trainer.accumulate(Tensor::from(values, {2, 5}), labels_of(0, 2));
    try {
      EXPECT_TRUE(learner.trainer.apply().skipped);
    } catch (const Error& e) {
      error = e.what();
    }
  }
  EXPECT_EQ(skips, optim::GradScalerOptions().max_consecutive_skips);
  EXPECT_THAT(error, testing::HasSubstr("step 1 was skipped 30 times in a row"));
  EXPECT_THAT(error, testing::HasSubstr("parameter layers.0.weight"));
  EXPECT_EQ(learner.weights(), before);
}

TEST(Trainer, WindowBelowOneIsRefused) {
  EXPECT_THROW(Learner({.accumulation = 0}), InvalidArgument);
}

}  // namespace
}  // namespace crucible::train
