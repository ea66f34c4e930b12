// Gradients of broadcast, 0-d and zero-size operands have the operand's shape.  Their values are in
// GradCheck; here are the shapes and the zero-size cases by name.
#include "ops/conv.h"
#include "ops/elementwise.h"
#include "ops/loss.h"
#include "ops/matmul.h"
#include "ops/norm.h"
#include "ops/pool.h"
#include "ops/reduce.h"
#include "ops/softmax.h"
#include "tests/ops/on_each_device.h"

namespace crucible::testing {
namespace {

using Values = std::vector<double>;

class Broadcasting : public OnEachDevice {
 protected:
  Tensor normal(const Shape& shape) const {
    return Maker(device(), DType::f64, 3).normal(shape).set_requires_grad();
  }
};
CRUCIBLE_ON_EACH_DEVICE(Broadcasting);

TEST_P(Broadcasting, GradientsHaveTheShapeOfTheirOperand) {
  const std::pair<Shape, Shape> shapes[] = {{{5, 4}, {1}},      {{4, 1}, {1, 4}}, {{}, {2}},
                                            {{}, {}},           {{4, 0}, {4, 1}}, {{0}, {1}},
                                            {{2, 3, 4}, {3, 1}}};
  using Op = Tensor (*)(const Tensor&, const Tensor&);
  for (const Op op : {Op{add}, Op{sub}, Op{mul}, Op{div}}) {
    for (const auto& [sa, sb] : shapes) {
      for (const bool swapped : {false, true}) {
        const Tensor a = normal(swapped ? sb : sa), b = normal(swapped ? sa : sb);
        sum(op(a, b)).backward();
        EXPECT_EQ(a.grad().shape(), a.shape()) << to_string(sa) << to_string(sb);
        EXPECT_EQ(b.grad().shape(), b.shape()) << to_string(sa) << to_string(sb);
      }
    }
  }
}

TEST_P(Broadcasting, AZeroSizeAxisIsSummedToZeros) {
  const Tensor a = normal({4, 0}), b = normal({4, 1});
  sum(add(a, b)).backward();
  EXPECT_EQ(a.grad().shape(), (Shape{4, 0}));
  EXPECT_EQ(b.grad().shape(), (Shape{4, 1}));
  EXPECT_THAT(host_values(b.grad()), AreExactly(Values{0, 0, 0, 0}));
}

TEST_P(Broadcasting, ReductionsOfNothingAreTheirNeutralElement) {
  const Tensor x = normal({3, 0});
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_THAT(host_values(sum(x, {{1}})), AreExactly(Values{0, 0, 0}));
  EXPECT_THAT(host_values(mean(x, {{1}})), AreExactly(Values(3, std::nan(""))));
  EXPECT_THAT(host_values(prod(x, {{1}})), AreExactly(Values{1, 1, 1}));
  EXPECT_THAT(host_values(max(x, {{1}})), AreExactly(Values(3, -infinity)));
  EXPECT_THAT(host_values(min(x, {{1}})), AreExactly(Values(3, infinity)));
  EXPECT_THAT(host_values(logsumexp(x, {{1}})), AreExactly(Values(3, -infinity)));
  EXPECT_THAT(host_values(norm(x, {{1}})), AreExactly(Values{0, 0, 0}));
  EXPECT_EQ(sum(x, {{0}}).shape(), Shape{0});
  sum(max(x, {{1}})).backward();
  EXPECT_EQ(x.grad().shape(), x.shape());
}

TEST_P(Broadcasting, LayersTakeAnEmptyBatch) {
  const Tensor w = normal({2, 3}), b = normal({2});
  const Tensor x = normal({0, 3});
  sum(linear(x, w, b, Activation::relu)).backward();
  EXPECT_EQ(x.grad().shape(), (Shape{0, 3}));
  EXPECT_THAT(host_values(w.grad()), AreExactly(Values(6, 0.0)));
  EXPECT_THAT(host_values(b.grad()), AreExactly(Values(2, 0.0)));

  const Tensor images = normal({0, 5, 5, 3}), filter = normal({4, 3, 3, 3});
  const Tensor y = conv2d(images, filter, {}, {.padding = 1});
  EXPECT_EQ(y.shape(), (Shape{0, 5, 5, 4}));
  sum(max_pool2d(y)).backward();
  EXPECT_EQ(images.grad().shape(), images.shape());
  EXPECT_THAT(host_values(filter.grad()), AreExactly(Values(filter.numel(), 0.0)));

  EXPECT_EQ(softmax(normal({0, 3})).shape(), (Shape{0, 3}));
  EXPECT_EQ(layer_norm(normal({0, 2}), normal({2}), normal({2})).shape(), (Shape{0, 2}));
  EXPECT_EQ(matmul(normal({0, 2, 3}), normal({3, 4})).shape(), (Shape{0, 2, 4}));
  EXPECT_EQ(host_values(cross_entropy(normal({0, 3}), integers({})))[0], 0.0);
}

}  // namespace
}  // namespace crucible::testing
