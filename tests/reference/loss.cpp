#include <cmath>

#include "core/check.h"
#include "tests/reference/reference_backend.h"
#include "tests/reference/values.h"

namespace crucible::reference {
namespace {

Real log_sum_exp(const Real* x, int64_t n) {
  double m = -INFINITY;
  for (int64_t i = 0; i < n; ++i) m = std::max(m, x[i].value);
  if (m == -INFINITY) return m;
  Sum sum;
  for (int64_t i = 0; i < n; ++i) sum.add(exp(x[i] - Real(m)));
  return Real(m) + log(sum.total());
}

}  // namespace

void ReferenceBackend::kernel(const prim::CrossEntropy& p) {
  const int64_t rows = p.logits.size(0), classes = p.logits.size(1);
  const std::vector<Real> logits = read(p.logits);
  const std::vector<int64_t> labels = read_integers(p.labels);
  std::vector<Real> lse(rows);
  Sum loss;
  double count = 0.0;
  for (int64_t r = 0; r < rows; ++r) {
    const Real* row = &logits[r * classes];
    lse[r] = log_sum_exp(row, classes);
    if (labels[r] == p.ignore_index) continue;
    check(labels[r] >= 0 && labels[r] < classes,
          "cross_entropy: label {} at row {} is outside [0, {}); check the class count or set "
          "ignore_index.",
          labels[r], r, classes);
    count += 1.0;
    loss.add(Real(1.0 - p.smoothing) * (lse[r] - row[labels[r]]));
    for (int64_t c = 0; p.smoothing > 0.0 && c < classes; ++c) {
      loss.add(Real(p.smoothing / static_cast<double>(classes)) * (lse[r] - row[c]));
    }
  }
  write(p.lse, lse);
  write(p.count, std::vector<Real>{count});
  write(p.loss, std::vector<Real>{loss.total()});
}

void ReferenceBackend::kernel(const prim::CrossEntropyBackward& p) {
  const int64_t rows = p.logits.size(0), classes = p.logits.size(1);
  const std::vector<Real> logits = read(p.logits), lse = read(p.lse);
  const std::vector<int64_t> labels = read_integers(p.labels);
  const Real scale = read_scalar(p.scale, 1.0);
  std::vector<Real> d(rows * classes);
  for (int64_t r = 0; r < rows; ++r) {
    if (labels[r] == p.ignore_index) continue;
    for (int64_t c = 0; c < classes; ++c) {
      const double q =
          p.smoothing / static_cast<double>(classes) + (c == labels[r] ? 1.0 - p.smoothing : 0.0);
      d[r * classes + c] = scale * (exp(logits[r * classes + c] - lse[r]) - Real(q));
    }
  }
  write(p.dlogits, d);
}

void ReferenceBackend::kernel(const prim::CountCorrect& p) {
  const int64_t rows = p.logits.size(0), classes = p.logits.size(1);
  const std::vector<Real> logits = read(p.logits);
  const std::vector<int64_t> labels = read_integers(p.labels);
  int64_t correct = 0;
  for (int64_t r = 0; r < rows; ++r) {
    int64_t best = 0;
    for (int64_t c = 1; c < classes; ++c) {
      if (logits[r * classes + c].value > logits[r * classes + best].value) best = c;
    }
    correct += labels[r] != p.ignore_index && labels[r] == best;
  }
  write_integers(p.correct, std::vector<int64_t>{correct});
}

}  // namespace crucible::reference
