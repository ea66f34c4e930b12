#include "ops/loss.h"

#include <cmath>

#include "ops/view.h"
#include "tests/samples/op.h"
#include "tests/samples/primitive.h"

namespace crucible::testing {
namespace {

struct Case {
  const char* name;
  int64_t rows, classes;
  double smoothing = 0.0;
  int64_t ignored_every = 0;  // rows 0, k, 2k, ... are ignored
};
const Case cases[] = {{"Odd", 7, 33},
                      {"Smoothed", 9, 10, 0.1},
                      {"Ignored", 10, 5, 0.0, 3},
                      {"IgnoredSmoothed", 10, 5, 0.2, 2},
                      {"AllIgnored", 4, 5, 0.0, 1},
                      {"OneClass", 3, 1},
                      {"Wide", 3, 2049},
                      {"NoRows", 0, 4},
                      {"ManyRows", 700, 3}};
constexpr int64_t ignore = -100;

Tensor labels(Maker& m, const Case& c) {
  std::vector<double> v = host_values(m.integers({c.rows}, 0, c.classes));
  std::vector<int64_t> l(v.begin(), v.end());
  for (int64_t i = 0; c.ignored_every && i < c.rows; i += c.ignored_every) l[i] = ignore;
  return m.labels(l);
}

void forward(Maker& m, const Case& c) {
  const DType stats = statistics_dtype(m.dtype());
  run(prim::CrossEntropy{.logits = m.normal({c.rows, c.classes}, 0.0, 3.0),
                         .labels = labels(m, c),
                         .ignore_index = ignore,
                         .smoothing = c.smoothing,
                         .lse = m.output_as(stats, "lse", {c.rows}),
                         .count = m.output_as(stats, "count", {}),
                         .loss = m.output_as(stats, "loss", {})});
}

void backward(Maker& m, const Case& c, bool in_place) {
  const DType stats = statistics_dtype(m.dtype());
  const Tensor logits = m.normal({c.rows, c.classes}, 0.0, 3.0);
  const std::vector<double> v = host_values(logits);
  std::vector<double> lse(c.rows);
  for (int64_t r = 0; r < c.rows; ++r) {
    for (int64_t i = 0; i < c.classes; ++i) lse[r] += std::exp(v[r * c.classes + i]);
    lse[r] = std::log(lse[r]);
  }
  run(prim::CrossEntropyBackward{.logits = logits,
                                 .labels = labels(m, c),
                                 .ignore_index = ignore,
                                 .smoothing = c.smoothing,
                                 .lse = m.values_as(stats, {c.rows}, lse),
                                 .scale = m.uniform_as(stats, {}, 0.5, 2.0),
                                 .dlogits = in_place ? m.changes("dlogits", logits)
                                                     : m.output("dlogits", {c.rows, c.classes})});
}

}  // namespace

template <>
std::vector<PrimitiveSample> Samples<prim::CrossEntropy>::all() {
  std::vector<PrimitiveSample> s;
  for (const Case& c : cases) s.push_back({c.name, [c](Maker& m) { forward(m, c); }});
  return s;
}

template <>
std::vector<PrimitiveSample> Samples<prim::CrossEntropyBackward>::all() {
  std::vector<PrimitiveSample> s;
  for (const Case& c : cases) s.push_back({c.name, [c](Maker& m) { backward(m, c, false); }});
  s.push_back({"InPlace", [](Maker& m) { backward(m, cases[2], true); }});
  return s;
}

template <>
std::vector<PrimitiveSample> Samples<prim::CountCorrect>::all() {
  std::vector<PrimitiveSample> s;
  for (const Case& c : cases) {
    s.push_back({c.name, [c](Maker& m) {
                   run(prim::CountCorrect{.logits = m.normal({c.rows, c.classes}),
                                          .labels = labels(m, c),
                                          .ignore_index = ignore,
                                          .correct = m.output_as(DType::i64, "correct", {})});
                 }});
  }
  s.push_back({"Ties", [](Maker& m) {  // the first of equal logits counts
                 run(prim::CountCorrect{.logits = m.values({3, 2}, {1, 1, 1, 1, 0, 2}),
                                        .labels = m.labels({0, 1, 1}),
                                        .ignore_index = ignore,
                                        .correct = m.output_as(DType::i64, "correct", {})});
               }});
  return s;
}

}  // namespace crucible::testing
