#include <cmath>
#include <limits>

#include "tests/reference/reference_backend.h"
#include "tests/reference/values.h"

namespace crucible::reference {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

Real largest(const std::vector<Real>& x) {
  double m = -infinity;
  for (const Real& v : x) {
    if (std::isnan(v.value)) return NAN;
    m = std::max(m, v.value);
  }
  return m;
}

Real reduce(ReduceOp op, const std::vector<Real>& x) {
  Sum sum;
  switch (op) {
    case ReduceOp::sum:
      for (const Real& v : x) sum.add(v);
      return sum.total();
    case ReduceOp::mean:
      for (const Real& v : x) sum.add(v);
      return x.empty() ? Real(NAN) : sum.total() / Real(static_cast<double>(x.size()));
    case ReduceOp::prod: {
      Real product = 1.0;
      for (const Real& v : x) product = product * v;
      return product;
    }
    case ReduceOp::max:
      return largest(x);
    case ReduceOp::min: {
      std::vector<Real> negated;
      for (const Real& v : x) negated.push_back(-v);
      return -largest(negated);
    }
    case ReduceOp::logsumexp: {
      const Real m = largest(x);
      if (std::isinf(m.value) || std::isnan(m.value)) return m;
      for (const Real& v : x) sum.add(exp(v - m));
      return m + log(sum.total());
    }
    case ReduceOp::norm:
      for (const Real& v : x) sum.add(v * v);
      return sqrt(sum.total());
  }
  __builtin_unreachable();
}

// Gradients of one reduced row.
std::vector<Real> reduce_backward(ReduceOp op, size_t n, const std::vector<Real>& x, Real y,
                                  Real dy) {
  std::vector<Real> dx(n);
  double ties = 0.0;
  for (const Real& v : x) ties += v.value == y.value;
  for (size_t k = 0; k < n; ++k) {
    switch (op) {
      case ReduceOp::sum:
        dx[k] = dy;
        break;
      case ReduceOp::mean:
        dx[k] = dy / Real(static_cast<double>(n));
        break;
      case ReduceOp::prod: {
        Real others = 1.0;
        for (size_t j = 0; j < n; ++j) {
          if (j != k) others = others * x[j];
        }
        dx[k] = dy * others;
        break;
      }
      case ReduceOp::max:
      case ReduceOp::min:
        dx[k] = x[k].value == y.value ? dy / Real(ties) : Real(0.0);
        break;
      case ReduceOp::logsumexp:
        dx[k] = y.value == -infinity ? Real(0.0) : dy * exp(x[k] - y);
        break;
      case ReduceOp::norm:
        dx[k] = y.value == 0.0 ? Real(0.0) : dy * x[k] / y;
        break;
    }
  }
  return dx;
}

// The n elements of `x` [outer, n, inner] at (o, *, i).
std::vector<Real> row(const std::vector<Real>& x, int64_t n, int64_t inner, int64_t o, int64_t i) {
  std::vector<Real> result;
  if (x.empty()) return result;
  for (int64_t k = 0; k < n; ++k) result.push_back(x[(o * n + k) * inner + i]);
  return result;
}

}  // namespace

void ReferenceBackend::kernel(const prim::Reduce& p) {
  const int64_t outer = p.x.size(0), n = p.x.size(1), inner = p.x.size(2);
  const std::vector<Real> x = read(p.x);
  std::vector<Real> y;
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) y.push_back(reduce(p.op, row(x, n, inner, o, i)));
  }
  write(p.y, y);
}

void ReferenceBackend::kernel(const prim::ReduceBackward& p) {
  const int64_t outer = p.dx.size(0), n = p.dx.size(1), inner = p.dx.size(2);
  const std::vector<Real> x = read(p.x), y = read(p.y), dy = read(p.dy);
  std::vector<Real> dx(outer * n * inner);
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) {
      const int64_t at = o * inner + i;
      const std::vector<Real> d =
          reduce_backward(p.op, n, row(x, n, inner, o, i), y.empty() ? Real(NAN) : y[at], dy[at]);
      for (int64_t k = 0; k < n; ++k) dx[(o * n + k) * inner + i] = d[k];
    }
  }
  write(p.dx, dx);
}

void ReferenceBackend::kernel(const prim::ArgMax& p) {
  const int64_t outer = p.x.size(0), n = p.x.size(1), inner = p.x.size(2);
  const std::vector<Real> x = read(p.x);
  std::vector<int64_t> y;
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) {
      const std::vector<Real> values = row(x, n, inner, o, i);
      int64_t best = 0;
      for (int64_t k = 1; k < n && !std::isnan(values[best].value); ++k) {
        if (values[k].value > values[best].value || std::isnan(values[k].value)) best = k;
      }
      y.push_back(best);
    }
  }
  write_integers(p.y, y);
}

void ReferenceBackend::kernel(const prim::SumSquares& p) {
  Sum sum;
  for (const Real& v : read(p.x)) sum.add(v * v);
  write(p.y, std::vector<Real>{sum.total()});
}

}  // namespace crucible::reference
