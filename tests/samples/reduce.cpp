#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "ops/reduce.h"
#include "tests/samples/op.h"
#include "tests/samples/primitive.h"

namespace crucible::testing {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

struct ReduceCase {
  ReduceOp op;
  const char* name;
};
const ReduceCase reduce_cases[] = {{ReduceOp::sum, "Sum"},   {ReduceOp::mean, "Mean"},
                                   {ReduceOp::prod, "Prod"}, {ReduceOp::max, "Max"},
                                   {ReduceOp::min, "Min"},   {ReduceOp::logsumexp, "Logsumexp"},
                                   {ReduceOp::norm, "Norm"}};

struct Sizes {
  const char* name;
  int64_t outer, n, inner;
};
const Sizes sizes[] = {{"Rows", 7, 33, 1},      {"Columns", 1, 33, 7}, {"Middle", 3, 5, 17},
                       {"OneElement", 1, 1, 1}, {"Wide", 2, 2049, 1},  {"Tall", 1, 1025, 33},
                       {"EmptyAxis", 3, 0, 2},  {"NoRows", 0, 5, 2}};

// Products of many factors leave the range of 16-bit types; factors near 1 do not.
Tensor input(Maker& m, ReduceOp op, const Shape& shape) {
  return op == ReduceOp::prod ? m.uniform(shape, 0.98, 1.02) : m.normal(shape);
}

// x, and y as every backend is given it: computed here and rounded once.
void backward(Maker& m, ReduceOp op, const Tensor& x) {
  const int64_t outer = x.size(0), n = x.size(1), inner = x.size(2);
  const std::vector<double> v = host_values(x);
  std::vector<double> y(outer * inner);
  for (int64_t i = 0; i < outer * inner; ++i) {
    auto at = [&](int64_t k) { return v[(i / inner * n + k) * inner + i % inner]; };
    double peak = -infinity, low = infinity, squares = 0, exps = 0;
    for (int64_t k = 0; k < n; ++k) {
      peak = std::max(peak, at(k));
      low = std::min(low, at(k));
      squares += at(k) * at(k);
    }
    for (int64_t k = 0; k < n && peak > -infinity; ++k) exps += std::exp(at(k) - peak);
    y[i] = op == ReduceOp::max         ? peak
           : op == ReduceOp::min       ? low
           : op == ReduceOp::norm      ? std::sqrt(squares)
           : op == ReduceOp::logsumexp ? (peak == -infinity ? peak : peak + std::log(exps))
                                       : 0.0;
  }
  const bool linear = op == ReduceOp::sum || op == ReduceOp::mean;
  const Tensor result = m.values({outer, inner}, y);
  run(prim::ReduceBackward{.op = op,
                           .x = linear ? prim::none : x,
                           .y = linear || op == ReduceOp::prod ? prim::none : result,
                           .dy = m.normal({outer, inner}),
                           .dx = m.output("dx", x.shape())});
}

}  // namespace

template <>
std::vector<PrimitiveSample> Samples<prim::Reduce>::all() {
  std::vector<PrimitiveSample> s;
  for (const auto& [op, name] : reduce_cases) {
    auto add = [&, op = op, name = name](std::string kind, auto make) {
      s.push_back(
          {name + kind, [=](Maker& m) {
             const Tensor x = make(m);
             run(prim::Reduce{.op = op, .x = x, .y = m.output("y", {x.size(0), x.size(2)})});
           }});
    };
    for (const Sizes& z : sizes) {
      add(z.name, [z, op = op](Maker& m) { return input(m, op, {z.outer, z.n, z.inner}); });
    }
    add("NaN", [](Maker& m) { return m.values({2, 3, 1}, {1, nan, 2, 1, 2, 3}); });
    if (op == ReduceOp::logsumexp) {
      add("MinusInfinity", [](Maker& m) {
        return m.values({2, 2, 1}, {-infinity, -infinity, -infinity, 2.0});
      });
      add("Huge", [](Maker& m) { return m.values({1, 2, 1}, {1e4, -1e4}); });
    }
  }
  s.push_back({"SumCancels", [](Maker& m) {
                 std::vector<double> v(2000);
                 for (size_t i = 0; i < v.size(); ++i) v[i] = (i % 2 ? -1.0 : 1.0) * (1 + i % 7);
                 run(prim::Reduce{.op = ReduceOp::sum,
                                  .x = m.values({1, 2000, 1}, v),
                                  .y = m.output("y", {1, 1})});
               }});
  return s;
}

template <>
std::vector<PrimitiveSample> Samples<prim::ReduceBackward>::all() {
  std::vector<PrimitiveSample> s;
  for (const auto& [op, name] : reduce_cases) {
    for (const Sizes& z : sizes) {
      if (z.n * z.outer == 0) continue;  // nothing to write
      const int64_t n = op == ReduceOp::prod ? std::min<int64_t>(z.n, 40) : z.n;
      s.push_back({std::string(name) + z.name, [=, op = op](Maker& m) {
                     backward(m, op, input(m, op, {z.outer, n, z.inner}));
                   }});
    }
    s.push_back({std::string(name) + "Ties", [op = op](Maker& m) {
                   backward(m, op, m.values({2, 4, 1}, {1, 3, 3, 1, 2, 2, 2, 2}));
                 }});
    s.push_back({std::string(name) + "Zeros", [op = op](Maker& m) {
                   backward(m, op, m.values({3, 3, 1}, {0, 2, 3, 0, 0, 3, 0, 0, 0}));
                 }});
  }
  s.push_back({"LogsumexpMinusInfinity", [](Maker& m) {
                 backward(m, ReduceOp::logsumexp,
                          m.values({2, 2, 1}, {-infinity, -infinity, -infinity, 2.0}));
               }});
  return s;
}

template <>
std::vector<PrimitiveSample> Samples<prim::ArgMax>::all() {
  std::vector<PrimitiveSample> s;
  auto add = [&](const char* name, auto make) {
    s.push_back(
        {name, [=](Maker& m) {
           const Tensor x = make(m);
           run(prim::ArgMax{.x = x, .y = m.output_as(DType::i64, "y", {x.size(0), x.size(2)})});
         }});
  };
  for (const Sizes& z : sizes) {
    if (z.n > 0) add(z.name, [z](Maker& m) { return m.normal({z.outer, z.n, z.inner}); });
  }
  add("Ties", [](Maker& m) { return m.values({2, 4, 1}, {1, 3, 3, 1, 2, 2, 2, 2}); });
  add("NaN", [](Maker& m) { return m.values({2, 3, 1}, {1, nan, 2, nan, 9, nan}); });
  add("MinusInfinity", [](Maker& m) {
    return m.values({1, 3, 1}, {-infinity, -infinity, -infinity});
  });
  return s;
}

template <>
std::vector<PrimitiveSample> Samples<prim::SumSquares>::all() {
  std::vector<PrimitiveSample> s;
  for (const int64_t n : {1, 7, 33, 1000, 100003}) {
    s.push_back({fmt::format("N{}", n), [n](Maker& m) {
                   run(prim::SumSquares{.x = m.normal({n}), .y = m.output_as(DType::f64, "y", {})});
                 }});
  }
  s.push_back({"Empty", [](Maker& m) {
                 run(prim::SumSquares{.x = m.normal({0}), .y = m.output_as(DType::f64, "y", {})});
               }});
  s.push_back({"NaN", [](Maker& m) {
                 run(prim::SumSquares{.x = m.values({3}, {1, nan, 2}),
                                      .y = m.output_as(DType::f64, "y", {})});
               }});
  s.push_back({"Infinity", [](Maker& m) {
                 run(prim::SumSquares{.x = m.values({3}, {1, -infinity, 2}),
                                      .y = m.output_as(DType::f64, "y", {})});
               }});
  s.push_back({"BeyondSinglePrecision",
               [](Maker& m) {
                 run(prim::SumSquares{.x = m.values({2}, {1e30, -1e30}),
                                      .y = m.output_as(DType::f64, "y", {})});
               },
               {DType::f32, DType::bf16, DType::f64}});
  return s;
}

namespace {

using Reduction = Tensor (*)(const Tensor&, const ReduceOptions&);

void add_reduction(OpSamples& s, const char* op, Reduction f) {
  struct Input {
    const char* name;
    Shape shape;
    ReduceOptions options;
    Layout layout = Layout::dense;
  };
  const Input inputs[] = {
      {"All", {3, 5}, {}},
      {"LastAxis", {3, 5}, {{-1}}},
      {"FirstAxisKept", {3, 2, 2}, {{0}, true}},
      {"MiddleAxis", {2, 3, 2}, {{1}}},
      {"AxesApart", {2, 3, 2}, {{0, 2}}},
      {"AxesApartKept", {2, 3, 2}, {{2, 0}, true}},
      {"Scalar", {}, {}},
      {"Empty", {0, 3}, {{1}}},
      {"Flipped", {4, 3}, {{0}}, Layout::flipped},
      {"Gapped", {3, 4}, {{1}}, Layout::gapped},
      {"AllKept", {2, 2}, {{}, true}},
  };
  for (const Input& i : inputs) {
    s.differentiable.push_back(
        {op, i.name,
         [i](Maker& m) {  // distinct values: no ties for max and min
           return std::vector<Tensor>{
               m.values(i.shape, host_values(m.distinct(i.shape, 0.25)), i.layout)};
         },
         [f, i](const std::vector<Tensor>& x, Maker&) { return f(x[0], i.options); }});
  }
  const std::string name = op;
  s.errors.push_back({op, "AxisOutside",
                      [f](Maker& m) {
                        f(m.normal({2, 3}), {{2}});
                      },
                      name + ": axis 2 is outside [-2, 2)"});
  s.errors.push_back({op, "AxisTwice",
                      [f](Maker& m) {
                        f(m.normal({2, 3}), {{1, -1}});
                      },
                      name + ": axis -1 is named twice"});
  s.errors.push_back(
      {op, "Integers", [f](Maker& m) { f(m.integers({3}, 0, 5), {}); }, name + ": x holds i64"});
}

void add_exact(OpSamples& s, const char* op, Reduction f, const char* name, std::vector<double> x,
               std::vector<double> gradient) {
  s.differentiable.push_back(
      {op,
       name,
       [x](Maker& m) { return std::vector<Tensor>{m.values({static_cast<int64_t>(x.size())}, x)}; },
       [f](const std::vector<Tensor>& t, Maker&) { return f(t[0], {}); },
       {{gradient}}});
}

}  // namespace

void add_reduce_samples(OpSamples& s) {
  const std::pair<const char*, Reduction> reductions[] = {
      {"sum", sum}, {"mean", mean},           {"prod", prod}, {"max", max},
      {"min", min}, {"logsumexp", logsumexp}, {"norm", norm}};
  for (const auto& [op, f] : reductions) add_reduction(s, op, f);
  add_exact(s, "prod", prod, "OneZero", {0, 2, 3}, {6, 0, 0});
  add_exact(s, "prod", prod, "TwoZeros", {0, 0, 3}, {0, 0, 0});
  add_exact(s, "norm", norm, "ZeroVector", {0, 0, 0}, {0, 0, 0});
  add_exact(s, "max", max, "Ties", {1, 3, 3, 3}, {0, 1.0 / 3, 1.0 / 3, 1.0 / 3});
  add_exact(s, "min", min, "Ties", {1, 1, 3, 3}, {0.5, 0.5, 0, 0});
  add_exact(s, "logsumexp", logsumexp, "MinusInfinity", {-infinity, -infinity}, {0, 0});
  add_exact(s, "logsumexp", logsumexp, "OneMinusInfinity", {-infinity, 5}, {0, 1});
  add_exact(s, "sum", sum, "Infinity", {infinity, 1}, {1, 1});

  auto index = [&](const char* name, Shape shape, std::vector<double> x, int axis, bool keep,
                   std::vector<double> expected) {
    s.no_gradient.push_back({"argmax", name,
                             [=](Maker& m) {
                               Tensor t = m.values(shape, x);
                               t.set_requires_grad();
                               return argmax(t, axis, keep);
                             },
                             expected});
  };
  index("Rows", {2, 3}, {1, 5, 2, 9, 0, 3}, 1, false, {1, 0});
  index("Columns", {2, 3}, {1, 5, 2, 9, 0, 3}, 0, true, {1, 0, 1});
  index("NegativeAxis", {2, 3}, {1, 5, 2, 9, 0, 3}, -1, false, {1, 0});
  index("FirstOfTies", {4}, {1, 7, 7, 7}, 0, false, {1});
  index("NaNIsLargest", {4}, {1, 7, nan, nan}, 0, false, {2});
  index("OneElement", {1}, {3}, 0, false, {0});
  index("EmptyRows", {0, 3}, {}, 1, false, {});
  s.errors.push_back({"argmax", "EmptyAxis",
                      [](Maker& m) {
                        argmax(m.normal({2, 0}), 1);
                      },
                      "argmax: axis 1 of [2, 0] is empty"});
  s.errors.push_back({"argmax", "AxisOutside", [](Maker& m) { argmax(m.normal({2}), -2); },
                      "argmax: axis -2 is outside [-1, 1)"});
}

}  // namespace crucible::testing
