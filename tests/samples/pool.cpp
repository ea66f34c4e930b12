#include "ops/pool.h"

#include <cmath>
#include <limits>

#include "ops/view.h"
#include "tests/samples/op.h"
#include "tests/samples/primitive.h"

namespace crucible::testing {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

struct Case {
  const char* name;
  Shape x;
  Window window;
};
const Case cases[] = {
    {"TwoByTwo", {2, 6, 8, 5}, {{2, 2}, {2, 2}}},
    {"RoundsDown", {1, 7, 5, 17}, {{2, 2}, {2, 2}}},
    {"StemOverlaps", {2, 9, 9, 16}, {{3, 3}, {2, 2}, {1, 1}}},
    {"StrideOne", {1, 5, 6, 3}, {{3, 2}, {1, 1}, {1, 1}}},
    {"StrideLargerThanKernel", {1, 9, 10, 4}, {{2, 2}, {4, 3}}},
    {"WholeImage", {2, 5, 4, 33}, {{5, 4}}},
    {"OneElement", {1, 1, 1, 1}, {{1, 1}}},
    {"WidePadding", {1, 4, 4, 2}, {{4, 4}, {2, 2}, {2, 2}}},
};

Shape output_shape(const Case& c) {
  auto size = [&](int i) {
    return (c.x[1 + i] + 2 * c.window.padding[i] - c.window.kernel[i]) / c.window.stride[i] + 1;
  };
  return {c.x[0], size(0), size(1), c.x[3]};
}

}  // namespace

template <>
std::vector<PrimitiveSample> Samples<prim::Pool>::all() {
  std::vector<PrimitiveSample> s;
  for (const auto& [op, prefix] : {std::pair{PoolOp::max, "Max"}, {PoolOp::average, "Average"}}) {
    for (const Case& c : cases) {
      s.push_back({std::string(prefix) + c.name, [c, op = op](Maker& m) {
                     run(prim::Pool{.op = op,
                                    .window = c.window,
                                    .x = m.normal(c.x),
                                    .y = m.output("y", output_shape(c))});
                   }});
    }
    s.push_back({std::string(prefix) + "Special", [op = op](Maker& m) {
                   run(prim::Pool{.op = op,
                                  .window = {{1, 3}, {1, 3}},
                                  .x = m.values({1, 1, 9, 1}, {nan, 1, 2, 1, nan, 2, -infinity,
                                                               -infinity, -infinity}),
                                  .y = m.output("y", {1, 1, 3, 1})});
                 }});
  }
  s.push_back({"MaxNegative", [](Maker& m) {
                 run(prim::Pool{.op = PoolOp::max,
                                .window = {{3, 3}, {2, 2}, {1, 1}},
                                .x = m.uniform({1, 6, 6, 9}, -3, -1),
                                .y = m.output("y", {1, 3, 3, 9})});
               }});
  return s;
}

template <>
std::vector<PrimitiveSample> Samples<prim::PoolBackward>::all() {
  std::vector<PrimitiveSample> s;
  for (const auto& [op, prefix] : {std::pair{PoolOp::max, "Max"}, {PoolOp::average, "Average"}}) {
    for (const Case& c : cases) {
      s.push_back({std::string(prefix) + c.name, [c, op = op](Maker& m) {
                     run(prim::PoolBackward{.op = op,
                                            .window = c.window,
                                            .x = op == PoolOp::max ? m.normal(c.x) : prim::none,
                                            .dy = m.normal(output_shape(c)),
                                            .dx = m.output("dx", c.x)});
                   }});
    }
  }
  s.push_back({"MaxTies", [](Maker& m) {  // equal pixels, windows that overlap
                 run(prim::PoolBackward{.op = PoolOp::max,
                                        .window = {{3, 3}, {2, 2}, {1, 1}},
                                        .x = m.values({1, 4, 4, 1}, std::vector<double>(16, 2.0)),
                                        .dy = m.normal({1, 2, 2, 1}),
                                        .dx = m.output("dx", {1, 4, 4, 1})});
               }});
  return s;
}

void add_pool_samples(OpSamples& s) {
  using Function = Tensor (*)(const Tensor&, const PoolOptions&);
  struct Sample {
    const char* name;
    Shape x;
    PoolOptions options;
    Layout layout = Layout::dense;
  };
  const Sample samples[] = {
      {"TwoByTwo", {1, 4, 4, 2}, {}},
      {"RoundsDown", {1, 5, 3, 1}, {}},
      {"Overlapping", {1, 4, 5, 1}, {.kernel = 3, .stride = 2, .padding = 1}},
      {"StrideOne", {1, 3, 4, 1}, {.kernel = {2, 3}, .stride = 1}},
      {"Flipped", {2, 4, 3, 2}, {.kernel = 2, .stride = 1}, Layout::flipped},
      {"NoImages", {0, 4, 4, 2}, {}},
      {"OneElement", {1, 1, 1, 1}, {.kernel = 1, .stride = 1}},
  };
  for (const auto& [op, f] :
       {std::pair<const char*, Function>{"max_pool2d", max_pool2d}, {"avg_pool2d", avg_pool2d}}) {
    for (const Sample& c : samples) {
      s.differentiable.push_back(
          {op, c.name,
           [c](Maker& m) {
             return std::vector<Tensor>{m.values(c.x, host_values(m.distinct(c.x)), c.layout)};
           },
           [c, f = f](const std::vector<Tensor>& t, Maker&) { return f(t[0], c.options); }});
    }
    const std::string name = op;
    auto refuse = [&](const char* kind, PoolOptions options, std::string text) {
      s.errors.push_back({name, kind,
                          [=, f = f](Maker& m) {
                            f(m.normal({1, 4, 4, 1}), options);
                          },
                          name + text});
    };
    refuse("KernelZero", {.kernel = 0}, ": kernel size 0 is outside [1, 2^30)");
    refuse("StrideZero", {.stride = 0}, ": stride 0 is outside [1, 2^30)");
    refuse("Padding", {.kernel = 2, .padding = 2}, ": padding 2 is more than half of kernel 2");
    refuse("KernelTooLarge", {.kernel = 5}, ": the kernel spans 5 pixels, the padded input has 4");
    s.errors.push_back({name, "Rank",
                        [f = f](Maker& m) {
                          f(m.normal({4, 4, 1}), {});
                        },
                        name + ": x is [4, 4, 1]; it must be [N, H, W, C]"});
  }
  s.differentiable.push_back({"max_pool2d",
                              "Ties",
                              [](Maker& m) {
                                return std::vector<Tensor>{m.values({1, 2, 2, 1}, {5, 5, 5, 5})};
                              },
                              [](const std::vector<Tensor>& t, Maker&) { return max_pool2d(t[0]); },
                              {{{1, 0, 0, 0}}}});
  s.differentiable.push_back(
      {"mean", "GlobalAveragePool",
       [](Maker& m) {
         return std::vector<Tensor>{m.normal({2, 2, 3, 2})};
       },
       [](const std::vector<Tensor>& t, Maker&) { return global_avg_pool2d(t[0]); }});
}

}  // namespace crucible::testing
