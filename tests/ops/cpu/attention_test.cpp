#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "core/backend.h"
#include "tests/ops/cpu/levels.h"
#include "tests/ops/cpu/naive.h"

namespace crucible {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

struct Case {
  int64_t b, t, s, h, d;
  bool causal = false, packed = false, masked = false;
};

// q, k, v (or their gradients) as one packed [B, T, 3, H, D] tensor or three of their own.
struct Operands {
  Tensor q, k, v;
};
Operands operands(const Case& c, DType dtype) {
  if (!c.packed) {
    return {Tensor::empty({c.b, c.t, c.h, c.d}, dtype), Tensor::empty({c.b, c.s, c.h, c.d}, dtype),
            Tensor::empty({c.b, c.s, c.h, c.d}, dtype)};
  }
  const int64_t width = c.h * c.d;
  const Tensor all = Tensor::empty({c.b, c.t, 3 * width}, dtype);
  const auto part = [&](int64_t i) {
    return all.as_strided({c.b, c.t, c.h, c.d}, {c.t * 3 * width, 3 * width, c.d, 1}, i * width);
  };
  return {part(0), part(1), part(2)};
}

// Reads or writes x [B, T, H, D] with any strides, as doubles in row-major order.
template <class F>
void each(const Tensor& x, F&& visit) {
  visit_dtype(x.dtype(), Floats{}, [&]<class T>() {
    int64_t i = 0;
    for (int64_t b = 0; b < x.size(0); ++b)
      for (int64_t t = 0; t < x.size(1); ++t)
        for (int64_t h = 0; h < x.size(2); ++h)
          for (int64_t e = 0; e < x.size(3); ++e)
            visit(x.data<T>()[b * x.stride(0) + t * x.stride(1) + h * x.stride(2) + e], i++);
  });
}
std::vector<double> filled(const Tensor& x, uint64_t seed) {
  auto v = naive::values(x.numel(), seed);
  each(x, [&]<class T>(T& to, int64_t i) {
    if constexpr (sizeof(T) == 2) {
      v[i] = static_cast<float>(to = T(static_cast<float>(2 * v[i])));
    } else {
      v[i] = to = static_cast<T>(2 * v[i]);
    }
  });
  return v;
}
std::vector<double> contents(const Tensor& x) {
  std::vector<double> v(x.numel());
  each(x, [&](auto& from, int64_t i) {
    v[i] = static_cast<Accumulator<std::decay_t<decltype(from)>>>(from);
  });
  return v;
}

// Absolute bound: operands are below 2, so that scores err by about d u; exp, three products and
// the sums behind them multiply that by the length of their sums.
::testing::AssertionResult near(const std::vector<double>& actual,
                                const std::vector<double>& expected, double size, double bound) {
  for (size_t i = 0; i < actual.size(); ++i) {
    if (actual[i] == expected[i]) continue;  // infinities
    if (!(std::abs(actual[i] - expected[i]) <= bound * size)) {
      return ::testing::AssertionFailure() << "element " << i << " of " << actual.size() << " is "
                                           << actual[i] << ", expected " << expected[i];
    }
  }
  return ::testing::AssertionSuccess();
}

void expect_agreement(const Case& c, DType dtype) {
  SCOPED_TRACE(::testing::Message() << name_of(dtype) << " b " << c.b << " t " << c.t << " s "
                                    << c.s << " h " << c.h << " d " << c.d << " causal " << c.causal
                                    << " packed " << c.packed << " masked " << c.masked);
  const Operands x = operands(c, dtype), dx = operands(c, dtype);
  const auto q = filled(x.q, 1), k = filled(x.k, 2), v = filled(x.v, 3);
  const Tensor o = Tensor::empty({c.b, c.t, c.h, c.d}, dtype), dy = empty_like(o);
  const Tensor lse = Tensor::empty({c.b, c.h, c.t}, statistics_dtype(dtype));
  const auto dout = filled(dy, 4);
  Tensor mask;
  if (c.masked) {  // broadcast over heads; row 1 of each batch sees nothing
    mask = Tensor::empty({c.b, 1, c.t, c.s}, DType::boolean);
    const auto coin = naive::values(mask.numel(), 5);
    for (int64_t i = 0; i < mask.numel(); ++i)
      mask.data<bool>()[i] = coin[i] < 0.5 && i / c.s % c.t != 1;
    mask = mask.as_strided({c.b, c.h, c.t, c.s}, {c.t * c.s, 0, c.s, 1});
  }
  const double scale = 1 / std::sqrt(static_cast<double>(c.d));
  run(prim::Attention{.q = x.q,
                      .k = x.k,
                      .v = x.v,
                      .mask = mask,
                      .causal = c.causal,
                      .scale = scale,
                      .lse = lse,
                      .o = o});
  run(prim::AttentionBackward{.q = x.q,
                              .k = x.k,
                              .v = x.v,
                              .mask = mask,
                              .causal = c.causal,
                              .scale = scale,
                              .o = o,
                              .lse = lse,
                              .doutput = dy,
                              .dq = dx.q,
                              .dk = dx.k,
                              .dv = dx.v});

  std::vector<double> eo(q.size()), el(c.b * c.h * c.t), eq(q.size()), ek(k.size()), ev(v.size());
  for (int64_t b = 0; b < c.b; ++b) {
    for (int64_t h = 0; h < c.h; ++h) {
      const auto at = [&](int64_t length, int64_t row) {
        return ((b * length + row) * c.h + h) * c.d;
      };
      for (int64_t t = 0; t < c.t; ++t) {
        std::vector<double> p(c.s), g(c.s);
        double m = -infinity, sum = 0;
        for (int64_t s = 0; s < c.s; ++s) {
          const bool seen = (!c.causal || s <= t + c.s - c.t) &&
                            (!c.masked || mask.data<bool>()[(b * c.t + t) * c.s + s]);
          p[s] = seen ? 0 : -infinity;
          for (int64_t e = 0; seen && e < c.d; ++e)
            p[s] += scale * q[at(c.t, t) + e] * k[at(c.s, s) + e];
          m = std::max(m, p[s]);
        }
        el[(b * c.h + h) * c.t + t] = -infinity;
        if (m == -infinity) continue;
        for (double& e : p) sum += e = std::exp(e - m);
        el[(b * c.h + h) * c.t + t] = m + std::log(sum);
        double center = 0;
        for (int64_t s = 0; s < c.s; ++s) {
          p[s] /= sum;
          for (int64_t e = 0; e < c.d; ++e) {
            eo[at(c.t, t) + e] += p[s] * v[at(c.s, s) + e];
            ev[at(c.s, s) + e] += p[s] * dout[at(c.t, t) + e];
            g[s] += dout[at(c.t, t) + e] * v[at(c.s, s) + e];
          }
          center += p[s] * g[s];
        }
        for (int64_t s = 0; s < c.s; ++s) {
          const double ds = scale * p[s] * (g[s] - center);
          for (int64_t e = 0; e < c.d; ++e) {
            eq[at(c.t, t) + e] += ds * k[at(c.s, s) + e];
            ek[at(c.s, s) + e] += ds * q[at(c.t, t) + e];
          }
        }
      }
    }
  }
  // Forward errs by the score's error (d terms) and the sum over s; backward by one product more.
  const double u = naive::unit_roundoff(dtype == DType::f64 ? DType::f64 : DType::f32);
  const double stored = naive::unit_roundoff(dtype);
  const double forward = static_cast<double>(c.d + c.s + 8) * u + stored;
  const double backward = static_cast<double>(2 * c.d + c.s + c.t + 8) * u * 4 + stored;
  const double size = 4.0 * static_cast<double>(c.d);  // of dout v; its error scales what follows
  EXPECT_TRUE(near(contents(o), eo, 4, forward)) << "o";
  EXPECT_TRUE(near(naive::read(lse), el, 8, forward)) << "lse";
  const double rows = std::sqrt(static_cast<double>(c.t));
  // o was rounded to dtype; the row sum of do * o carries that into g.
  EXPECT_TRUE(near(contents(dx.v), ev, 4 * rows, backward)) << "dv";
  EXPECT_TRUE(near(contents(dx.q), eq, size, backward)) << "dq";
  EXPECT_TRUE(near(contents(dx.k), ek, size * rows, backward)) << "dk";
}

TEST(CpuAttention, AgreesWithLoopsInEveryDtypeAndLayout) {
  for (const cpu::Level level : cpu::levels_here()) {
    const cpu::LevelScope scope(level);
    for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
      for (const bool causal : {false, true}) {
        expect_agreement({2, 5, 5, 3, 4, causal, true}, dtype);
        expect_agreement({1, 70, 70, 2, 32, causal, true}, dtype);
        expect_agreement({1, 33, 150, 1, 20, causal, false}, dtype);
        expect_agreement({1, 150, 33, 2, 7, causal, false}, dtype);  // early rows see nothing
        expect_agreement({2, 40, 300, 2, 16, causal, false, true}, dtype);
        expect_agreement({1, 1, 1, 1, 1, causal, false}, dtype);
      }
    }
  }
}

TEST(CpuAttention, NothingToSeeGivesZeros) {
  const Case c{1, 3, 0, 2, 4};
  const Operands x = operands(c, DType::f32), dx = operands(c, DType::f32);
  filled(x.q, 1);
  const Tensor o = Tensor::empty({1, 3, 2, 4}, DType::f32), dy = empty_like(o),
               lse = Tensor::empty({1, 2, 3}, DType::f32);
  filled(dy, 2);
  run(prim::Attention{.q = x.q, .k = x.k, .v = x.v, .scale = 1, .lse = lse, .o = o});
  run(prim::AttentionBackward{.q = x.q,
                              .k = x.k,
                              .v = x.v,
                              .scale = 1,
                              .o = o,
                              .lse = lse,
                              .doutput = dy,
                              .dq = dx.q,
                              .dk = dx.k,
                              .dv = dx.v});
  for (const double y : contents(o)) EXPECT_EQ(y, 0);
  for (const double g : contents(dx.q)) EXPECT_EQ(g, 0);
  for (const double l : naive::read(lse)) EXPECT_EQ(l, -infinity);
}

TEST(CpuAttention, LaterTokensDoNotTouchEarlierRows) {
  const Case c{1, 100, 100, 1, 16, true};
  const Operands x = operands(c, DType::f32);
  filled(x.q, 1), filled(x.k, 2), filled(x.v, 3);
  const Tensor lse = Tensor::empty({1, 1, 100}, DType::f32), a = empty_like(x.q),
               b = empty_like(x.q);
  const auto forward = [&](const Tensor& o) {
    run(prim::Attention{
        .q = x.q, .k = x.k, .v = x.v, .causal = true, .scale = 0.25, .lse = lse, .o = o});
  };
  forward(a);
  for (int64_t i = 50 * 16; i < 100 * 16; ++i) x.k.data<float>()[i] = x.v.data<float>()[i] = 1e4f;
  forward(b);
  for (int64_t i = 0; i < 50 * 16; ++i) ASSERT_EQ(a.data<float>()[i], b.data<float>()[i]) << i;
}

TEST(CpuAttention, ANaNReachesItsRowOnly) {
  const Case c{1, 40, 40, 1, 8};
  const Operands x = operands(c, DType::f32);
  filled(x.q, 1), filled(x.k, 2), filled(x.v, 3);
  x.q.data<float>()[7 * 8] = std::numeric_limits<float>::quiet_NaN();
  const Tensor lse = Tensor::empty({1, 1, 40}, DType::f32), o = empty_like(x.q);
  run(prim::Attention{.q = x.q, .k = x.k, .v = x.v, .scale = 1, .lse = lse, .o = o});
  const auto got = contents(o);
  for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(std::isnan(got[i]), i / 8 == 7) << i;
}

}  // namespace
}  // namespace crucible
