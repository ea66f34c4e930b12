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
    s.push_back({"N" + std::to_string(n), [n](Maker& m) {
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

}  // namespace crucible::testing
