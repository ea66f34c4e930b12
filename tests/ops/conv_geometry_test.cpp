// Convolution backward over a grid of geometries, most of which round the output size down.
#include <fmt/format.h>

#include <set>

#include "ops/conv.h"
#include "tests/ops/gradcheck.h"
#include "tests/ops/on_each_device.h"
#include "tests/samples/seed.h"

namespace crucible::testing {
namespace {

struct Geometry {
  int64_t size, kernel, stride, padding, dilation, groups, channels;

  bool possible() const { return dilation * (kernel - 1) + 1 <= size + 2 * padding; }
  int64_t output() const { return (size + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1; }
  ConvOptions options() const {
    return {.stride = stride, .padding = padding, .dilation = dilation, .groups = groups};
  }
  // Along one axis: the pixels that some window touches.
  std::vector<bool> read() const {
    std::vector<bool> hit(size);
    for (int64_t o = 0; o < output(); ++o) {
      for (int64_t k = 0; k < kernel; ++k) {
        const int64_t at = o * stride - padding + k * dilation;
        if (at >= 0 && at < size) hit[at] = true;
      }
    }
    return hit;
  }
  std::string text() const {
    return fmt::format("size {} kernel {} stride {} padding {} dilation {} groups {}", size, kernel,
                       stride, padding, dilation, groups);
  }
};

std::vector<Geometry> grid(std::initializer_list<int64_t> sizes, int64_t channels) {
  std::vector<Geometry> list;
  for (const int64_t size : sizes)
    for (const int64_t kernel : {1, 3, 7, 16})
      for (const int64_t stride : {1, 2, 3, 16})
        for (const int64_t padding : std::set<int64_t>{0, 1, 2, kernel - 1})
          for (const int64_t dilation : {1, 2, 3})
            for (const int64_t groups : std::set<int64_t>{1, 2, channels}) {
              const Geometry g{size, kernel, stride, padding, dilation, groups, channels};
              if (channels % groups == 0 && g.possible()) list.push_back(g);
            }
  return list;
}

// All weights and upstream gradients positive: the gradient of a pixel is 0 exactly if none reads
// it.
void expect_zero_exactly_where_unread(const Geometry& g, Device device, DType dtype) {
  Maker m(device, dtype, run_seed());
  const Tensor x = m.normal({1, g.size, g.size, g.channels}).set_requires_grad();
  const Tensor w = m.uniform({g.channels, g.kernel, g.kernel, g.channels / g.groups}, 0.1, 1.0);
  const Tensor y = conv2d(x, w, {}, g.options());
  ASSERT_EQ(y.shape(), (Shape{1, g.output(), g.output(), g.channels})) << g.text();
  y.backward(m.uniform(y.shape(), 0.1, 1.0));
  ASSERT_EQ(x.grad().shape(), x.shape()) << g.text();
  const std::vector<double> dx = host_values(x.grad());
  const std::vector<bool> read = g.read();
  for (int64_t i = 0; i < x.numel(); ++i) {
    const bool touched = read[i / g.channels / g.size] && read[i / g.channels % g.size];
    ASSERT_TRUE(touched ? dx[i] > 0.0 : dx[i] == 0.0)
        << g.text() << ": pixel " << i / g.channels << " has gradient " << dx[i] << ", is "
        << (touched ? "" : "not ") << "read";
  }
}

class ConvGeometry : public OnEachDevice {};
CRUCIBLE_ON_EACH_DEVICE(ConvGeometry);

TEST_P(ConvGeometry, GradientIsZeroExactlyWhereNoWindowReads) {
  int stride = 0;  // the loops of the oracle are slow: it takes every seventh
  for (const Geometry& g : grid({5, 7, 16}, 4)) {
    if (GetParam() == DeviceType::reference && stride++ % 7 != 0) continue;
    ASSERT_NO_FATAL_FAILURE(expect_zero_exactly_where_unread(g, device(), DType::f32));
  }
}

TEST(ConvGeometryLarge, GradientIsZeroExactlyWhereNoWindowReads) {
  int every = 0;
  for (const Geometry& g : grid({224}, 3)) {
    if (every++ % 5 != 0 || g.kernel * g.kernel * g.output() * g.output() > 1'500'000) continue;
    ASSERT_NO_FATAL_FAILURE(expect_zero_exactly_where_unread(g, Device::cpu(), DType::f32));
  }
}

TEST_P(ConvGeometry, AgreesWithDifferenceQuotients) {
  int every = 0;
  for (const Geometry& g : grid({5, 7, 16}, 2)) {
    if (every++ % 11 != 0) continue;
    const OpSample sample{"conv2d", g.text(),
                          [&](Maker& m) {
                            return std::vector<Tensor>{
                                m.normal({1, g.size, g.size, g.channels}),
                                m.normal({g.channels, g.kernel, g.kernel, g.channels / g.groups}),
                                m.normal({g.channels})};
                          },
                          [&](const std::vector<Tensor>& t, Maker&) {
                            return conv2d(t[0], t[1], t[2], g.options());
                          }};
    ASSERT_TRUE(direction_agrees(sample, device(), run_seed()));
  }
}

}  // namespace
}  // namespace crucible::testing
