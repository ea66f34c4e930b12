#include "ops/attention.h"

#include <cmath>

#include "ops/view.h"
#include "tests/samples/op.h"
#include "tests/samples/primitive.h"

namespace crucible::testing {
namespace {

enum class Mask : uint8_t { none, random, broadcast, hides_first_row };

struct Case {
  const char* name;
  int64_t b, t, s, h, d;
  bool causal = false;
  Mask mask = Mask::none;
  bool packed = false;  // q, k and v are parts of one [B, T, 3 H D] tensor
};
const Case cases[] = {
    {"Plain", 2, 5, 5, 3, 4},
    {"Causal", 2, 9, 9, 2, 8, true},
    {"CausalWide", 1, 70, 70, 2, 16, true},
    {"CausalLonger", 1, 3, 7, 2, 4, true},
    {"CausalShorter", 1, 7, 3, 2, 4, true},
    {"Cross", 1, 4, 130, 1, 5},
    {"Masked", 2, 6, 7, 2, 4, false, Mask::random},
    {"MaskBroadcast", 2, 6, 6, 3, 4, true, Mask::broadcast},
    {"HiddenRow", 1, 5, 5, 2, 4, false, Mask::hides_first_row},
    {"Packed", 2, 33, 33, 2, 8, true, Mask::none, true},
    {"OneElement", 1, 1, 1, 1, 1},
    {"NoColumns", 1, 3, 0, 2, 4},
};

struct Arguments {
  Tensor q, k, v, mask;
  double scale;
};

Arguments arguments(Maker& m, const Case& c) {
  Arguments a;
  if (c.packed) {
    const int64_t width = c.h * c.d;
    const Tensor qkv = m.normal({c.b, c.t, 3 * width});
    for (int i = 0; i < 3; ++i) {
      (i == 0   ? a.q
       : i == 1 ? a.k
                : a.v) =
          qkv.as_strided({c.b, c.t, c.h, c.d}, {c.t * 3 * width, 3 * width, c.d, 1}, i * width);
    }
  } else {
    a.q = m.normal({c.b, c.t, c.h, c.d});
    a.k = m.normal({c.b, c.s, c.h, c.d});
    a.v = m.normal({c.b, c.s, c.h, c.d});
  }
  if (c.mask == Mask::random) a.mask = m.booleans({c.b, c.h, c.t, c.s});
  if (c.mask == Mask::broadcast) {
    a.mask = m.booleans({c.t, c.s}).as_strided({c.b, c.h, c.t, c.s}, {0, 0, c.s, 1});
  }
  if (c.mask == Mask::hides_first_row) {
    std::vector<double> rows(c.t * c.s, 1.0);
    std::fill_n(rows.begin(), c.s, 0.0);
    a.mask = m.values_as(DType::boolean, {c.t, c.s}, rows)
                 .as_strided({c.b, c.h, c.t, c.s}, {0, 0, c.s, 1});
  }
  a.scale = 1.0 / std::sqrt(static_cast<double>(c.d));
  return a;
}

void forward(Maker& m, const Case& c) {
  const Arguments a = arguments(m, c);
  const Tensor& lse = m.output_as(statistics_dtype(m.dtype()), "lse", {c.b, c.h, c.t});
  run(prim::Attention{.q = a.q,
                      .k = a.k,
                      .v = a.v,
                      .mask = a.mask,
                      .causal = c.causal,
                      .scale = a.scale,
                      .lse = lse,
                      .o = m.output("o", {c.b, c.t, c.h, c.d})});
}

// o and lse as a backend would have stored them: computed here in double and rounded once.
void backward(Maker& m, const Case& c) {
  const Arguments a = arguments(m, c);
  const std::vector<double> q = host_values(a.q), k = host_values(a.k), v = host_values(a.v);
  const std::vector<double> mask = a.mask.defined() ? host_values(a.mask) : std::vector<double>();
  std::vector<double> o(c.b * c.t * c.h * c.d), lse(c.b * c.h * c.t);
  for (int64_t b = 0; b < c.b; ++b) {
    for (int64_t h = 0; h < c.h; ++h) {
      for (int64_t t = 0; t < c.t; ++t) {
        std::vector<double> weight(c.s);
        double sum = 0.0;
        const double* row = &q[((b * c.t + t) * c.h + h) * c.d];
        for (int64_t s = 0; s < c.s; ++s) {
          if (c.causal && s > t + c.s - c.t) continue;
          if (!mask.empty() && mask[((b * c.h + h) * c.t + t) * c.s + s] == 0.0) continue;
          double dot = 0.0;
          for (int64_t d = 0; d < c.d; ++d) dot += row[d] * k[((b * c.s + s) * c.h + h) * c.d + d];
          weight[s] = std::exp(a.scale * dot);
          sum += weight[s];
        }
        lse[(b * c.h + h) * c.t + t] = std::log(sum);
        for (int64_t s = 0; s < c.s && sum > 0.0; ++s) {
          for (int64_t d = 0; d < c.d; ++d) {
            o[((b * c.t + t) * c.h + h) * c.d + d] +=
                weight[s] / sum * v[((b * c.s + s) * c.h + h) * c.d + d];
          }
        }
      }
    }
  }
  const Shape rows{c.b, c.t, c.h, c.d}, columns{c.b, c.s, c.h, c.d};
  const Tensor saved_o = m.values(rows, o);
  const Tensor saved_lse = m.values_as(statistics_dtype(m.dtype()), {c.b, c.h, c.t}, lse);
  const Tensor& dq = m.output("dq", rows);
  const Tensor& dk = m.output("dk", columns);
  run(prim::AttentionBackward{.q = a.q,
                              .k = a.k,
                              .v = a.v,
                              .mask = a.mask,
                              .causal = c.causal,
                              .scale = a.scale,
                              .o = saved_o,
                              .lse = saved_lse,
                              .doutput = m.normal(rows),
                              .dq = dq,
                              .dk = dk,
                              .dv = m.output("dv", columns)});
}

}  // namespace

template <>
std::vector<PrimitiveSample> Samples<prim::Attention>::all() {
  std::vector<PrimitiveSample> s;
  for (const Case& c : cases) s.push_back({c.name, [c](Maker& m) { forward(m, c); }});
  return s;
}

template <>
std::vector<PrimitiveSample> Samples<prim::AttentionBackward>::all() {
  std::vector<PrimitiveSample> s;
  for (const Case& c : cases) s.push_back({c.name, [c](Maker& m) { backward(m, c); }});
  s.push_back({"NoRows", [](Maker& m) { backward(m, {"", 1, 0, 3, 2, 4}); }});
  return s;
}

void add_attention_samples(OpSamples& s) {
  struct Sample {
    const char* name;
    Shape q, k;
    AttentionOptions options = {};
    Mask mask = Mask::none;
    Layout layout = Layout::dense;
  };
  const Sample samples[] = {
      {"Plain", {1, 2, 2, 2}, {1, 2, 2, 2}},
      {"Causal", {1, 3, 1, 2}, {1, 3, 1, 2}, {.causal = true}},
      {"CausalLonger", {1, 2, 1, 2}, {1, 4, 1, 2}, {.causal = true}},
      {"CausalShorter", {1, 3, 1, 2}, {1, 2, 1, 2}, {.causal = true}},
      {"Scale", {2, 2, 1, 2}, {2, 2, 1, 2}, {.scale = 0.3}},
      {"Masked", {1, 2, 2, 2}, {1, 3, 2, 2}, {}, Mask::random},
      {"HiddenRow", {1, 3, 1, 2}, {1, 3, 1, 2}, {}, Mask::hides_first_row},
      {"Flipped", {1, 2, 2, 2}, {1, 2, 2, 2}, {}, Mask::none, Layout::flipped},
      {"NoColumns", {1, 2, 1, 2}, {1, 0, 1, 2}},
      {"NoRows", {1, 0, 1, 2}, {1, 2, 1, 2}},
      {"OneElement", {1, 1, 1, 1}, {1, 1, 1, 1}},
  };
  auto make_mask = [](Maker& m, Mask kind, int64_t rows, int64_t columns) -> Tensor {
    if (kind == Mask::none) return {};
    if (kind == Mask::random) return m.booleans({rows, columns});
    std::vector<double> visible(rows * columns, 1.0);
    std::fill_n(visible.begin(), columns, 0.0);
    return m.values_as(DType::boolean, {rows, columns}, visible);
  };
  for (const Sample& c : samples) {
    s.differentiable.push_back({"attention", c.name,
                                [c](Maker& m) {
                                  return std::vector<Tensor>{m.normal(c.q, c.layout),
                                                             m.normal(c.k, c.layout),
                                                             m.normal(c.k, c.layout)};
                                },
                                [c, make_mask](const std::vector<Tensor>& t, Maker& m) {
                                  AttentionOptions options = c.options;
                                  options.mask = make_mask(m, c.mask, c.q[1], c.k[1]);
                                  return attention(t[0], t[1], t[2], options);
                                }});
  }
  struct Packed {
    const char* name;
    Shape qkv;
    int64_t heads;
    bool causal = false;
    Mask mask = Mask::none;
    Layout layout = Layout::dense;
  };
  for (const Packed& c : {Packed{"OneHead", {1, 3, 6}, 1}, Packed{"TwoHeads", {1, 2, 12}, 2, true},
                          Packed{"TwoBatches", {2, 2, 6}, 2, true},
                          Packed{"Masked", {1, 3, 6}, 1, false, Mask::hides_first_row},
                          Packed{"Flipped", {1, 2, 6}, 1, false, Mask::none, Layout::flipped},
                          Packed{"NoRows", {1, 0, 6}, 1}, Packed{"OneRow", {1, 1, 3}, 1, true}}) {
    s.differentiable.push_back(
        {"attention_packed", c.name,
         [c](Maker& m) { return std::vector<Tensor>{m.normal(c.qkv, c.layout)}; },
         [c, make_mask](const std::vector<Tensor>& t, Maker& m) {
           return attention_packed(
               t[0], c.heads,
               {.causal = c.causal, .mask = make_mask(m, c.mask, c.qkv[1], c.qkv[1])});
         }});
  }
  auto refuse = [&](const char* name, Shape q, Shape k, Shape v, const char* text) {
    s.errors.push_back({"attention", name,
                        [=](Maker& m) { attention(m.normal(q), m.normal(k), m.normal(v)); }, text});
  };
  refuse("Heads", {1, 2, 2, 4}, {1, 2, 3, 4}, {1, 2, 3, 4},
         "attention: q is [1, 2, 2, 4], k [1, 2, 3, 4]");
  refuse("Values", {1, 2, 2, 4}, {1, 2, 2, 4}, {1, 3, 2, 4}, "v [1, 3, 2, 4]");
  refuse("Rank", {2, 2, 4}, {2, 2, 4}, {2, 2, 4},
         "attention: f64 [2, 2, 4] given; q, k and v must be floating [B, T, H, D]");
  s.errors.push_back({"attention", "MaskShape",
                      [](Maker& m) {
                        const Tensor q = m.normal({1, 2, 1, 2});
                        attention(q, q, q, {.mask = m.booleans({3, 2})});
                      },
                      "attention: shapes do not broadcast: [3, 2] and [1, 1, 2, 2]"});
  s.errors.push_back({"attention", "MaskDtype",
                      [](Maker& m) {
                        const Tensor q = m.normal({1, 2, 1, 2});
                        attention(q, q, q, {.mask = m.normal({2, 2})});
                      },
                      "attention: the mask holds f64; it must be bool"});
  s.errors.push_back({"attention_packed", "Heads",
                      [](Maker& m) {
                        attention_packed(m.normal({1, 2, 9}), 2);
                      },
                      "attention_packed: qkv is [1, 2, 9] for 2 heads"});
}

}  // namespace crucible::testing
