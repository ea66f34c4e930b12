#include "tests/reference/reference_backend.h"
#include "tests/reference/values.h"

namespace crucible::reference {
namespace {

struct Sizes {
  int64_t n, h, w, c;       // of the input
  int64_t out_h, out_w, o;  // of the output
  Window window;
  int64_t groups;
};

// Calls f(index of x, index of w, index of y) for every product that the convolution sums.
template <class F>
void for_each_product(const Sizes& s, F&& f) {
  const int64_t in_group = s.c / s.groups, out_group = s.o / s.groups;
  const auto [kernel, stride, padding, dilation] = s.window;
  for (int64_t n = 0; n < s.n; ++n)
    for (int64_t oh = 0; oh < s.out_h; ++oh)
      for (int64_t ow = 0; ow < s.out_w; ++ow)
        for (int64_t kh = 0; kh < kernel[0]; ++kh)
          for (int64_t kw = 0; kw < kernel[1]; ++kw) {
            const int64_t h = oh * stride[0] - padding[0] + kh * dilation[0];
            const int64_t w = ow * stride[1] - padding[1] + kw * dilation[1];
            if (h < 0 || h >= s.h || w < 0 || w >= s.w) continue;
            for (int64_t o = 0; o < s.o; ++o)
              for (int64_t c = 0; c < in_group; ++c) {
                const int64_t channel = o / out_group * in_group + c;
                f(((n * s.h + h) * s.w + w) * s.c + channel,
                  ((o * kernel[0] + kh) * kernel[1] + kw) * in_group + c,
                  ((n * s.out_h + oh) * s.out_w + ow) * s.o + o);
              }
          }
}

Sizes sizes_of(const Tensor& x, const Tensor& y, const Window& window, int64_t groups) {
  return {x.size(0), x.size(1), x.size(2), x.size(3), y.size(1),
          y.size(2), y.size(3), window,    groups};
}

void write_sums(const Tensor& y, const std::vector<Sum>& sums) {
  std::vector<Real> values;
  for (const Sum& s : sums) values.push_back(s.total());
  write(y, values);
}

}  // namespace

void ReferenceBackend::kernel(const prim::Convolution& p) {
  const std::vector<Real> x = read(p.x), w = read(p.w), bias = read(p.bias);
  std::vector<Sum> y(p.y.numel());
  for_each_product(sizes_of(p.x, p.y, p.window, p.groups),
                   [&](int64_t ix, int64_t iw, int64_t iy) { y[iy].add(x[ix] * w[iw]); });
  for (size_t i = 0; !bias.empty() && i < y.size(); ++i) y[i].add(bias[i % bias.size()]);
  write_sums(p.y, y);
}

void ReferenceBackend::kernel(const prim::ConvolutionDataGradient& p) {
  const std::vector<Real> dy = read(p.dy), w = read(p.w);
  std::vector<Sum> dx(p.dx.numel());
  for_each_product(sizes_of(p.dx, p.dy, p.window, p.groups),
                   [&](int64_t ix, int64_t iw, int64_t iy) { dx[ix].add(dy[iy] * w[iw]); });
  write_sums(p.dx, dx);
}

void ReferenceBackend::kernel(const prim::ConvolutionFilterGradient& p) {
  const std::vector<Real> x = read(p.x), dy = read(p.dy);
  std::vector<Sum> dw(p.dw.numel());
  for_each_product(sizes_of(p.x, p.dy, p.window, p.groups),
                   [&](int64_t ix, int64_t iw, int64_t iy) { dw[iw].add(x[ix] * dy[iy]); });
  write_sums(p.dw, dw);
}

}  // namespace crucible::reference
