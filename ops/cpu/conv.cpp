// Convolutions over NHWC images: oneDNN for f32 and bf16, f16 through f32; for f64 and for what
// oneDNN has only slow reference code, each image is unrolled into a matrix and multiplied.
//
// Images stay in our layout, which costs oneDNN less than 10 %; filters take the layout it wants.
#include <omp.h>

#include <Eigen/Core>
#include <cstring>

#include "core/storage.h"
#include "ops/cpu/cpu_backend.h"
#include "ops/cpu/onednn.h"

namespace crucible::cpu {
namespace {

using onednn::Desc;
using onednn::Key;
using onednn::Plan;

// All sizes of a convolution.
struct Sizes {
  int64_t n, h, w, c;  // input
  int64_t ho, wo, o;   // output
  int64_t groups;
  Window window;

  int64_t group_in() const { return c / groups; }
  int64_t group_out() const { return o / groups; }
  int64_t taps() const { return window.kernel[0] * window.kernel[1] * group_in(); }
  // Whether every output pixel reads the input pixel at its place alone.
  bool is_pointwise() const {
    constexpr std::array<int64_t, 2> one{1, 1}, zero{0, 0};
    return window.kernel == one && window.stride == one && window.padding == zero;
  }
};

Sizes sizes_of(const Tensor& x, const Tensor& y, const Window& window, int64_t groups) {
  return {x.size(0), x.size(1), x.size(2), x.size(3), y.size(1),
          y.size(2), y.size(3), groups,    window};
}
Sizes sizes_of(const prim::Convolution& p) {
  return sizes_of(p.x, p.y, p.window, p.groups);
}
Sizes sizes_of(const prim::ConvolutionDataGradient& p) {
  return sizes_of(p.dx, p.dy, p.window, p.groups);
}
Sizes sizes_of(const prim::ConvolutionFilterGradient& p) {
  return sizes_of(p.x, p.dy, p.window, p.groups);
}

// ---- oneDNN -----------------------------------------------------------------------------------

struct Layouts {
  Desc x, w_own, w_any, bias, y;
  onednn::Geometry geometry;
};

Layouts layouts_of(const Sizes& s, DType dtype) {
  const auto image = [&](int64_t h, int64_t w, int64_t c) {
    return onednn::strided({s.n, c, h, w}, dtype, {h * w * c, 1, w * c, c});
  };
  const auto [kh, kw] = s.window.kernel;
  const int64_t ci = s.group_in(), co = s.group_out();
  onednn::Dims filter{co, ci, kh, kw}, strides{s.taps(), 1, kw * ci, ci};
  if (s.groups > 1) {
    filter.insert(filter.begin(), s.groups);
    strides.insert(strides.begin(), co * s.taps());
  }
  const auto pair = [](const std::array<int64_t, 2>& a) { return onednn::Dims{a[0], a[1]}; };
  return {.x = image(s.h, s.w, s.c),
          .w_own = onednn::strided(filter, dtype, strides),
          .w_any = onednn::any_layout(filter, dtype),
          .bias = onednn::strided({s.o}, dtype, {1}),
          .y = image(s.ho, s.wo, s.o),
          .geometry = {.stride = pair(s.window.stride),
                       .padding = pair(s.window.padding),
                       .dilation = pair(s.window.dilation)}};
}

enum class Kind : int64_t { forward, forward_bias, data_gradient, filter_gradient };

struct Prepared {
  Plan plan;
  Desc own;             // the filter as we store it
  onednn::Call unpack;  // of a filter gradient: from the layout of the plan to ours, if they differ
};

Prepared prepare(Kind kind, const Sizes& s, DType dtype) {
  const Layouts l = layouts_of(s, dtype);
  Prepared result{.own = l.w_own};
  switch (kind) {
    case Kind::forward:
    case Kind::forward_bias:
      result.plan = onednn::convolution(l.x, l.w_any, kind == Kind::forward ? Desc() : l.bias, l.y,
                                        l.geometry);
      break;
    case Kind::data_gradient:
      result.plan = onednn::convolution_data_gradient(l.y, l.w_any, l.x, l.geometry);
      break;
    case Kind::filter_gradient:
      result.plan = onednn::convolution_filter_gradient(l.x, l.y, l.w_any, l.geometry);
      if (result.plan.call.usable() && result.plan.weights != l.w_own) {
        result.unpack = onednn::reorder(result.plan.weights, l.w_own);
      }
      break;
  }
  return result;
}

Prepared& prepared(Kind kind, const Sizes& s, DType dtype) {
  thread_local onednn::PlanCache<Prepared> cache;
  const Window& w = s.window;
  const Key key{static_cast<int64_t>(kind) | static_cast<int64_t>(dtype) << 8 |
                    static_cast<int64_t>(omp_get_max_threads()) << 16,
                s.n,
                s.h,
                s.w,
                s.c,
                s.ho,
                s.wo,
                s.o,
                s.groups,
                w.kernel[0],
                w.kernel[1],
                w.stride[0],
                w.stride[1],
                w.padding[0],
                w.padding[1],
                w.dilation[0],
                w.dilation[1]};
  return cache.get(key, [&] { return prepare(kind, s, dtype); });
}

Kind kind_of(const prim::Convolution& p) {
  return p.bias.defined() ? Kind::forward_bias : Kind::forward;
}
Kind kind_of(const prim::ConvolutionDataGradient&) {
  return Kind::data_gradient;
}
Kind kind_of(const prim::ConvolutionFilterGradient&) {
  return Kind::filter_gradient;
}

void run_prepared(const prim::Convolution& p, Prepared& c, Allocator& allocator) {
  const onednn::PackedWeights w(p.w, c.own, c.plan.weights, allocator);
  if (p.bias.defined()) {
    c.plan.call.run(allocator, {p.x.raw_data(), w.data(), p.y.raw_data(), p.bias.raw_data()});
  } else {
    c.plan.call.run(allocator, {p.x.raw_data(), w.data(), p.y.raw_data()});
  }
}

void run_prepared(const prim::ConvolutionDataGradient& p, Prepared& c, Allocator& allocator) {
  const onednn::PackedWeights w(p.w, c.own, c.plan.weights, allocator);
  c.plan.call.run(allocator, {p.dy.raw_data(), w.data(), p.dx.raw_data()});
}

void run_prepared(const prim::ConvolutionFilterGradient& p, Prepared& c, Allocator& allocator) {
  if (c.plan.weights == c.own) {
    return c.plan.call.run(allocator, {p.x.raw_data(), p.dy.raw_data(), p.dw.raw_data()});
  }
  const Workspace packed(allocator, onednn::bytes_of(c.plan.weights));
  c.plan.call.run(allocator, {p.x.raw_data(), p.dy.raw_data(), packed.data()});
  c.unpack.run(allocator, {packed.data(), p.dw.raw_data()});
}

// ---- Unrolled images --------------------------------------------------------------------------

template <class T>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
// Rows are pixels, columns the channels of one group.
template <class T>
using Pixels = Eigen::Map<Matrix<T>, 0, Eigen::OuterStride<>>;

template <class T>
Pixels<T> pixels(const Tensor& images, int64_t image, int64_t group, int64_t groups) {
  const int64_t count = images.size(1) * images.size(2), c = images.size(3);
  return Pixels<T>(images.data<T>() + image * count * c + group * (c / groups), count, c / groups,
                   Eigen::OuterStride<>(c));
}

template <class T>
Eigen::Map<Matrix<T>> filter(const Tensor& w, const Sizes& s, int64_t group) {
  return {w.data<T>() + group * s.group_out() * s.taps(), s.group_out(), s.taps()};
}

// Calls visit(row of the unrolled matrix, tap, input pixel) for every tap; the pixel is negative
// where the tap lies in the padding.
template <class F>
void for_each_tap(const Sizes& s, F&& visit) {
  const auto [kh, kw] = s.window.kernel;
  for (int64_t i = 0; i < s.ho; ++i) {
    for (int64_t j = 0; j < s.wo; ++j) {
      for (int64_t a = 0; a < kh; ++a) {
        const int64_t y = i * s.window.stride[0] + a * s.window.dilation[0] - s.window.padding[0];
        for (int64_t b = 0; b < kw; ++b) {
          const int64_t x = j * s.window.stride[1] + b * s.window.dilation[1] - s.window.padding[1];
          const bool inside = y >= 0 && y < s.h && x >= 0 && x < s.w;
          visit(i * s.wo + j, a * kw + b, inside ? y * s.w + x : -1);
        }
      }
    }
  }
}

template <class T>
void unroll(const Sizes& s, const Pixels<T>& x, T* columns) {
  const int64_t c = s.group_in(), taps = s.taps();
  for_each_tap(s, [&](int64_t row, int64_t tap, int64_t pixel) {
    T* const to = columns + row * taps + tap * c;
    if (pixel < 0) {
      std::fill_n(to, c, T(0));
    } else {
      std::copy_n(x.row(pixel).data(), c, to);
    }
  });
}

// The unrolled matrix of one image, one a thread.
template <class T>
class Columns {
 public:
  Columns(const Sizes& s, Allocator& allocator, int threads)
      : count_(s.ho * s.wo * s.taps()),
        block_(allocator, static_cast<int64_t>(sizeof(T)) * count_ * threads) {}
  T* of_thread(int thread) const { return static_cast<T*>(block_.data()) + thread * count_; }

 private:
  int64_t count_;
  Workspace block_;
};

template <class T>
void run_unrolled(const prim::Convolution& p, Allocator& allocator) {
  const Sizes s = sizes_of(p);
  const Columns<T> columns(s, allocator, omp_get_max_threads());
#pragma omp parallel for
  for (int64_t image = 0; image < s.n; ++image) {
    T* unrolled = columns.of_thread(omp_get_thread_num());
    for (int64_t g = 0; g < s.groups; ++g) {
      unroll(s, pixels<T>(p.x, image, g, s.groups), unrolled);
      Pixels<T> y = pixels<T>(p.y, image, g, s.groups);
      y.noalias() =
          Eigen::Map<Matrix<T>>(unrolled, s.ho * s.wo, s.taps()) * filter<T>(p.w, s, g).transpose();
      if (p.bias.defined()) {
        y.rowwise() += Eigen::Map<const Eigen::Matrix<T, 1, Eigen::Dynamic>>(
            p.bias.data<T>() + g * s.group_out(), s.group_out());
      }
    }
  }
}

template <class T>
void run_unrolled(const prim::ConvolutionDataGradient& p, Allocator& allocator) {
  const Sizes s = sizes_of(p);
  const Columns<T> columns(s, allocator, omp_get_max_threads());
#pragma omp parallel for
  for (int64_t image = 0; image < s.n; ++image) {
    T* unrolled = columns.of_thread(omp_get_thread_num());
    for (int64_t g = 0; g < s.groups; ++g) {
      Eigen::Map<Matrix<T>>(unrolled, s.ho * s.wo, s.taps()).noalias() =
          pixels<T>(p.dy, image, g, s.groups) * filter<T>(p.w, s, g);
      Pixels<T> dx = pixels<T>(p.dx, image, g, s.groups);
      dx.setZero();
      const int64_t c = s.group_in();
      for_each_tap(s, [&](int64_t row, int64_t tap, int64_t pixel) {
        if (pixel < 0) return;
        const T* from = unrolled + row * s.taps() + tap * c;
        T* to = dx.row(pixel).data();
        for (int64_t i = 0; i < c; ++i) to[i] += from[i];
      });
    }
  }
}

// Images in order, so that the sum does not depend on the number of threads.
template <class T>
void run_unrolled(const prim::ConvolutionFilterGradient& p, Allocator& allocator) {
  const Sizes s = sizes_of(p);
  const Columns<T> columns(s, allocator, 1);
  std::memset(p.dw.raw_data(), 0, p.dw.nbytes());
  for (int64_t image = 0; image < s.n; ++image) {
    for (int64_t g = 0; g < s.groups; ++g) {
      unroll(s, pixels<T>(p.x, image, g, s.groups), columns.of_thread(0));
      filter<T>(p.dw, s, g).noalias() +=
          pixels<T>(p.dy, image, g, s.groups).transpose() *
          Eigen::Map<Matrix<T>>(columns.of_thread(0), s.ho * s.wo, s.taps());
    }
  }
}

// ---- One product ------------------------------------------------------------------------------

// On maps of few pixels oneDNN's filter gradient reaches half of the peak (4 x 4, 512 channels:
// 78 ms) where one product over the pixels of all images reaches nine tenths (48 + 6 ms to unroll
// them).  A pointwise filter needs no unrolling, which pays up to larger maps.
bool is_one_product(const Sizes& s, DType dtype) {
  constexpr int64_t few_pixels = 16, few_pointwise_pixels = 64;
  constexpr int64_t most_bytes = 64 << 20;  // of unrolled images
  if (dtype != DType::f32 || s.groups != 1 || s.c < 64 || s.o < 64) return false;
  if (s.is_pointwise()) return s.ho * s.wo <= few_pointwise_pixels;
  return s.ho * s.wo <= few_pixels && s.n <= most_bytes / 4 / (s.ho * s.wo * s.taps());
}

// ---- Which of them ------------------------------------------------------------------------------

// Runs `p`, or returns false if only wider elements can.
template <class P>
bool run_as_stored(const P& p, Allocator& allocator) {
  const DType dtype = p.output().dtype();
  if (dtype == DType::f64) return run_unrolled<double>(p, allocator), true;
  if (dtype == DType::f16) return false;
  Prepared& c = prepared(kind_of(p), sizes_of(p), dtype);
  if (c.plan.call.usable()) return run_prepared(p, c, allocator), true;
  if (dtype == DType::f32) return run_unrolled<float>(p, allocator), true;
  return false;
}

template <class P>
std::string implementation(const P& p) {
  if (p.output().dtype() == DType::f64 || p.output().dtype() == DType::f16) return "unrolled";
  const Prepared& c = prepared(kind_of(p), sizes_of(p), p.output().dtype());
  return c.plan.call.usable() ? c.plan.call.implementation() : "unrolled";
}

}  // namespace

std::string implementation_of(const prim::Convolution& p) {
  return implementation(p);
}
std::string implementation_of(const prim::ConvolutionDataGradient& p) {
  return implementation(p);
}
std::string implementation_of(const prim::ConvolutionFilterGradient& p) {
  return is_one_product(sizes_of(p), p.dw.dtype()) ? "one product" : implementation(p);
}

// dw [O, taps] = dy^T [O, pixels] times the unrolled images [pixels, taps].
void CpuBackend::filter_gradient_by_product(const prim::ConvolutionFilterGradient& p) {
  const Sizes s = sizes_of(p);
  const int64_t pixels_of_image = s.ho * s.wo, rows = s.n * pixels_of_image, taps = s.taps();
  Tensor columns;
  if (s.is_pointwise()) {
    columns = p.x.as_strided({1, rows, taps}, {rows * taps, taps, 1});
  } else {
    const MemoryTagScope scope(MemoryTag::workspace);
    columns = Tensor::empty({1, rows, taps}, DType::f32, p.x.device());
#pragma omp parallel for
    for (int64_t image = 0; image < s.n; ++image) {
      unroll(s, pixels<float>(p.x, image, 0, 1),
             columns.data<float>() + image * pixels_of_image * taps);
    }
  }
  const Tensor dy = p.dy.as_strided({1, rows, s.o}, {rows * s.o, s.o, 1});
  const Tensor dw = p.dw.as_strided({1, s.o, taps}, {s.o * taps, taps, 1});
  kernel(prim::Matmul{.a = dy, .b = columns, .transpose_a = true, .y = dw});
}

void CpuBackend::kernel(const prim::Convolution& p) {
  if (p.y.numel() == 0) return;
  if (p.x.numel() == 0 || p.w.numel() == 0) {  // no taps: the bias alone
    std::memset(p.y.raw_data(), 0, p.y.nbytes());
    if (p.bias.defined()) {
      const Tensor rows = p.bias.as_strided(p.y.shape(), Strides{0, 0, 0, 1});
      kernel(prim::Copy{.x = rows, .y = p.y});
    }
    return;
  }
  if (run_as_stored(p, allocator_)) return;
  const Tensor x = widened(p.x), w = widened(p.w), bias = widened(p.bias), y = wide_output(p.y);
  kernel(prim::Convolution{
      .x = x, .w = w, .bias = bias, .window = p.window, .groups = p.groups, .y = y});
  kernel(prim::Copy{.x = y, .y = p.y});
}

void CpuBackend::kernel(const prim::ConvolutionDataGradient& p) {
  if (p.dx.numel() == 0) return;
  if (p.dy.numel() == 0 || p.w.numel() == 0) {
    std::memset(p.dx.raw_data(), 0, p.dx.nbytes());
    return;
  }
  if (run_as_stored(p, allocator_)) return;
  const Tensor dy = widened(p.dy), w = widened(p.w), dx = wide_output(p.dx);
  kernel(prim::ConvolutionDataGradient{
      .dy = dy, .w = w, .window = p.window, .groups = p.groups, .dx = dx});
  kernel(prim::Copy{.x = dx, .y = p.dx});
}

void CpuBackend::kernel(const prim::ConvolutionFilterGradient& p) {
  if (p.dw.numel() == 0) return;
  if (p.dy.numel() == 0 || p.x.numel() == 0) {
    std::memset(p.dw.raw_data(), 0, p.dw.nbytes());
    return;
  }
  if (is_one_product(sizes_of(p), p.dw.dtype())) return filter_gradient_by_product(p);
  if (run_as_stored(p, allocator_)) return;
  const Tensor x = widened(p.x), dy = widened(p.dy), dw = wide_output(p.dw);
  kernel(prim::ConvolutionFilterGradient{
      .x = x, .dy = dy, .window = p.window, .groups = p.groups, .dw = dw});
  kernel(prim::Copy{.x = dw, .y = p.dw});
}

}  // namespace crucible::cpu
