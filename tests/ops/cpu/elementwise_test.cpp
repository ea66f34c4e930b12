// What the parity suite does not reach: the levels of one machine, odd lengths around vectors and
// blocks, integer operands.
#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <vector>

#include "core/backend.h"
#include "tests/ops/cpu/levels.h"

namespace crucible {
namespace {

Tensor normal(const Shape& shape, DType dtype, uint64_t stream, float scale = 2.0f) {
  Rng rng(5, stream);
  std::vector<float> values(shape.numel());
  for (float& v : values) v = scale * rng.normal();
  const Tensor x = Tensor::from(values, shape);
  const Tensor y = Tensor::empty(shape, dtype);
  run(prim::Copy{.x = x, .y = y});
  return y;
}

std::vector<float> floats(const Tensor& x) {
  const Tensor y = Tensor::empty(x.shape(), DType::f32);
  run(prim::Copy{.x = x, .y = y});
  return y.to_vector<float>();
}

constexpr int unary_count = static_cast<int>(UnaryOp::power) + 1;

TEST(CpuElementwise, LevelsAgree) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16, DType::f64}) {
    const float unit = dtype == DType::bf16 ? 0x1p-7f : dtype == DType::f16 ? 0x1p-9f : 4e-6f;
    for (int i = 0; i < unary_count; ++i) {
      const UnaryOp op = static_cast<UnaryOp>(i);
      const Tensor x = normal({2077}, dtype, 1), dy = normal({2077}, dtype, 2);
      std::vector<float> first;
      for (const cpu::Level level : cpu::levels_here()) {
        const cpu::LevelScope scope(level);
        const Tensor y = empty_like(x), dx = empty_like(x);
        const UnaryParams params{.a = 2.0, .b = 3.0};
        run(prim::Unary{.op = op, .params = params, .x = x, .y = y});
        run(prim::UnaryBackward{.op = op, .params = params, .x = x, .y = y, .dy = dy, .dx = dx});
        std::vector<float> values = floats(y);
        for (const float v : floats(dx)) values.push_back(v);
        if (first.empty()) first = values;
        for (size_t j = 0; j < values.size(); ++j) {
          if (std::isnan(first[j]) && std::isnan(values[j])) continue;
          ASSERT_NEAR(values[j], first[j], unit * (1.0f + std::fabs(first[j])))
              << name_of(op) << " " << name_of(dtype) << " at " << j;
        }
      }
    }
  }
}

TEST(CpuElementwise, BinaryReadsAnyStrides) {
  const Tensor a = normal({70, 90}, DType::f32, 1), b = normal({90}, DType::f32, 2);
  const Tensor y = Tensor::empty({90, 70}, DType::f32);
  run(prim::Binary{.op = BinaryOp::sub,
                   .a = a.as_strided({90, 70}, {1, 90}),
                   .b = b.as_strided({90, 70}, {1, 0}),
                   .y = y});
  const std::vector<float> u = a.to_vector<float>(), v = b.to_vector<float>();
  const std::vector<float> w = y.to_vector<float>();
  for (int i = 0; i < 90; ++i) {
    for (int j = 0; j < 70; ++j) ASSERT_EQ(w[i * 70 + j], u[j * 90 + i] - v[i]);
  }
}

TEST(CpuElementwise, RowBroadcastMatchesForEveryWidth) {
  for (const int64_t n : {1, 3, 10, 64, 1000, 1024, 1500, 3072}) {
    const Tensor a = normal({7, n}, DType::f32, 1), b = normal({n}, DType::f32, 2);
    const Tensor y = empty_like(a);
    run(prim::Binary{.op = BinaryOp::mul, .a = a, .b = b.as_strided({7, n}, {0, 1}), .y = y});
    const std::vector<float> u = a.to_vector<float>(), v = b.to_vector<float>();
    const std::vector<float> w = y.to_vector<float>();
    for (int64_t i = 0; i < 7 * n; ++i) ASSERT_EQ(w[i], u[i] * v[i % n]) << n;
  }
}

TEST(CpuElementwise, IntegersWrap) {
  const int64_t most = INT64_MAX;
  const Tensor a = Tensor::from(std::vector<int64_t>{most, 3, -5}, {3});
  const Tensor b = Tensor::from(std::vector<int64_t>{1, -4, 7}, {3});
  const Tensor y = empty_like(a);
  run(prim::Binary{.op = BinaryOp::add, .a = a, .b = b, .y = y});
  EXPECT_EQ(y.to_vector<int64_t>(), (std::vector<int64_t>{INT64_MIN, -1, 2}));
  run(prim::Binary{.op = BinaryOp::maximum, .a = a, .b = b, .y = y});
  EXPECT_EQ(y.to_vector<int64_t>(), (std::vector<int64_t>{most, 3, 7}));
}

TEST(CpuCompare, LargeIntegersAreExact) {
  const int64_t big = (int64_t{1} << 53) + 1;
  const Tensor a = Tensor::from(std::vector<int64_t>{big, big}, {2});
  const Tensor b = Tensor::from(std::vector<int64_t>{big - 1, big}, {2});
  const Tensor y = Tensor::empty({2}, DType::boolean);
  run(prim::Compare{.op = CompareOp::eq, .a = a, .b = b, .y = y});
  EXPECT_FALSE(y.data<bool>()[0]);
  EXPECT_TRUE(y.data<bool>()[1]);
}

TEST(CpuWhere, PicksByBroadcastCondition) {
  const Tensor a = normal({50, 60}, DType::bf16, 1), b = normal({60, 50}, DType::bf16, 2);
  const Tensor condition = Tensor::empty({50}, DType::boolean);
  for (int i = 0; i < 50; ++i) condition.data<bool>()[i] = i % 3 == 0;
  const Tensor y = empty_like(a);
  run(prim::Where{.condition = condition.as_strided({50, 60}, {1, 0}),
                  .a = a,
                  .b = b.as_strided({50, 60}, {1, 50}),
                  .y = y});
  const std::vector<float> u = floats(a), v = floats(b), w = floats(y);
  for (int i = 0; i < 50; ++i) {
    for (int j = 0; j < 60; ++j) {
      ASSERT_EQ(w[i * 60 + j], i % 3 == 0 ? u[i * 60 + j] : v[j * 50 + i]);
    }
  }
}

TEST(CpuReduce, DoesNotDependOnThreads) {
  for (const Shape& shape : {Shape{1, 300001, 1}, Shape{2, 5000, 33}, Shape{900, 70, 1}}) {
    const Tensor x = normal(shape, DType::f32, 3);
    const Tensor y = Tensor::empty({shape[0], shape[2]}, DType::f32);
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::logsumexp, ReduceOp::norm, ReduceOp::max}) {
      const int threads = omp_get_max_threads();
      std::vector<float> first;
      for (const int count : {1, 2, 5}) {
        omp_set_num_threads(count);
        run(prim::Reduce{.op = op, .x = x, .y = y});
        if (first.empty()) first = y.to_vector<float>();
        EXPECT_EQ(y.to_vector<float>(), first);
      }
      omp_set_num_threads(threads);
    }
  }
}

TEST(CpuReduce, LevelsAgree) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16, DType::f64}) {
    for (const Shape& shape : {Shape{2, 3001, 1}, Shape{2, 301, 19}}) {
      const Tensor x = normal(shape, dtype, 3, 0.1f);
      const Tensor y = Tensor::empty({shape[0], shape[2]}, dtype);
      for (int op = 0; op <= static_cast<int>(ReduceOp::norm); ++op) {
        std::vector<float> first;
        for (const cpu::Level level : cpu::levels_here()) {
          const cpu::LevelScope scope(level);
          run(prim::Reduce{.op = static_cast<ReduceOp>(op), .x = x, .y = y});
          const std::vector<float> values = floats(y);
          if (first.empty()) first = values;
          const float unit = dtype == DType::bf16 ? 0x1p-7f : dtype == DType::f16 ? 0x1p-9f : 4e-6f;
          for (size_t i = 0; i < values.size(); ++i) {
            ASSERT_NEAR(values[i], first[i], unit * (1.0f + std::fabs(first[i]))) << op;
          }
        }
      }
    }
  }
}

TEST(CpuReduce, ProductOfLargeAndSmallDoesNotOverflow) {
  const Tensor x = Tensor::from(std::vector<float>{1e30f, 1e30f, 1e-30f, 1e-30f}, {1, 4, 1});
  const Tensor y = Tensor::empty({1, 1}, DType::f32);
  run(prim::Reduce{.op = ReduceOp::prod, .x = x, .y = y});
  EXPECT_NEAR(y.item<float>(), 1.0f, 1e-6f);
  run(prim::Reduce{.op = ReduceOp::norm, .x = x, .y = y});
  EXPECT_NEAR(y.item<float>() / 1.41421356e30f, 1.0f, 1e-6f);
}

}  // namespace
}  // namespace crucible
