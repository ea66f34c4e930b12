// Normalisation, softmax, loss, embedding: what the parity suite does not reach.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "core/backend.h"
#include "core/error.h"
#include "tests/ops/cpu/levels.h"

namespace crucible {
namespace {

Tensor normal(const Shape& shape, uint64_t stream, double mean = 0.0, double deviation = 1.0) {
  const Tensor x = Tensor::empty(shape, DType::f32);
  run(prim::Random{.kind = prim::Random::Kind::normal,
                   .a = mean,
                   .b = deviation,
                   .rng = {11, stream, 0},
                   .y = x});
  return x;
}

using Values = std::vector<std::vector<float>>;

struct BatchNormCase {
  Tensor x, dy, residual, gamma, beta, running_mean, running_var, mean, rstd, y, dx, dresidual,
      dgamma, dbeta;

  BatchNormCase(int64_t rows, int64_t c, double offset)
      : x(normal({rows, c}, 1, offset)),
        dy(normal({rows, c}, 2)),
        residual(normal({rows, c}, 3)),
        gamma(normal({c}, 4)),
        beta(normal({c}, 5)),
        running_mean(Tensor::zeros({c}, DType::f32)),
        running_var(Tensor::zeros({c}, DType::f32)),
        mean(empty_like(gamma)),
        rstd(empty_like(gamma)),
        y(empty_like(x)),
        dx(empty_like(x)),
        dresidual(empty_like(x)),
        dgamma(empty_like(gamma)),
        dbeta(empty_like(gamma)) {}

  Values step(bool with_residual) {
    const Tensor none;
    run(prim::BatchNorm{.x = x,
                        .gamma = gamma,
                        .beta = beta,
                        .running_mean = running_mean,
                        .running_var = running_var,
                        .residual = with_residual ? residual : none,
                        .relu = true,
                        .mean = mean,
                        .rstd = rstd,
                        .y = y});
    run(prim::BatchNormBackward{.x = x,
                                .y = with_residual ? y : none,
                                .gamma = gamma,
                                .beta = beta,
                                .mean = mean,
                                .rstd = rstd,
                                .relu = true,
                                .dy = dy,
                                .dx = dx,
                                .dresidual = dresidual,
                                .dgamma = dgamma,
                                .dbeta = dbeta});
    Values values;
    for (const Tensor& t : {y, mean, rstd, dx, dresidual, dgamma, dbeta}) {
      values.push_back(t.to_vector<float>());
    }
    return values;
  }
};

TEST(CpuBatchNorm, LevelsAgreeAndThreadsDoNotMatter) {
  const int threads = omp_get_max_threads();
  for (const int64_t c : {16, 70}) {
    for (const bool residual : {false, true}) {
      BatchNormCase given(700, c, 3.0);
      Values first;
      for (const cpu::Level level : cpu::levels_here()) {
        const cpu::LevelScope scope(level);
        Values of_level;
        for (const int count : {1, 2, 3}) {
          omp_set_num_threads(count);
          const Values values = given.step(residual);
          if (of_level.empty()) of_level = values;
          ASSERT_EQ(values, of_level);
        }
        if (first.empty()) first = of_level;
        for (size_t i = 0; i < first.size(); ++i) {
          for (size_t j = 0; j < first[i].size(); ++j) {
            // A value at the rectifier's edge may fall on either side; none does for this seed.
            ASSERT_NEAR(of_level[i][j], first[i][j], 2e-5 * (1.0 + std::fabs(first[i][j])))
                << "output " << i;
          }
        }
      }
    }
  }
  omp_set_num_threads(threads);
}

TEST(CpuBatchNorm, RecomputedMaskEqualsTheOutputs) {
  for (const cpu::Level level : cpu::levels_here()) {
    const cpu::LevelScope scope(level);
    BatchNormCase given(3000, 37, 0.0);
    given.step(false);
    const std::vector<float> y = given.y.to_vector<float>(), dy = given.dy.to_vector<float>();
    const std::vector<float> dz = given.dresidual.to_vector<float>();
    for (size_t i = 0; i < y.size(); ++i) ASSERT_EQ(dz[i], y[i] > 0 ? dy[i] : 0.0f);
  }
}

TEST(CpuBatchNorm, LargeMeansKeepTheVariance) {
  BatchNormCase given(4000, 5, 10000.0);
  given.step(false);
  const std::vector<float> x = given.x.to_vector<float>(), rstd = given.rstd.to_vector<float>();
  for (int c = 0; c < 5; ++c) {
    double mean = 0.0, squares = 0.0;
    for (int r = 0; r < 4000; ++r) mean += x[r * 5 + c] / 4000.0;
    for (int r = 0; r < 4000; ++r) squares += std::pow(x[r * 5 + c] - mean, 2) / 4000.0;
    EXPECT_NEAR(rstd[c] * std::sqrt(squares + 1e-5), 1.0, 1e-6);
  }
}

TEST(CpuBiasActivationBackward, NarrowAndWideSumsAgreeWithDouble) {
  for (const int64_t n : {1, 3, 10, 16, 63, 64, 700}) {
    const Tensor dy = normal({1500, n}, 6), db = Tensor::empty({n}, DType::f32);
    run(prim::BiasActivationBackward{.activation = Activation::none, .dy = dy, .db = db});
    const std::vector<float> v = dy.to_vector<float>(), sums = db.to_vector<float>();
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0.0;
      for (int64_t r = 0; r < 1500; ++r) sum += v[r * n + j];
      ASSERT_NEAR(sums[j], sum, 1e-4) << n;
    }
  }
}

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const InvalidArgument& e) {
    return e.what();
  }
  return "nothing was thrown";
}

TEST(CpuCrossEntropy, ThrowsNamingLabelAndRow) {
  const Tensor logits = normal({50, 10}, 7);
  std::vector<int64_t> labels(50, 3);
  labels[37] = 10;
  const Tensor given = Tensor::from(labels, {50}), lse = Tensor::empty({50}, DType::f32);
  const Tensor count = Tensor::empty({}, DType::f32), loss = Tensor::empty({}, DType::f32);
  const auto call = [&](int64_t ignore_index) {
    run(prim::CrossEntropy{.logits = logits,
                           .labels = given,
                           .ignore_index = ignore_index,
                           .lse = lse,
                           .count = count,
                           .loss = loss});
  };
  EXPECT_EQ(message_of([&] { call(-100); }),
            "cross_entropy: label 10 at row 37 is outside [0, 10); check the class count or set "
            "ignore_index.");
  call(10);
  EXPECT_EQ(count.item<float>(), 49.0f);
}

TEST(CpuEmbedding, ThrowsNamingIdAndPosition) {
  const Tensor table = normal({4, 8}, 8), y = Tensor::empty({3, 8}, DType::f32);
  const Tensor ids = Tensor::from(std::vector<int64_t>{0, 3, -1}, {3});
  const char* text = "embedding: id -1 at position 2 is outside [0, 4); check the vocabulary size.";
  EXPECT_EQ(message_of([&] { run(prim::Embedding{.table = table, .ids = ids, .y = y}); }), text);
  EXPECT_EQ(message_of([&] { run(prim::EmbeddingBackward{.ids = ids, .dy = y, .dtable = table}); }),
            text);
}

}  // namespace
}  // namespace crucible
