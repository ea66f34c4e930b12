#include <cmath>

#include "tests/reference/reference_backend.h"
#include "tests/reference/values.h"

namespace crucible::reference {
namespace {

// Calls f(index of y, indices of x in its window in row-major order).
template <class F>
void for_each_window(const Tensor& x, const Tensor& y, const Window& window, F&& f) {
  const int64_t height = x.size(1), width = x.size(2), channels = x.size(3);
  for (int64_t i = 0; i < y.numel(); ++i) {
    const int64_t c = i % channels;
    const int64_t left = i / channels % y.size(2) * window.stride[1] - window.padding[1];
    const int64_t top = i / channels / y.size(2) % y.size(1) * window.stride[0] - window.padding[0];
    const int64_t n = i / channels / y.size(2) / y.size(1);
    std::vector<int64_t> pixels;
    for (int64_t h = std::max<int64_t>(top, 0); h < std::min(top + window.kernel[0], height); ++h) {
      for (int64_t w = std::max<int64_t>(left, 0); w < std::min(left + window.kernel[1], width);
           ++w) {
        pixels.push_back(((n * height + h) * width + w) * channels + c);
      }
    }
    f(i, pixels);
  }
}

// The first largest pixel; a NaN is larger than all.
int64_t winner(const std::vector<Real>& x, const std::vector<int64_t>& pixels) {
  int64_t best = pixels.front();
  for (const int64_t i : pixels) {
    if (std::isnan(x[best].value)) break;
    if (x[i].value > x[best].value || std::isnan(x[i].value)) best = i;
  }
  return best;
}

}  // namespace

void ReferenceBackend::kernel(const prim::Pool& p) {
  const std::vector<Real> x = read(p.x);
  std::vector<Real> y(p.y.numel());
  for_each_window(p.x, p.y, p.window, [&](int64_t i, const std::vector<int64_t>& pixels) {
    if (p.op == PoolOp::max) {
      y[i] = x[winner(x, pixels)];
      return;
    }
    Sum sum;
    for (const int64_t pixel : pixels) sum.add(x[pixel]);
    y[i] = sum.total() / Real(static_cast<double>(pixels.size()));
  });
  write(p.y, y);
}

void ReferenceBackend::kernel(const prim::PoolBackward& p) {
  const std::vector<Real> x = read(p.x), dy = read(p.dy);
  std::vector<Sum> dx(p.dx.numel());
  for_each_window(p.dx, p.dy, p.window, [&](int64_t i, const std::vector<int64_t>& pixels) {
    if (p.op == PoolOp::max) return dx[winner(x, pixels)].add(dy[i]);
    const Real share = dy[i] / Real(static_cast<double>(pixels.size()));
    for (const int64_t pixel : pixels) dx[pixel].add(share);
  });
  std::vector<Real> values;
  for (const Sum& s : dx) values.push_back(s.total());
  write(p.dx, values);
}

}  // namespace crucible::reference
