#include <numbers>

#include "tests/reference/reference_backend.h"
#include "tests/reference/values.h"

namespace crucible::reference {
namespace {

uint32_t word(const RngState& rng, int64_t block, int64_t lane) {
  return Philox::block(rng.seed, rng.stream, rng.offset + static_cast<uint64_t>(block))[lane];
}

double uniform(uint32_t w) {
  return static_cast<double>(w >> 8) / (1 << 24);
}

}  // namespace

void ReferenceBackend::kernel(const prim::Dropout& p) {
  std::vector<Real> x = read(p.x);
  for (size_t i = 0; i < x.size(); ++i) {
    const double u = uniform(word(p.rng, i / 4, i % 4));
    x[i] = u >= p.p ? x[i] / Real(1.0 - p.p) : Real(0.0);
  }
  write(p.y, x);
}

void ReferenceBackend::kernel(const prim::Random& p) {
  std::vector<Real> y(p.y.numel());
  const Real a = p.a, b = p.b;
  for (size_t i = 0; i < y.size(); ++i) {
    if (p.kind == prim::Random::Kind::uniform) {
      const Real u = uniform(word(p.rng, i / 4, i % 4));
      Sum sum;  // a + (b - a) u
      sum.add(a);
      sum.add((b - a) * u);
      y[i] = sum.total();
      continue;
    }
    const int64_t pair = i % 4 / 2 * 2;
    const Real u1 = uniform(word(p.rng, i / 4, pair)) + 0x1p-24;
    const Real angle = Real(2.0 * std::numbers::pi) * Real(uniform(word(p.rng, i / 4, pair + 1)));
    const Real radius = sqrt(Real(-2.0) * log(u1));
    y[i] = a + b * (radius * (i % 2 == 0 ? cos(angle) : sin(angle)));
  }
  write(p.y, y);
}

}  // namespace crucible::reference
