#include <cmath>

#include "tests/reference/reference_backend.h"
#include "tests/reference/values.h"

namespace crucible::reference {
namespace {

struct Problem {
  int64_t batch, rows, columns, heads, depth;
  bool causal;
  double scale;
  std::vector<Real> q, k, v, mask;

  template <class P>
  explicit Problem(const P& p)
      : batch(p.q.size(0)),
        rows(p.q.size(1)),
        columns(p.k.size(1)),
        heads(p.q.size(2)),
        depth(p.q.size(3)),
        causal(p.causal),
        scale(p.scale),
        q(read(p.q)),
        k(read(p.k)),
        v(read(p.v)),
        mask(read(p.mask)) {}

  int64_t at_row(int64_t b, int64_t h, int64_t t) const {
    return ((b * rows + t) * heads + h) * depth;
  }
  int64_t at_column(int64_t b, int64_t h, int64_t s) const {
    return ((b * columns + s) * heads + h) * depth;
  }
  bool visible(int64_t b, int64_t h, int64_t t, int64_t s) const {
    if (causal && s > t + columns - rows) return false;
    return mask.empty() || mask[((b * heads + h) * rows + t) * columns + s].value != 0.0;
  }

  struct Row {
    Real lse = -INFINITY;
    std::vector<Real> p;  // probabilities; 0 where hidden
  };
  // One row of probabilities.
  Row row(int64_t b, int64_t h, int64_t t) const {
    std::vector<Real> scores(columns, -INFINITY);
    double m = -INFINITY;
    for (int64_t s = 0; s < columns; ++s) {
      if (!visible(b, h, t, s)) continue;
      Sum dot;
      for (int64_t d = 0; d < depth; ++d)
        dot.add(q[at_row(b, h, t) + d] * k[at_column(b, h, s) + d]);
      scores[s] = Real(scale) * dot.total();
      m = std::max(m, scores[s].value);
    }
    Row result;
    result.p.assign(columns, 0.0);
    if (m == -INFINITY) return result;
    Sum sum;
    for (const Real& score : scores)
      sum.add(score.value == -INFINITY ? Real(0.0) : exp(score - Real(m)));
    result.lse = Real(m) + log(sum.total());
    for (int64_t s = 0; s < columns; ++s) {
      if (scores[s].value != -INFINITY) result.p[s] = exp(scores[s] - result.lse);
    }
    return result;
  }
};

}  // namespace

void ReferenceBackend::kernel(const prim::Attention& p) {
  const Problem a(p);
  std::vector<Real> o(p.o.numel()), lse(p.lse.numel());
  for (int64_t b = 0; b < a.batch; ++b) {
    for (int64_t h = 0; h < a.heads; ++h) {
      for (int64_t t = 0; t < a.rows; ++t) {
        const Problem::Row row = a.row(b, h, t);
        lse[(b * a.heads + h) * a.rows + t] = row.lse;
        for (int64_t d = 0; d < a.depth; ++d) {
          Sum sum;
          for (int64_t s = 0; s < a.columns; ++s) sum.add(row.p[s] * a.v[a.at_column(b, h, s) + d]);
          o[a.at_row(b, h, t) + d] = sum.total();
        }
      }
    }
  }
  write(p.lse, lse);
  write(p.o, o);
}

// Probabilities are computed anew; the o and lse that are given only tell how far a backend that
// uses them, rounded as they are, may be off.
void ReferenceBackend::kernel(const prim::AttentionBackward& p) {
  const Problem a(p);
  const std::vector<Real> dout = read(p.doutput);
  std::vector<Sum> dq(p.dq.numel()), dk(p.dk.numel()), dv(p.dv.numel());
  for (int64_t b = 0; b < a.batch; ++b) {
    for (int64_t h = 0; h < a.heads; ++h) {
      for (int64_t t = 0; t < a.rows; ++t) {
        const Problem::Row row = a.row(b, h, t);
        const int64_t at = a.at_row(b, h, t);
        Sum delta;  // sum of do * o
        for (int64_t d = 0; d < a.depth; ++d) {
          Sum o;
          for (int64_t s = 0; s < a.columns; ++s) o.add(row.p[s] * a.v[a.at_column(b, h, s) + d]);
          delta.add(dout[at + d] * stored(o.total(), p.o.dtype()));
        }
        for (int64_t s = 0; s < a.columns; ++s) {
          if (!a.visible(b, h, t, s)) continue;
          const int64_t as = a.at_column(b, h, s);
          Sum dp;
          for (int64_t d = 0; d < a.depth; ++d) {
            dp.add(dout[at + d] * a.v[as + d]);
            dv[as + d].add(row.p[s] * dout[at + d]);
          }
          const Real ds = Real(a.scale) * row.p[s] * (dp.total() - delta.total());
          for (int64_t d = 0; d < a.depth; ++d) {
            dq[at + d].add(ds * a.k[as + d]);
            dk[as + d].add(ds * a.q[at + d]);
          }
        }
      }
    }
  }
  auto write_sums = [](const Tensor& y, const std::vector<Sum>& sums) {
    std::vector<Real> values;
    for (const Sum& s : sums) values.push_back(s.total());
    write(y, values);
  };
  write_sums(p.dq, dq);
  write_sums(p.dk, dk);
  write_sums(p.dv, dv);
}

}  // namespace crucible::reference
