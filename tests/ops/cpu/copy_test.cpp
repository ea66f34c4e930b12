#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "core/backend.h"
#include "core/tensor.h"

namespace crucible {
namespace {

template <class T>
Tensor counting(const Shape& shape) {
  std::vector<T> values(shape.numel());
  for (size_t i = 0; i < values.size(); ++i) values[i] = T(static_cast<float>(i % 251));
  return Tensor::from(values, shape);
}

// x with its axes in the order of `axes`, as a view.
Tensor permuted(const Tensor& x, const std::vector<int>& axes) {
  std::vector<int64_t> sizes;
  Strides strides{};
  for (size_t i = 0; i < axes.size(); ++i) {
    sizes.push_back(x.size(axes[i]));
    strides[i] = x.stride(axes[i]);
  }
  return x.as_strided(Shape(sizes), strides);
}

// Copies the permuted view element by element.
template <class T>
std::vector<T> expected_copy(const Tensor& view) {
  std::vector<T> values;
  for (int64_t i = 0; i < view.numel(); ++i) {
    int64_t rest = i, offset = 0;
    for (int axis = view.rank() - 1; axis >= 0; --axis) {
      offset += rest % view.size(axis) * view.stride(axis);
      rest /= view.size(axis);
    }
    values.push_back(view.data<T>()[offset]);
  }
  return values;
}

TEST(CpuCopy, PermutationsMatchIndexing) {
  const std::vector<std::vector<int>> orders = {{0, 1, 2, 3}, {0, 2, 1, 3}, {0, 3, 1, 2},
                                                {0, 2, 3, 1}, {3, 2, 1, 0}, {1, 0, 3, 2}};
  for (const Shape& shape : {Shape{2, 3, 5, 7}, Shape{3, 33, 40, 64}, Shape{1, 70, 1, 65}}) {
    const Tensor x = counting<float>(shape);
    for (const auto& order : orders) {
      const Tensor view = permuted(x, order);
      const Tensor y = Tensor::empty(view.shape(), DType::f32);
      run(prim::Copy{.x = view, .y = y});
      ASSERT_EQ(y.to_vector<float>(), expected_copy<float>(view)) << to_string(view.shape());
    }
  }
}

TEST(CpuCopy, EveryElementSizeIsTransposed) {
  const auto check_type = []<class T>() {
    const Tensor view = permuted(counting<T>({45, 70}), {1, 0});
    const Tensor y = Tensor::empty(view.shape(), dtype_of<T>);
    run(prim::Copy{.x = view, .y = y});
    EXPECT_EQ(y.to_vector<T>(), expected_copy<T>(view)) << name_of(dtype_of<T>);
  };
  check_type.operator()<double>();
  check_type.operator()<int32_t>();
  check_type.operator()<uint8_t>();
}

TEST(CpuCopy, WritesThroughStrides) {
  const Tensor x = counting<float>({40, 30});
  const Tensor y = Tensor::zeros({30, 40, 2}, DType::f32);
  run(prim::Copy{.x = x, .y = y.as_strided({40, 30}, {2, 80})});
  const std::vector<float> values = y.to_vector<float>();
  for (int64_t i = 0; i < 30 * 40; ++i) {
    ASSERT_EQ(values[2 * i], (i % 40 * 30 + i / 40) % 251);
    ASSERT_EQ(values[2 * i + 1], 0.0f);
  }
}

TEST(CpuCopy, FloatingToIntegerTruncatesAndSaturates) {
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<double> values = {
      1.9,   -1.9,     0.99,      -0.5, 300.7, 3e9,   1e30,
      -1e30, infinity, -infinity, NAN,  255.9, 256.0, 9223372036854775807.0};
  const Tensor x = Tensor::from(values, {14});
  const auto as = [&]<class T>() {
    const Tensor y = Tensor::empty({14}, dtype_of<T>);
    run(prim::Copy{.x = x, .y = y});
    return y.to_vector<T>();
  };
  const int64_t most = std::numeric_limits<int64_t>::max(), least = -most - 1;
  EXPECT_EQ(as.operator()<int64_t>(),
            (std::vector<int64_t>{1, -1, 0, 0, 300, 3000000000, most, least, most, least, 0, 255,
                                  256, most}));
  const int32_t high = std::numeric_limits<int32_t>::max(), low = -high - 1;
  EXPECT_EQ(as.operator()<int32_t>(), (std::vector<int32_t>{1, -1, 0, 0, 300, high, high, low, high,
                                                            low, 0, 255, 256, high}));
  EXPECT_EQ(as.operator()<uint8_t>(),
            (std::vector<uint8_t>{1, 0, 0, 0, 255, 255, 255, 0, 255, 0, 0, 255, 255, 255}));
}

TEST(CpuCopy, BroadcastsStrideZero) {
  const Tensor x = counting<float>({3});
  const Tensor y = Tensor::empty({2, 3, 4}, DType::bf16);
  run(prim::Copy{.x = x.as_strided({2, 3, 4}, {0, 1, 0}), .y = y});
  const std::vector<BFloat16> values = y.to_vector<BFloat16>();
  for (int i = 0; i < 24; ++i) EXPECT_EQ(static_cast<float>(values[i]), i / 4 % 3);
}

TEST(CpuFill, ReachesEveryElementOfAView) {
  const Tensor y = Tensor::zeros({6, 5}, DType::f16);
  run(prim::Fill{.value = 1.5, .y = y.as_strided({3, 2}, {10, 2}, 1)});
  const std::vector<Float16> values = y.to_vector<Float16>();
  for (int i = 0; i < 30; ++i) {
    const bool inside = i / 5 % 2 == 0 && (i % 5 == 1 || i % 5 == 3);
    EXPECT_EQ(static_cast<float>(values[i]), inside ? 1.5f : 0.0f) << i;
  }
}

}  // namespace
}  // namespace crucible
