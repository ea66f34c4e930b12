#include "ops/softmax.h"

#include <cmath>
#include <limits>

#include "ops/view.h"
#include "tests/samples/op.h"
#include "tests/samples/primitive.h"

namespace crucible::testing {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

void backward(Maker& m, bool log, const Shape& shape, bool in_place) {
  // y as every backend is given it: a softmax computed here and rounded once.
  std::vector<double> y = host_values(m.normal(shape));
  const int64_t n = shape[1];
  for (int64_t r = 0; r < shape[0]; ++r) {
    double sum = 0;
    for (int64_t i = r * n; i < (r + 1) * n; ++i) sum += std::exp(y[i]);
    for (int64_t i = r * n; i < (r + 1) * n; ++i) {
      y[i] = log ? y[i] - std::log(sum) : std::exp(y[i]) / sum;
    }
  }
  const Tensor saved = m.values(shape, y);
  const Tensor dy = m.normal(shape);
  run(prim::SoftmaxBackward{.log = log,
                            .y = saved,
                            .dy = dy,
                            .dx = in_place ? m.changes("dx", dy) : m.output("dx", shape)});
}

}  // namespace

template <>
std::vector<PrimitiveSample> Samples<prim::Softmax>::all() {
  std::vector<PrimitiveSample> s;
  for (const bool log : {false, true}) {
    const std::string prefix = log ? "Log" : "";
    // The widths of pain P2: at and around the edges of vectors and thread blocks.
    for (const int64_t n : {1, 2, 31, 32, 33, 1023, 1024, 1025, 2049}) {
      s.push_back({prefix + "Width" + std::to_string(n), [=](Maker& m) {
                     run(prim::Softmax{
                         .log = log, .x = m.normal({5, n}, 0.0, 3.0), .y = m.output("y", {5, n})});
                   }});
    }
    s.push_back({prefix + "InPlace", [=](Maker& m) {
                   const Tensor x = m.normal({9, 65});
                   run(prim::Softmax{.log = log, .x = x, .y = m.changes("y", x)});
                 }});
    s.push_back(
        {prefix + "Special", [=](Maker& m) {
           run(prim::Softmax{.log = log,
                             .x = m.values({6, 2}, {1000, 1000, 0, infinity, -infinity, -infinity,
                                                    nan, 1, -infinity, 3, 1e4, -1e4}),
                             .y = m.output("y", {6, 2})});
         }});
    s.push_back(
        {prefix + "ManyRows", [=](Maker& m) {
           run(prim::Softmax{.log = log, .x = m.normal({1000, 3}), .y = m.output("y", {1000, 3})});
         }});
  }
  return s;
}

template <>
std::vector<PrimitiveSample> Samples<prim::SoftmaxBackward>::all() {
  std::vector<PrimitiveSample> s;
  for (const bool log : {false, true}) {
    const std::string prefix = log ? "Log" : "";
    for (const int64_t n : {1, 2, 31, 32, 33, 1023, 1024, 1025, 2049}) {
      s.push_back({prefix + "Width" + std::to_string(n), [=](Maker& m) {
                     backward(m, log, {5, n}, false);
                   }});
    }
    s.push_back({prefix + "InPlace", [=](Maker& m) { backward(m, log, {9, 65}, true); }});
    s.push_back({prefix + "HiddenRow", [=](Maker& m) {
                   const double hidden = log ? -infinity : 0.0;
                   run(prim::SoftmaxBackward{
                       .log = log,
                       .y = m.values({2, 2}, {hidden, hidden, hidden, log ? 0.0 : 1.0}),
                       .dy = m.normal({2, 2}),
                       .dx = m.output("dx", {2, 2})});
                 }});
  }
  return s;
}

void add_softmax_samples(OpSamples& s) {
  using Function = Tensor (*)(const Tensor&, int);
  struct Sample {
    const char* name;
    Shape x;
    int axis;
    Layout layout = Layout::dense;
  };
  const Sample samples[] = {{"LastAxis", {3, 5}, -1},
                            {"FirstAxis", {3, 2, 2}, 0},
                            {"MiddleAxis", {2, 3, 2}, 1},
                            {"Vector", {6}, 0},
                            {"Flipped", {4, 3}, 1, Layout::flipped},
                            {"Gapped", {3, 4}, 0, Layout::gapped},
                            {"Empty", {0, 3}, 1},
                            {"EmptyAxis", {3, 0}, 1},
                            {"OneColumn", {3, 1}, 1}};
  for (const auto& [op, f] :
       {std::pair<const char*, Function>{"softmax", softmax}, {"log_softmax", log_softmax}}) {
    for (const Sample& c : samples) {
      s.differentiable.push_back(
          {op, c.name, [c](Maker& m) { return std::vector<Tensor>{m.normal(c.x, c.layout)}; },
           [c, f = f](const std::vector<Tensor>& t, Maker&) { return f(t[0], c.axis); }});
    }
    s.differentiable.push_back(
        {op,
         "HiddenRow",
         [](Maker& m) {
           return std::vector<Tensor>{m.values({1, 2}, {-infinity, -infinity})};
         },
         [f = f](const std::vector<Tensor>& t, Maker&) { return f(t[0], -1); },
         {{{0, 0}}}});
    const std::string name = op;
    s.errors.push_back({name, "AxisOutside",
                        [f = f](Maker& m) {
                          f(m.normal({2, 3}), 7);
                        },
                        name + ": axis 7 is outside [-2, 2)"});
    s.errors.push_back({name, "Scalar", [f = f](Maker& m) { f(m.normal({}), -1); },
                        name + ": axis -1 is outside [0, 0)"});
    s.errors.push_back({name, "Integers", [f = f](Maker& m) { f(m.integers({3}, 0, 4), 0); },
                        name + ": x holds i64"});
  }
}

}  // namespace crucible::testing
