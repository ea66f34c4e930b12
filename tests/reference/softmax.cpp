#include <cmath>

#include "tests/reference/reference_backend.h"
#include "tests/reference/values.h"

namespace crucible::reference {

void ReferenceBackend::kernel(const prim::Softmax& p) {
  const int64_t rows = p.x.size(0), n = p.x.size(1);
  const std::vector<Real> x = read(p.x);
  std::vector<Real> y(rows * n);
  for (int64_t r = 0; r < rows; ++r) {
    const Real* in = &x[r * n];
    double m = -INFINITY;
    for (int64_t i = 0; i < n; ++i)
      m = in[i].value > m || std::isnan(in[i].value) ? in[i].value : m;
    bool nan = m == INFINITY;
    for (int64_t i = 0; i < n; ++i) nan |= std::isnan(in[i].value);
    Sum sum;
    for (int64_t i = 0; i < n; ++i) sum.add(exp(in[i] - Real(m)));
    // exp(x - m) / sum is the better formula; x - lse, a difference of numbers as large as lse, has
    // the larger error and bounds both.
    const Real lse = Real(m) + log(sum.total());
    for (int64_t i = 0; i < n; ++i) {
      const Real shifted = in[i] - lse;
      y[r * n + i] = nan              ? Real(NAN)
                     : m == -INFINITY ? Real(p.log ? -INFINITY : 0.0)
                     : p.log          ? shifted
                             : Real((exp(in[i] - Real(m)) / sum.total()).value, exp(shifted).error);
    }
  }
  write(p.y, y);
}

void ReferenceBackend::kernel(const prim::SoftmaxBackward& p) {
  const int64_t rows = p.y.size(0), n = p.y.size(1);
  const std::vector<Real> y = read(p.y), dy = read(p.dy);
  std::vector<Real> dx(rows * n);
  for (int64_t r = 0; r < rows; ++r) {
    Sum sum;
    for (int64_t i = r * n; i < (r + 1) * n; ++i) sum.add(p.log ? dy[i] : dy[i] * y[i]);
    bool hidden = p.log;  // log softmax of -inf only: no probability anywhere
    for (int64_t i = r * n; i < (r + 1) * n; ++i) hidden &= y[i].value == -INFINITY;
    for (int64_t i = r * n; i < (r + 1) * n; ++i) {
      dx[i] = hidden  ? Real(0.0)
              : p.log ? dy[i] - exp(y[i]) * sum.total()
                      : y[i] * (dy[i] - sum.total());
    }
  }
  write(p.dx, dx);
}

}  // namespace crucible::reference
