#include "ops/autocast.h"

#include "core/autograd.h"
#include "core/parameters.h"
#include "ops/attention.h"
#include "ops/cast.h"
#include "ops/conv.h"
#include "ops/elementwise.h"
#include "ops/embedding.h"
#include "ops/loss.h"
#include "ops/matmul.h"
#include "ops/norm.h"
#include "ops/reduce.h"
#include "ops/softmax.h"
#include "ops/view.h"
#include "optim/sgd.h"
#include "tests/ops/on_each_device.h"

namespace crucible::testing {
namespace {

class AutocastOn : public ::testing::TestWithParam<DeviceType> {
 protected:
  Device device() const { return {GetParam(), 0}; }
  Tensor normal(const Shape& shape, DType dtype = DType::f32) const {
    return Maker(device(), dtype, 7).normal(shape);
  }
};

TEST_P(AutocastOn, ProductsAreNarrow) {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    const AutocastScope scope(dtype);
    EXPECT_EQ(linear(normal({2, 3}), normal({4, 3}), normal({4})).dtype(), dtype);
    EXPECT_EQ(matmul(normal({2, 3}), normal({3, 2})).dtype(), dtype);
    EXPECT_EQ(conv2d(normal({1, 4, 4, 2}), normal({3, 1, 1, 2}), normal({3})).dtype(), dtype);
    const Tensor q = normal({1, 3, 2, 4});
    EXPECT_EQ(attention(q, q, q).dtype(), dtype);
  }
}

TEST_P(AutocastOn, SumsLogarithmsAndSoftmaxAreWide) {
  const AutocastScope scope(DType::bf16);
  const Tensor x = abs(normal({3, 4}, DType::bf16));
  for (const Tensor& y : {softmax(x, -1), log_softmax(x, -1), sum(x), mean(x), prod(x),
                          logsumexp(x), norm(x), exp(x), log(x), pow(x, 3.0)}) {
    EXPECT_EQ(y.dtype(), DType::f32);
  }
}

TEST_P(AutocastOn, TheRestStaysAsItIs) {
  const AutocastScope scope(DType::bf16);
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const Tensor x = normal({4, 3}, dtype);
    EXPECT_EQ(relu(x).dtype(), dtype);
    EXPECT_EQ(add(x, x).dtype(), dtype);
    EXPECT_EQ(max(x).dtype(), dtype);
    EXPECT_EQ(layer_norm(x, normal({3}), normal({3})).dtype(), dtype);
    EXPECT_EQ(embedding(x, Maker(device(), dtype, 1).labels({1, 3})).dtype(), dtype);
  }
}

TEST_P(AutocastOn, LossOfNarrowLogitsIsWide) {
  const AutocastScope scope(DType::f16);
  const Tensor labels = Maker(device(), DType::f16, 1).labels({1, 0, 2});
  EXPECT_EQ(cross_entropy(normal({3, 3}, DType::f16), labels).dtype(), DType::f32);
}

TEST_P(AutocastOn, TwoDtypesMeetInF32) {
  const AutocastScope scope(DType::bf16);
  const Tensor wide = normal({3}), narrow = normal({3}, DType::bf16);
  EXPECT_EQ(add(wide, narrow).dtype(), DType::f32);
  EXPECT_EQ(mul(narrow, wide).dtype(), DType::f32);
  EXPECT_EQ(mse_loss(narrow, wide).dtype(), DType::f32);
  const Tensor condition = Maker(device(), DType::f32, 1).booleans({3});
  EXPECT_EQ(where(condition, wide, narrow).dtype(), DType::f32);
}

TEST_P(AutocastOn, F64IsLeftAlone) {
  const AutocastScope scope(DType::bf16);
  EXPECT_EQ(matmul(normal({2, 2}, DType::f64), normal({2, 2}, DType::f64)).dtype(), DType::f64);
  EXPECT_THAT(error_of([&] { add(normal({2}, DType::f64), normal({2})); }),
              ::testing::HasSubstr("dtypes differ: f64 and f32"));
}

TEST_P(AutocastOn, OutsideOfAScopeDtypesMustAgree) {
  EXPECT_THAT(error_of([&] { add(normal({2}), normal({2}, DType::bf16)); }),
              ::testing::HasSubstr("dtypes differ: f32 and bf16"));
  const AutocastScope on(DType::bf16);
  const AutocastScope off(std::nullopt);
  EXPECT_EQ(matmul(normal({2, 2}), normal({2, 2})).dtype(), DType::f32);
}

// One product: the values are those of rounded operands, the gradients are f32 and within the
// rounding of dy and of the operands, 3 * 2^-9 for bf16.
TEST_P(AutocastOn, GradientsComeBackInF32) {
  const Tensor x = normal({8, 16}).set_requires_grad(), w = normal({4, 16}).set_requires_grad();
  const auto gradients = [&](std::optional<DType> dtype) {
    x.zero_grad();
    w.zero_grad();
    Tensor y;
    {
      const AutocastScope scope(dtype);
      y = sum(square(linear(x, w, {})));
    }
    y.backward();
    EXPECT_EQ(w.grad().dtype(), DType::f32);
    return std::pair{x.grad().to_vector<float>(), w.grad().to_vector<float>()};
  };
  const auto want = gradients(std::nullopt), got = gradients(DType::bf16);
  const auto expect_close = [](const std::vector<float>& a, const std::vector<float>& b) {
    float largest = 0.0f;
    for (const float v : a) largest = std::max(largest, std::abs(v));
    for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 3.0f / 512 * largest) << i;
    EXPECT_NE(a, b);
  };
  expect_close(want.first, got.first);
  expect_close(want.second, got.second);
}

// The narrow copy of a parameter is what products read, and follows every change of it.
TEST_P(AutocastOn, NarrowCopyFollowsTheParameter) {
  ParameterSet set(device());
  const Tensor w = set.add("w", {2, 3}, Init::normal(0.0, 1.0));
  set.keep_narrow_copy(DType::bf16);
  optim::Sgd sgd(set, {.lr = 0.5});
  const Tensor x = normal({4, 3});
  for (int step = 0; step < 3; ++step) {
    const Tensor expected = linear(cast(x, DType::bf16), cast(w.detach(), DType::bf16), Tensor());
    Tensor y;
    {
      const AutocastScope scope(DType::bf16);
      y = linear(x, w, {});
    }
    EXPECT_EQ(cast(y.detach(), DType::f32).to_vector<float>(),
              cast(expected, DType::f32).to_vector<float>());
    y.backward(cast(normal({4, 2}), DType::bf16));
    EXPECT_EQ(w.grad().dtype(), DType::f32);
    const std::vector<float> before = w.to_vector<float>();
    if (step == 0) {
      sgd.step();
    } else {
      copy_(w.detach(), add(w.detach(), 1.0));
    }
    EXPECT_NE(before, w.to_vector<float>());
    sgd.zero_grad();
  }
}

// A parameter used twice, as a tied embedding is: both uses reach its gradient.
TEST_P(AutocastOn, GradientsOfTwoUsesAdd) {
  ParameterSet set(device());
  const Tensor w = set.add("w", {3, 3}, Init::normal(0.0, 1.0));
  set.keep_narrow_copy(DType::f16);
  const Tensor x = normal({2, 3});
  const auto gradient_of = [&](int uses) {
    set.zero_grad();
    Tensor y;
    {
      const AutocastScope scope(DType::f16);
      y = linear(x, w, {});
      if (uses == 2) y = add(y, linear(x, w, {}));
    }
    sum(y).backward();
    return w.grad().to_vector<float>();
  };
  std::vector<float> once = gradient_of(1);
  for (float& g : once) g *= 2;
  EXPECT_EQ(once, gradient_of(2));
}

TEST(Autocast, ThrowsNamingADtypeThatIsNotNarrow) {
  EXPECT_THAT(error_of([] { AutocastScope scope(DType::f32); }),
              ::testing::HasSubstr("autocast: f32 is no dtype of mixed precision"));
  EXPECT_EQ(AutocastScope::current(), std::nullopt);
}

TEST(Autocast, ThrowsNamingACopyThatIsNotNarrow) {
  ParameterSet set;
  EXPECT_THAT(error_of([&] { set.keep_narrow_copy(DType::f64); }),
              ::testing::HasSubstr("a f64 copy of f32 parameters"));
}

INSTANTIATE_TEST_SUITE_P(Each, AutocastOn,
                         ::testing::Values(DeviceType::reference, DeviceType::cpu), name_of_device);

}  // namespace
}  // namespace crucible::testing
