#include <gtest/gtest.h>
#include <omp.h>

#include <set>
#include <string>

#include "core/backend.h"
#include "core/storage.h"
#include "ops/cpu/onednn.h"
#include "tests/ops/cpu/naive.h"

namespace crucible {
namespace {

struct Case {
  int64_t n, h, w, c, o, groups;
  Window window;

  int64_t extent(int axis) const {
    const int64_t in = axis == 0 ? h : w;
    return in + 2 * window.padding[axis] - window.dilation[axis] * (window.kernel[axis] - 1) - 1;
  }
  bool possible() const { return extent(0) >= 0 && extent(1) >= 0; }
  int64_t ho() const { return extent(0) / window.stride[0] + 1; }
  int64_t wo() const { return extent(1) / window.stride[1] + 1; }

  /// visit(x index, w index, y index) for every product of the convolution.
  template <class F>
  void for_each_product(F&& visit) const {
    const auto [kh, kw] = window.kernel;
    const int64_t ci = c / groups, co = o / groups;
    for (int64_t b = 0; b < n; ++b)
      for (int64_t i = 0; i < ho(); ++i)
        for (int64_t j = 0; j < wo(); ++j)
          for (int64_t p = 0; p < kh; ++p)
            for (int64_t q = 0; q < kw; ++q) {
              const int64_t y = i * window.stride[0] + p * window.dilation[0] - window.padding[0];
              const int64_t x = j * window.stride[1] + q * window.dilation[1] - window.padding[1];
              if (y < 0 || y >= h || x < 0 || x >= w) continue;
              for (int64_t k = 0; k < o; ++k)
                for (int64_t e = 0; e < ci; ++e)
                  visit(((b * h + y) * w + x) * c + k / co * ci + e,
                        ((k * kh + p) * kw + q) * ci + e, ((b * ho() + i) * wo() + j) * o + k);
            }
  }
};

std::string describe(const Case& c) {
  const auto pair = [](const auto& a) { return std::to_string(a[0]) + "x" + std::to_string(a[1]); };
  return std::to_string(c.n) + "x" + std::to_string(c.h) + "x" + std::to_string(c.w) + "x" +
         std::to_string(c.c) + " -> " + std::to_string(c.o) + " groups " +
         std::to_string(c.groups) + " kernel " + pair(c.window.kernel) + " stride " +
         pair(c.window.stride) + " padding " + pair(c.window.padding) + " dilation " +
         pair(c.window.dilation);
}

// Forward and both gradients of one case against the loops; pixels never read must get exactly 0.
void expect_agreement(const Case& c, DType dtype) {
  SCOPED_TRACE(describe(c) + " " + std::string(name_of(dtype)));
  const int64_t wc = c.c / c.groups;
  const auto [kh, kw] = c.window.kernel;
  const Shape xs{c.n, c.h, c.w, c.c}, ws{c.o, kh, kw, wc}, ys{c.n, c.ho(), c.wo(), c.o};
  auto vx = naive::values(xs.numel(), 1), vw = naive::values(ws.numel(), 2),
       vb = naive::values(c.o, 3), vdy = naive::values(ys.numel(), 4);
  const Tensor x = naive::tensor(vx, xs, dtype), w = naive::tensor(vw, ws, dtype),
               bias = naive::tensor(vb, {c.o}, dtype), dy = naive::tensor(vdy, ys, dtype);
  const Tensor y = Tensor::empty(ys, dtype), dx = Tensor::empty(xs, dtype),
               dw = Tensor::empty(ws, dtype);
  run(prim::Convolution{
      .x = x, .w = w, .bias = bias, .window = c.window, .groups = c.groups, .y = y});
  run(prim::ConvolutionDataGradient{
      .dy = dy, .w = w, .window = c.window, .groups = c.groups, .dx = dx});
  run(prim::ConvolutionFilterGradient{
      .x = x, .dy = dy, .window = c.window, .groups = c.groups, .dw = dw});

  std::vector<double> ey(ys.numel()), my(ys.numel()), ex(xs.numel()), mx(xs.numel()),
      ew(ws.numel()), mw(ws.numel());
  for (int64_t i = 0; i < ys.numel(); ++i) my[i] = std::abs(ey[i] = vb[i % c.o]);
  c.for_each_product([&](int64_t i, int64_t j, int64_t k) {
    const auto add = [](double& sum, double& size, double term) {
      sum += term;
      size += std::abs(term);
    };
    add(ey[k], my[k], vx[i] * vw[j]);
    add(ex[i], mx[i], vdy[k] * vw[j]);
    add(ew[j], mw[j], vdy[k] * vx[i]);
  });
  EXPECT_TRUE(naive::close(naive::read(y), ey, my, kh * kw * wc + 1, dtype)) << "forward";
  EXPECT_TRUE(naive::close(naive::read(dx), ex, mx, kh * kw * c.o, dtype)) << "data gradient";
  EXPECT_TRUE(naive::close(naive::read(dw), ew, mw, c.n * c.ho() * c.wo(), dtype))
      << "filter gradient";
  const auto got = naive::read(dx);
  for (size_t i = 0; i < got.size(); ++i) {
    if (mx[i] == 0) {
      ASSERT_EQ(got[i], 0) << "pixel never read, element " << i;
    }
  }
}

// One thread while alive: thousands of small calls, each of which would wait for the whole team.
class OneThread {
 public:
  OneThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneThread() { omp_set_num_threads(before_); }

 private:
  int before_;
};

void expect_agreement_on_grid(DType dtype, const std::vector<int64_t>& group_counts) {
  const OneThread scope;
  for (const int64_t size : {5, 7, 16}) {
    for (const int64_t kernel : {1, 3, 7, 16}) {
      for (const int64_t stride : {1, 2, 3, 16}) {
        for (const int64_t padding : std::set<int64_t>{0, 1, 2, kernel - 1}) {
          for (const int64_t dilation : {1, 2, 3}) {
            for (const int64_t groups : group_counts) {
              const Case c{
                  2,
                  size,
                  size,
                  4,
                  4,
                  groups,
                  {{kernel, kernel}, {stride, stride}, {padding, padding}, {dilation, dilation}}};
              if (c.possible()) expect_agreement(c, dtype);
              if (::testing::Test::HasFailure()) return;
            }
          }
        }
      }
    }
  }
}

TEST(CpuConvolution, AgreesWithLoopsOnTheGridInF32) {
  expect_agreement_on_grid(DType::f32, {1, 2, 4});
}

TEST(CpuConvolution, AgreesWithLoopsOnTheGridInF64) {
  expect_agreement_on_grid(DType::f64, {1, 2});
}

TEST(CpuConvolution, AgreesWithLoopsWhenAxesDiffer) {
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
    expect_agreement({2, 9, 6, 3, 5, 1, {{3, 2}, {2, 1}, {0, 1}, {1, 2}}}, dtype);
    expect_agreement({1, 6, 11, 16, 32, 1, {{1, 1}, {2, 2}, {0, 0}, {1, 1}}}, dtype);
    expect_agreement({3, 8, 8, 1, 16, 1, {{3, 3}, {1, 1}, {1, 1}, {1, 1}}}, dtype);
    expect_agreement({1, 7, 7, 32, 32, 32, {{3, 3}, {2, 2}, {1, 1}, {1, 1}}}, dtype);
    expect_agreement({1, 7, 7, 32, 16, 4, {{3, 3}, {1, 1}, {1, 1}, {1, 1}}}, dtype);
  }
}

// Small maps of many channels, whose filter gradient is one product.
TEST(CpuConvolution, AgreesWithLoopsOnSmallMaps) {
  expect_agreement({3, 4, 4, 64, 64, 1, {{3, 3}, {1, 1}, {1, 1}, {1, 1}}}, DType::f32);
  expect_agreement({2, 8, 7, 64, 80, 1, {{3, 3}, {2, 2}, {1, 1}, {1, 1}}}, DType::f32);
  expect_agreement({2, 7, 7, 64, 64, 1, {{1, 1}, {1, 1}, {0, 0}, {1, 1}}}, DType::f32);
  expect_agreement({2, 7, 7, 64, 64, 1, {{1, 1}, {2, 2}, {0, 0}, {1, 1}}}, DType::f32);
}

TEST(CpuConvolution, NoChannelsGiveTheBias) {
  const Tensor x = Tensor::empty({1, 3, 3, 0}, DType::f32),
               w = Tensor::empty({2, 1, 1, 0}, DType::f32);
  const Tensor bias = Tensor::from<float>({1.f, 2.f}, {2}),
               y = Tensor::empty({1, 3, 3, 2}, DType::f32);
  run(prim::Convolution{.x = x, .w = w, .bias = bias, .y = y});
  const auto got = y.to_vector<float>();
  for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], i % 2 ? 2.f : 1.f);
}

TEST(CpuConvolution, AnEmptyBatchGivesZeroGradients) {
  const Tensor x = Tensor::empty({0, 3, 3, 2}, DType::f32),
               dy = Tensor::empty({0, 3, 3, 4}, DType::f32);
  auto v = naive::values(8, 1);
  const Tensor dw = naive::tensor(v, {4, 1, 1, 2}, DType::f32);
  run(prim::ConvolutionFilterGradient{.x = x, .dy = dy, .dw = dw});
  for (const float g : dw.to_vector<float>()) EXPECT_EQ(g, 0.f);
}

TEST(CpuConvolution, PacksAFilterOncePerVersionAndLayout) {
  Tensor w;
  {
    const MemoryTagScope scope(MemoryTag::parameters);
    auto v = naive::values(32 * 9 * 32, 1);
    w = naive::tensor(v, {32, 3, 3, 32}, DType::f32);
  }
  auto v = naive::values(2 * 8 * 8 * 32, 2);
  const Tensor x = naive::tensor(v, {2, 8, 8, 32}, DType::f32);
  const Tensor y = Tensor::empty({2, 8, 8, 32}, DType::f32), dx = empty_like(x);
  const Window window{{3, 3}, {1, 1}, {1, 1}, {1, 1}};
  const auto step = [&] {
    run(prim::Convolution{.x = x, .w = w, .window = window, .y = y});
    run(prim::ConvolutionDataGradient{.dy = y, .w = w, .window = window, .dx = dx});
  };
  const int64_t before = cpu::onednn::pack_count();
  step();
  const int64_t once = cpu::onednn::pack_count() - before;
  EXPECT_GE(once, 1);
  EXPECT_LE(once, 2);
  step();
  EXPECT_EQ(cpu::onednn::pack_count() - before, once);
  const auto first = y.to_vector<float>();
  for (int64_t i = 0; i < w.numel(); ++i) w.data<float>()[i] *= 2;
  w.storage()->bump_version();
  step();
  EXPECT_EQ(cpu::onednn::pack_count() - before, 2 * once);
  const auto second = y.to_vector<float>();
  for (size_t i = 0; i < first.size(); ++i) ASSERT_EQ(second[i], 2 * first[i]) << i;
}

// ---- No reference code for the models that people train ---------------------------------------

void expect_fast(const Case& c) {
  const auto [kh, kw] = c.window.kernel;
  const Tensor x = Tensor::empty({c.n, c.h, c.w, c.c}, DType::f32),
               w = Tensor::empty({c.o, kh, kw, c.c}, DType::f32),
               y = Tensor::empty({c.n, c.ho(), c.wo(), c.o}, DType::f32);
  const auto fast = [](const std::string& name) {
    return name.find("ref") == std::string::npos && name != "unrolled" && !name.empty();
  };
  EXPECT_PRED1(
      fast, cpu::implementation_of(prim::Convolution{.x = x, .w = w, .window = c.window, .y = y}))
      << "forward " << describe(c);
  EXPECT_PRED1(fast, cpu::implementation_of(prim::ConvolutionDataGradient{
                         .dy = y, .w = w, .window = c.window, .dx = x}))
      << "data gradient " << describe(c);
  EXPECT_PRED1(fast, cpu::implementation_of(prim::ConvolutionFilterGradient{
                         .x = x, .dy = y, .window = c.window, .dw = w}))
      << "filter gradient " << describe(c);
}

Case square(int64_t n, int64_t h, int64_t c, int64_t o, int64_t kernel, int64_t stride) {
  return {n, h, h, c, o, 1, {{kernel, kernel}, {stride, stride}, {kernel / 2, kernel / 2}, {1, 1}}};
}

// A residual network of two 3x3 convolutions a block on images of `h` pixels.
void expect_fast_basic(int64_t n, int64_t h, int64_t in, const std::vector<int64_t>& widths) {
  expect_fast(square(n, h, in, widths[0], 3, 1));
  int64_t c = widths[0];
  for (const int64_t o : widths) {
    const int64_t stride = o == c ? 1 : 2;
    expect_fast(square(n, h, c, o, 3, stride));
    if (stride == 2) expect_fast(square(n, h, c, o, 1, stride));
    h /= stride;
    expect_fast(square(n, h, o, o, 3, 1));
    c = o;
  }
}

TEST(CpuConvolution, NoReferenceCodeInResNet18) {
  expect_fast_basic(64, 32, 3, {64, 128, 256, 512});
}

TEST(CpuConvolution, NoReferenceCodeInResNet20) {
  expect_fast_basic(128, 28, 1, {16, 32, 64});
}

TEST(CpuConvolution, NoReferenceCodeInResNet50) {
  expect_fast(square(8, 224, 3, 64, 7, 2));
  int64_t h = 56, c = 64;
  for (const int64_t width : {64, 128, 256, 512}) {
    const int64_t stride = width == 64 ? 1 : 2;
    expect_fast(square(8, h, c, width, 1, 1));
    expect_fast(square(8, h, width, width, 3, stride));
    expect_fast(square(8, h, c, 4 * width, 1, stride));
    h /= stride;
    expect_fast(square(8, h, width, 4 * width, 1, 1));
    expect_fast(square(8, h, 4 * width, width, 1, 1));
    expect_fast(square(8, h, width, width, 3, 1));
    c = 4 * width;
  }
}

}  // namespace
}  // namespace crucible
