#include <gtest/gtest.h>

#include <limits>

#include "core/allocator.h"
#include "core/backend.h"
#include "core/storage.h"
#include "ops/cpu/onednn.h"
#include "tests/ops/cpu/naive.h"

namespace crucible {
namespace {

struct Case {
  int64_t batch_a, batch_b, m, n, k;
  bool transpose_a, transpose_b, bias;
  Activation activation = Activation::none;
};

// Runs the case on fresh values and compares with the double loop.
::testing::AssertionResult agrees(const Case& c, DType dtype) {
  const int64_t batch = std::max(c.batch_a, c.batch_b);
  auto va = naive::values(c.batch_a * c.m * c.k, 1), vb = naive::values(c.batch_b * c.k * c.n, 2),
       vbias = naive::values(c.n, 3);
  const Tensor a = naive::tensor(
      va, c.transpose_a ? Shape{c.batch_a, c.k, c.m} : Shape{c.batch_a, c.m, c.k}, dtype);
  const Tensor b = naive::tensor(
      vb, c.transpose_b ? Shape{c.batch_b, c.n, c.k} : Shape{c.batch_b, c.k, c.n}, dtype);
  const Tensor bias = c.bias ? naive::tensor(vbias, {c.n}, dtype) : Tensor();
  const Tensor y = Tensor::empty({batch, c.m, c.n}, dtype);
  run(prim::Matmul{.a = a,
                   .b = b,
                   .transpose_a = c.transpose_a,
                   .transpose_b = c.transpose_b,
                   .bias = bias,
                   .activation = c.activation,
                   .y = y});
  std::vector<double> expected, magnitude;
  for (int64_t i = 0; i < batch; ++i) {
    const double* pa = va.data() + (c.batch_a == 1 ? 0 : i * c.m * c.k);
    const double* pb = vb.data() + (c.batch_b == 1 ? 0 : i * c.k * c.n);
    for (int64_t r = 0; r < c.m; ++r) {
      for (int64_t s = 0; s < c.n; ++s) {
        double sum = c.bias ? vbias[s] : 0, size = std::abs(sum);
        for (int64_t t = 0; t < c.k; ++t) {
          const double term = pa[c.transpose_a ? t * c.m + r : r * c.k + t] *
                              pb[c.transpose_b ? s * c.k + t : t * c.n + s];
          sum += term;
          size += std::abs(term);
        }
        expected.push_back(c.activation == Activation::relu ? std::max(sum, 0.0) : sum);
        magnitude.push_back(size);
      }
    }
  }
  return naive::close(naive::read(y), expected, magnitude, c.k + 1, dtype);
}

TEST(CpuMatmul, AgreesWithDoubleLoopsInEveryLayoutAndDtype) {
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
    for (const auto& [ba, bb] : {std::pair{1, 1}, {3, 3}, {1, 3}, {3, 1}}) {
      for (const bool ta : {false, true}) {
        for (const bool tb : {false, true}) {
          for (const auto& [m, n, k] : {std::tuple{1, 1, 1},
                                        {5, 3, 7},
                                        {33, 17, 20},
                                        {1, 40, 9},
                                        {40, 1, 9},
                                        {16, 64, 1}}) {
            for (const bool bias : {false, true}) {
              EXPECT_TRUE(agrees({ba, bb, m, n, k, ta, tb, bias}, dtype))
                  << name_of(dtype) << " batches " << ba << ", " << bb << " m " << m << " n " << n
                  << " k " << k << " transposed " << ta << tb << " bias " << bias;
            }
          }
        }
      }
    }
  }
}

TEST(CpuMatmul, AppliesRelu) {
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
    EXPECT_TRUE(agrees({1, 1, 20, 30, 10, false, true, true, Activation::relu}, dtype));
  }
}

TEST(CpuMatmul, ReluKeepsNaN) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor a = Tensor::full({1, 4, 8}, nan, DType::f32),
               b = Tensor::full({1, 8, 16}, 1, DType::f32);
  const Tensor y = Tensor::empty({1, 4, 16}, DType::f32);
  run(prim::Matmul{.a = a, .b = b, .activation = Activation::relu, .y = y});
  for (const float v : y.to_vector<float>()) EXPECT_TRUE(std::isnan(v));
}

TEST(CpuMatmul, NoInnerSizeGivesTheBias) {
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
    EXPECT_TRUE(agrees({2, 2, 3, 4, 0, false, false, true}, dtype));
    EXPECT_TRUE(agrees({2, 2, 3, 4, 0, false, false, false}, dtype));
  }
}

// A weight [N, K] held as a parameter.
Tensor parameter(int64_t n, int64_t k) {
  const MemoryTagScope scope(MemoryTag::parameters);
  auto v = naive::values(n * k, 4);
  return naive::tensor(v, {1, n, k}, DType::f32);
}

Tensor product(const Tensor& x, const Tensor& w) {
  const Tensor y = Tensor::empty({1, x.size(1), w.size(1)}, DType::f32);
  run(prim::Matmul{.a = x, .b = w, .transpose_b = true, .y = y});
  return y;
}

Tensor rows(int64_t m, int64_t k) {
  auto v = naive::values(m * k, 5);
  return naive::tensor(v, {1, m, k}, DType::f32);
}

TEST(CpuMatmul, PacksAParameterOncePerVersion) {
  const Tensor w = parameter(96, 80), x = rows(1024, 80);
  const int64_t before = cpu::onednn::pack_count();
  product(x, w);
  product(x, w);
  EXPECT_EQ(cpu::onednn::pack_count() - before, 1);
  w.storage()->bump_version();
  product(x, w);
  EXPECT_EQ(cpu::onednn::pack_count() - before, 2);
}

TEST(CpuMatmul, PacksForFewRowsOnlyWhenTheyRepeat) {
  const Tensor w = parameter(96, 80), x = rows(16, 80);
  const int64_t before = cpu::onednn::pack_count();
  for (int step = 0; step < 3; ++step) {  // training: two micro-batches a step
    product(x, w);
    product(x, w);
    w.storage()->bump_version();
  }
  EXPECT_EQ(cpu::onednn::pack_count() - before, 0);
  for (int batch = 0; batch < 10; ++batch) product(x, w);
  EXPECT_EQ(cpu::onednn::pack_count() - before, 1);
}

// Or a prediction would change its last bit when it is asked for again.
TEST(CpuMatmul, PackedWeightsGiveTheSameBits) {
  for (const auto& [n, k] : {std::pair{10, 512}, {513, 65}, {64, 1024}}) {
    const Tensor w = parameter(n, k), x = rows(16, k);
    const auto plain = product(x, w).to_vector<float>();
    for (int use = 0; use < 5; ++use) ASSERT_EQ(product(x, w).to_vector<float>(), plain);
  }
}

TEST(CpuMatmul, SeesAParameterChangedInPlace) {
  const Tensor w = parameter(96, 80), x = rows(1024, 80);
  const auto first = product(x, w).to_vector<float>();
  for (int64_t i = 0; i < w.numel(); ++i) w.data<float>()[i] *= 2;
  w.storage()->bump_version();
  const auto second = product(x, w).to_vector<float>();
  for (size_t i = 0; i < first.size(); ++i) ASSERT_EQ(second[i], 2 * first[i]) << i;
}

TEST(CpuMatmul, SeesAParameterThatMovedIntoAnArena) {
  const Tensor w = parameter(96, 80), x = rows(1024, 80);
  const auto first = product(x, w).to_vector<float>();
  const Tensor arena = Tensor::full({3, 96 * 80}, 0.5, DType::f32);
  w.storage()->move_into(arena.storage(), 96 * 80 * 4);
  const auto second = product(x, w).to_vector<float>();
  const Tensor flat = rows(1024, 80);
  double sum = 0;
  for (int64_t i = 0; i < 80; ++i) sum += 0.5 * flat.data<float>()[i];
  EXPECT_NEAR(second[0], sum, 1e-5);
}

TEST(CpuMatmul, PackedCopiesDieWithTheParameter) {
  const auto live = [] {
    return backend(Device::cpu())
        .allocator()
        .statistics()
        .live_by_tag[static_cast<int>(MemoryTag::workspace)];
  };
  const Tensor x = rows(1024, 80);
  const int64_t before = live();
  {
    const Tensor w = parameter(96, 80);
    product(x, w);
    EXPECT_GT(live(), before);
  }
  EXPECT_EQ(live(), before);
}

TEST(CpuMatmul, PackedCopiesAreBounded) {
  const Tensor w = parameter(64, 4096);
  const auto live = [] {
    return backend(Device::cpu())
        .allocator()
        .statistics()
        .live_by_tag[static_cast<int>(MemoryTag::workspace)];
  };
  const int64_t before = live();
  for (int64_t n = 1; n < 24; ++n) {  // 23 views of one storage
    const Tensor view = w.as_strided({1, 64, 4096 - n}, {64 * (4096 - n), 4096 - n, 1});
    product(rows(1024, 4096 - n), view);
  }
  EXPECT_LE(live() - before, 4 * (w.nbytes() + 4096) + 64 * 512);
}

// The three products of a linear layer.
void expect_fast_linear(int64_t rows, int64_t in, int64_t out) {
  const MemoryTagScope scope(MemoryTag::parameters);
  const Tensor x = Tensor::empty({1, rows, in}, DType::f32),
               w = Tensor::empty({1, out, in}, DType::f32),
               y = Tensor::empty({1, rows, out}, DType::f32),
               bias = Tensor::empty({out}, DType::f32);
  const auto fast = [](const std::string& name) {
    return name.find("ref") == std::string::npos && name != "eigen" && !name.empty();
  };
  EXPECT_PRED1(fast, cpu::implementation_of(
                         prim::Matmul{.a = x, .b = w, .transpose_b = true, .bias = bias, .y = y}))
      << "forward " << rows << ", " << in << " -> " << out;
  EXPECT_PRED1(fast, cpu::implementation_of(prim::Matmul{.a = y, .b = w, .y = x}))
      << "data gradient " << rows << ", " << in << " -> " << out;
  EXPECT_PRED1(fast,
               cpu::implementation_of(prim::Matmul{.a = y, .b = x, .transpose_a = true, .y = w}))
      << "weight gradient " << rows << ", " << in << " -> " << out;
}

TEST(CpuMatmul, NoReferenceCodeInTheReferenceModels) {
  for (const int64_t rows : {64, 1024}) {
    expect_fast_linear(rows, 784, 512);
    expect_fast_linear(rows, 512, 512);
    expect_fast_linear(rows, 512, 10);
  }
  for (const auto& [in, out] : {std::pair{256, 768}, {256, 256}, {256, 1024}, {1024, 256}}) {
    expect_fast_linear(2048, in, out);
  }
  expect_fast_linear(64, 512, 10);  // heads of the residual networks
  expect_fast_linear(8, 2048, 1000);
  expect_fast_linear(128, 64, 10);
}

}  // namespace
}  // namespace crucible
