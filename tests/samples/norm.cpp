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

}  // namespace crucible::testing
