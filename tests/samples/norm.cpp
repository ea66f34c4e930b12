#include "ops/norm.h"

#include <cmath>

#include "ops/view.h"
#include "tests/samples/op.h"
#include "tests/samples/primitive.h"

namespace crucible::testing {
namespace {

struct BatchCase {
  const char* name;
  int64_t rows, channels;
  bool training = true, relu = false, residual = false;
  double mean = 0.0, deviation = 1.0;
};
const BatchCase batch_cases[] = {
    {"Training", 33, 17},
    {"TrainingRelu", 64, 16, true, true},
    {"TrainingReluResidual", 30, 9, true, true, true},
    {"TrainingResidual", 31, 8, true, false, true},
    {"TrainingTall", 3000, 5, true, true},
    {"TrainingTwoRows", 2, 3},
    {"TrainingFarFromZero", 200, 6, true, false, false, 30.0, 1.0},
    {"TrainingOneChannel", 100, 1},
    {"Eval", 7, 33, false},
    {"EvalRelu", 20, 16, false, true},
    {"EvalReluResidual", 20, 5, false, true, true},
    {"EvalOneRow", 1, 4, false},
};

void batch_norm_forward(Maker& m, const BatchCase& c) {
  const DType stats = statistics_dtype(m.dtype());
  const Shape row{c.channels};
  const Tensor mean = m.uniform_as(stats, row, -1, 1), var = m.uniform_as(stats, row, 0.5, 2);
  run(prim::BatchNorm{.x = m.normal({c.rows, c.channels}, c.mean, c.deviation),
                      .gamma = m.uniform_as(stats, row, -2, 2),
                      .beta = m.uniform_as(stats, row, -1, 1),
                      .running_mean = m.changes("running_mean", mean),
                      .running_var = m.changes("running_var", var),
                      .residual = c.residual ? m.normal({c.rows, c.channels}) : prim::none,
                      .relu = c.relu,
                      .training = c.training,
                      .mean = m.output_as(stats, "mean", row),
                      .rstd = m.output_as(stats, "rstd", row),
                      .y = m.output("y", {c.rows, c.channels})});
}

void batch_norm_backward(Maker& m, const BatchCase& c) {
  const DType stats = statistics_dtype(m.dtype());
  const Shape row{c.channels}, shape{c.rows, c.channels};
  // With ReLU, pre-activations stay clear of 0, where rounding decides the sign: x is 1 or 2 away
  // from the mean on either side, and gamma outweighs beta.
  Tensor x = m.normal(shape, c.mean, c.deviation);
  if (c.relu && !c.residual) {
    std::vector<double> v = host_values(x);
    for (double& e : v) e = c.mean + c.deviation * (e < c.mean ? e - c.mean - 1 : e - c.mean + 1);
    x = m.values(shape, v);
  }
  const Tensor y = c.residual && c.relu ? m.normal(shape) : Tensor();
  run(prim::BatchNormBackward{
      .x = x,
      .y = y,
      .gamma = m.uniform_as(stats, row, 1, 2),
      .beta = m.uniform_as(stats, row, -0.2, 0.2),
      .mean = m.uniform_as(stats, row, c.mean - 0.1, c.mean + 0.1),
      .rstd = m.uniform_as(stats, row, 0.9, 1.1),
      .relu = c.relu,
      .training = c.training,
      .dy = m.normal(shape),
      .dx = m.output("dx", shape),
      .dresidual = c.residual && c.relu ? m.output("dresidual", shape) : prim::none,
      .dgamma = m.output_as(stats, "dgamma", row),
      .dbeta = m.output_as(stats, "dbeta", row)});
}

struct LayerCase {
  const char* name;
  int64_t rows, width;
  double mean = 0.0;
};
const LayerCase layer_cases[] = {{"Odd", 7, 33},
                                 {"Wide", 3, 1025},
                                 {"Narrow", 65, 2},
                                 {"OneColumn", 4, 1},
                                 {"OneElement", 1, 1},
                                 {"Tall", 515, 8},
                                 {"FarFromZero", 5, 64, 30.0},
                                 {"NoRows", 0, 5}};

void layer_norm_forward(Maker& m, const LayerCase& c) {
  const DType stats = statistics_dtype(m.dtype());
  run(prim::LayerNorm{.x = m.normal({c.rows, c.width}, c.mean, 1.0),
                      .gamma = m.uniform_as(stats, {c.width}, -2, 2),
                      .beta = m.uniform_as(stats, {c.width}, -1, 1),
                      .mean = m.output_as(stats, "mean", {c.rows}),
                      .rstd = m.output_as(stats, "rstd", {c.rows}),
                      .y = m.output("y", {c.rows, c.width})});
}

void layer_norm_backward(Maker& m, const LayerCase& c) {
  const DType stats = statistics_dtype(m.dtype());
  run(prim::LayerNormBackward{.x = m.normal({c.rows, c.width}, c.mean, 1.0),
                              .gamma = m.uniform_as(stats, {c.width}, -2, 2),
                              .mean = m.uniform_as(stats, {c.rows}, c.mean - 0.1, c.mean + 0.1),
                              .rstd = m.uniform_as(stats, {c.rows}, 0.9, 1.1),
                              .dy = m.normal({c.rows, c.width}),
                              .dx = m.output("dx", {c.rows, c.width}),
                              .dgamma = m.output_as(stats, "dgamma", {c.width}),
                              .dbeta = m.output_as(stats, "dbeta", {c.width})});
}

template <class Cases, class F>
std::vector<PrimitiveSample> for_each_case(const Cases& cases, F f) {
  std::vector<PrimitiveSample> s;
  for (const auto& c : cases) s.push_back({c.name, [c, f](Maker& m) { f(m, c); }});
  return s;
}

}  // namespace

template <>
std::vector<PrimitiveSample> Samples<prim::BatchNorm>::all() {
  return for_each_case(batch_cases, batch_norm_forward);
}
template <>
std::vector<PrimitiveSample> Samples<prim::BatchNormBackward>::all() {
  return for_each_case(batch_cases, batch_norm_backward);
}
template <>
std::vector<PrimitiveSample> Samples<prim::LayerNorm>::all() {
  return for_each_case(layer_cases, layer_norm_forward);
}
template <>
std::vector<PrimitiveSample> Samples<prim::LayerNormBackward>::all() {
  return for_each_case(layer_cases, layer_norm_backward);
}

void add_norm_samples(OpSamples& s) {
  struct Sample {
    const char* name;
    Shape x;
    BatchNormOptions options = {};
    bool residual = false;
    Layout layout = Layout::dense;
  };
  const Sample samples[] = {
      {"Training", {5, 3}},
      {"TrainingRelu", {5, 3}, {.relu = true}},
      {"TrainingResidual", {4, 2}, {}, true},
      {"TrainingReluResidual", {4, 2}, {.relu = true}, true},
      {"Eval", {4, 3}, {.training = false}},
      {"EvalRelu", {4, 3}, {.training = false, .relu = true}},
      {"EvalReluResidual", {2, 3}, {.training = false, .relu = true}, true},
      {"Images", {2, 2, 2, 2}, {}, false, Layout::flipped},
      {"TwoRows", {2, 1}},
      {"EvalEmpty", {0, 3}, {.training = false}},
  };
  for (const Sample& c : samples) {
    s.differentiable.push_back(
        {"batch_norm", c.name,
         [c](Maker& m) {
           const Shape row{c.x[c.x.rank() - 1]};
           std::vector<Tensor> t{m.normal(c.x, c.layout), m.uniform(row, 0.5, 2),
                                 m.uniform(row, -1, 1)};
           if (c.residual) t.push_back(m.normal(c.x));
           return t;
         },
         [c](const std::vector<Tensor>& t, Maker& m) {
           const Shape row{c.x[c.x.rank() - 1]};
           const Tensor mean = m.uniform(row, -1, 1), var = m.uniform(row, 0.5, 2);
           return batch_norm(t[0], t[1], t[2], mean, var, c.options, c.residual ? t[3] : Tensor());
         }});
  }
  auto call_batch_norm = [](Maker& m, Shape x, Shape gamma, Shape residual) {
    const DType stats = statistics_dtype(m.dtype());
    const Shape row{x[x.rank() - 1]};
    batch_norm(m.normal(x), m.uniform_as(stats, gamma, 1, 2), m.uniform_as(stats, row, 1, 2),
               m.uniform_as(stats, row, 1, 2), m.uniform_as(stats, row, 1, 2), {},
               residual.rank() ? m.normal(residual) : Tensor());
  };
  s.errors.push_back({"batch_norm", "OneValueAChannel",
                      [=](Maker& m) {
                        call_batch_norm(m, {1, 3}, {3}, {});
                      },
                      "batch_norm: 1 value a channel in x [1, 3]; training needs at least two"});
  s.errors.push_back({"batch_norm", "Gamma",
                      [=](Maker& m) {
                        call_batch_norm(m, {4, 3}, {4}, {});
                      },
                      "batch_norm: gamma is [4], x is [4, 3]; it must be [3]"});
  s.errors.push_back({"batch_norm", "Residual",
                      [=](Maker& m) {
                        call_batch_norm(m, {4, 3}, {3}, {3, 3});
                      },
                      "batch_norm: residual is [3, 3], x is [4, 3]"});

  struct Layer {
    const char* name;
    Shape x;
    Layout layout = Layout::dense;
  };
  for (const Layer& c :
       {Layer{"Odd", {3, 5}}, Layer{"ThreeAxes", {2, 2, 3}}, Layer{"Vector", {4}},
        Layer{"Flipped", {3, 4}, Layout::flipped}, Layer{"Gapped", {2, 4}, Layout::gapped},
        Layer{"NoRows", {0, 3}}, Layer{"OneColumn", {2, 1}}}) {
    s.differentiable.push_back(
        {"layer_norm", c.name,
         [c](Maker& m) {
           const Shape row{c.x[c.x.rank() - 1]};
           return std::vector<Tensor>{m.normal(c.x, c.layout), m.uniform(row, 0.5, 2),
                                      m.uniform(row, -1, 1)};
         },
         [](const std::vector<Tensor>& t, Maker&) { return layer_norm(t[0], t[1], t[2]); }});
  }
  s.errors.push_back({"layer_norm", "EmptyRows",
                      [](Maker& m) {
                        layer_norm(m.normal({2, 0}), m.normal({0}), m.normal({0}));
                      },
                      "layer_norm: x is [2, 0]; its last axis must not be empty"});
  s.errors.push_back({"layer_norm", "Beta",
                      [](Maker& m) {
                        layer_norm(m.normal({2, 3}), m.normal({3}), m.normal({2}));
                      },
                      "layer_norm: beta is [2], x is [2, 3]; it must be [3]"});
  s.errors.push_back({"layer_norm", "GammaDtype",
                      [](Maker& m) {
                        layer_norm(m.values_as(DType::f16, {2}, {1, 2}),
                                   m.values_as(DType::f16, {2}, {1, 1}),
                                   m.values_as(DType::f32, {2}, {1, 1}));
                      },
                      "layer_norm: gamma is f16"});
}

}  // namespace crucible::testing
