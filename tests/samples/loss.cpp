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

void add_loss_samples(OpSamples& s) {
  struct Sample {
    const char* name;
    Shape logits;
    std::vector<int64_t> labels;
    CrossEntropyOptions options = {};
    Layout layout = Layout::dense;
  };
  const Sample samples[] = {
      {"Odd", {3, 5}, {4, 0, 2}},
      {"Sum", {3, 5}, {4, 0, 2}, {.reduction = Reduction::sum}},
      {"Smoothed", {2, 4}, {1, 3}, {.label_smoothing = 0.2}},
      {"SomeIgnored", {4, 5}, {2, -100, -100, 1}},
      {"IgnoreOther", {3, 4}, {1, 0, 1}, {.ignore_index = 0, .label_smoothing = 0.1}},
      {"OneClass", {2, 1}, {0, 0}},
      {"OneRow", {4}, {2}},
      {"ThreeAxes", {2, 2, 3}, {0, 1, 2, -100}},
      {"Flipped", {3, 4}, {0, 3, 1}, {}, Layout::flipped},
      {"NoRows", {0, 3}, {}},
  };
  for (const Sample& c : samples) {
    s.differentiable.push_back(
        {"cross_entropy", c.name,
         [c](Maker& m) { return std::vector<Tensor>{m.normal(c.logits, c.layout)}; },
         [c](const std::vector<Tensor>& t, Maker& m) {
           return cross_entropy(
               t[0], reshape(m.labels(c.labels), c.logits.without(c.logits.rank() - 1)), c.options);
         }});
  }
  s.differentiable.push_back({"cross_entropy",
                              "AllIgnored",
                              [](Maker& m) {
                                return std::vector<Tensor>{m.normal({2, 3})};
                              },
                              [](const std::vector<Tensor>& t, Maker& m) {
                                return cross_entropy(t[0], m.labels({-100, -100}));
                              },
                              {{{0, 0, 0, 0, 0, 0}}}});
  auto refuse = [&](const char* op, const char* name, Shape logits, std::vector<int64_t> labels,
                    CrossEntropyOptions options, std::string text) {
    s.errors.push_back(
        {op, name, [=](Maker& m) { cross_entropy(m.normal(logits), m.labels(labels), options); },
         std::move(text)});
  };
  refuse("cross_entropy", "LabelTooLarge", {4, 5}, {0, 1, 5, 2}, {},
         "cross_entropy: label 5 at row 2 is outside [0, 5); check the class count or set "
         "ignore_index.");
  refuse("cross_entropy", "LabelNegative", {4, 5}, {0, -4, 1, 2}, {},
         "cross_entropy: label -4 at row 1 is outside [0, 5)");
  refuse("cross_entropy", "LabelShape", {4, 5}, {0, 1}, {},
         "cross_entropy: logits are [4, 5], labels [2]");
  refuse("cross_entropy", "Smoothing", {1, 5}, {0}, {.label_smoothing = 1.5},
         "cross_entropy: label_smoothing 1.5 is outside [0, 1]");
  refuse("cross_entropy", "NoClasses", {1, 0}, {0}, {},
         "cross_entropy: logits [1, 0] have no classes");
  s.errors.push_back({"cross_entropy", "LabelDtype",
                      [](Maker& m) {
                        cross_entropy(m.normal({2, 3}), m.normal({2}));
                      },
                      "cross_entropy: labels hold f64; they must be i64"});

  auto count = [&](const char* name, Shape shape, std::vector<double> logits,
                   std::vector<int64_t> labels, double expected) {
    s.no_gradient.push_back({"count_correct",
                             name,
                             [=](Maker& m) {
                               Tensor t = m.values(shape, logits);
                               t.set_requires_grad();
                               return count_correct(t, m.labels(labels));
                             },
                             {expected}});
  };
  count("AllRight", {2, 2}, {1, 2, 2, 1}, {1, 0}, 2);
  count("HalfRight", {2, 2}, {1, 2, 2, 1}, {1, 1}, 1);
  count("Ignored", {3, 2}, {1, 2, 2, 1, 0, 1}, {1, -100, 1}, 2);
  count("FirstOfTies", {2, 3}, {5, 5, 5, 5, 5, 5}, {0, 1}, 1);
  count("NoRows", {0, 3}, {}, {}, 0);
  count("OneClass", {2, 1}, {3, 4}, {0, 0}, 2);
  s.errors.push_back({"count_correct", "LabelShape",
                      [](Maker& m) {
                        count_correct(m.normal({4, 5}), m.labels({1}));
                      },
                      "count_correct: logits are [4, 5], labels [1]"});
}

}  // namespace crucible::testing
