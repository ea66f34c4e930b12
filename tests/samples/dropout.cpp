#include "ops/dropout.h"

#include <cmath>

#include "ops/view.h"
#include "tests/samples/op.h"
#include "tests/samples/primitive.h"

namespace crucible::testing {
namespace {

PrimitiveSample drop(const char* name, double p, int64_t n, RngState rng, bool in_place = false) {
  return {
      name, [=](Maker& m) {
        const Tensor x = m.normal({n});
        run(prim::Dropout{
            .p = p, .rng = rng, .x = x, .y = in_place ? m.changes("y", x) : m.output("y", {n})});
      }};
}

PrimitiveSample draw(const char* name, prim::Random::Kind kind, double a, double b, int64_t n,
                     RngState rng) {
  return {name, [=](Maker& m) {
            run(prim::Random{.kind = kind, .a = a, .b = b, .rng = rng, .y = m.output("y", {n})});
          }};
}

}  // namespace

template <>
std::vector<PrimitiveSample> Samples<prim::Dropout>::all() {
  return {drop("Half", 0.5, 1000, {1, 2, 3}),
          drop("Tenth", 0.1, 20011, {7, 0, 0}),
          drop("Nothing", 0.0, 33, {1, 1, 1}),
          drop("InPlace", 0.25, 130, {5, 5, 5}, true),
          drop("OneElement", 0.5, 1, {0, 0, 9}),
          drop("LargeState", 0.3, 67, {~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0} - 3}),
          drop("Most", 0.99, 515, {4, 4, 4})};
}

template <>
std::vector<PrimitiveSample> Samples<prim::Random>::all() {
  using Kind = prim::Random::Kind;
  return {draw("Uniform", Kind::uniform, 0.0, 1.0, 1003, {1, 2, 3}),
          draw("UniformRange", Kind::uniform, -2.5, 4.0, 20011, {9, 0, 0}),
          draw("UniformOne", Kind::uniform, 0.0, 1.0, 1, {3, 3, 3}),
          draw("Normal", Kind::normal, 0.0, 1.0, 1003, {1, 2, 3}),
          draw("NormalRange", Kind::normal, 3.0, 0.02, 20011, {9, 0, 0}),
          draw("NormalOne", Kind::normal, 0.0, 1.0, 1, {3, 3, 3}),
          draw("NormalLargeState", Kind::normal, 0.0, 2.0, 70, {~uint64_t{0}, 5, ~uint64_t{0} - 2}),
          draw("NormalNoDeviation", Kind::normal, 1.5, 0.0, 5, {1, 1, 1})};
}

void add_dropout_samples(OpSamples& s) {
  struct Sample {
    const char* name;
    Shape x;
    double p;
    Layout layout = Layout::dense;
  };
  for (const Sample& c :
       {Sample{"Half", {3, 5}, 0.5}, Sample{"Nothing", {4}, 0.0}, Sample{"Tenth", {7}, 0.1},
        Sample{"Scalar", {}, 0.5}, Sample{"Empty", {0, 3}, 0.5},
        Sample{"Flipped", {4, 3}, 0.3, Layout::flipped},
        Sample{"Gapped", {3, 2}, 0.7, Layout::gapped}}) {
    s.differentiable.push_back(
        {"dropout", c.name, [c](Maker& m) { return std::vector<Tensor>{m.normal(c.x, c.layout)}; },
         [c](const std::vector<Tensor>& t, Maker&) {
           RngState rng{1, 2, 3};
           return dropout(t[0], c.p, rng);
         }});
  }
  auto refuse = [&](const char* name, double p, const char* text) {
    s.errors.push_back({"dropout", name,
                        [p](Maker& m) {
                          RngState rng;
                          dropout(m.normal({2}), p, rng);
                        },
                        text});
  };
  refuse("One", 1.0, "dropout: p 1 is outside [0, 1)");
  refuse("Negative", -0.5, "dropout: p -0.5 is outside [0, 1)");
  refuse("NaN", std::nan(""), "dropout: p nan is outside [0, 1)");
}

}  // namespace crucible::testing
