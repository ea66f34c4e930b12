#include <cmath>
#include <limits>

#include "ops/elementwise.h"
#include "tests/samples/op.h"
#include "tests/samples/primitive.h"

namespace crucible::testing {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// Where a unary op is defined and smooth, and the call of its function.
struct UnaryCase {
  UnaryOp op;
  double low, high;
  UnaryParams params = {};
};

const UnaryCase unary_cases[] = {
    {UnaryOp::neg, -3, 3},
    {UnaryOp::abs, -3, 3},
    {UnaryOp::exp, -6, 6},
    {UnaryOp::log, 0.1, 9},
    {UnaryOp::sqrt, 0.1, 9},
    {UnaryOp::square, -3, 3},
    {UnaryOp::relu, -3, 3},
    {UnaryOp::gelu, -5, 5},
    {UnaryOp::gelu_tanh, -5, 5},
    {UnaryOp::sigmoid, -9, 9},
    {UnaryOp::tanh, -4, 4},
    {UnaryOp::silu, -9, 9},
    {UnaryOp::clamp, -3, 3, {-1.25, 0.75}},
    {UnaryOp::affine, -3, 3, {1.75, -0.5}},
    {UnaryOp::power, 0.1, 3, {2.5, 0}},
};

// Saturated and singular arguments of every op.
const std::vector<double> special{0.0,   -0.0,  1.0,    -1.0,     20.0,      -20.0, 90.0,
                                  -90.0, 200.0, -200.0, infinity, -infinity, nan};

std::string title(UnaryOp op) {
  return camel_case(name_of(op));
}
std::string title(BinaryOp op) {
  return camel_case(name_of(op));
}

const BinaryOp binary_ops[] = {BinaryOp::add, BinaryOp::sub,     BinaryOp::mul,    BinaryOp::div,
                               BinaryOp::pow, BinaryOp::maximum, BinaryOp::minimum};

struct Broadcast {
  const char* name;
  Shape a, b;
};
// The shapes of pain P5, and some more.
const Broadcast broadcasts[] = {
    {"Equal", {3, 5}, {3, 5}},
    {"OneElement", {5, 4}, {1}},
    {"Outer", {4, 1}, {1, 4}},
    {"Scalar", {}, {2}},
    {"Scalars", {}, {}},
    {"EmptyColumns", {4, 0}, {4, 1}},
    {"EmptyAndOne", {0}, {1}},
    {"Trailing", {2, 3, 4}, {3, 1}},
    {"Leading", {3, 2}, {2, 1, 3, 1}},
};

// b seen with the strides of a broadcast to `shape`.
Tensor expanded(const Tensor& x, const Shape& shape) {
  Strides strides{};
  const int shift = shape.rank() - x.rank();
  for (int i = 0; i < x.rank(); ++i) strides[i + shift] = x.shape()[i] == 1 ? 0 : x.stride(i);
  return x.as_strided(shape, strides);
}

void unary_backward(Maker& m, UnaryOp op, UnaryParams params, const Tensor& x, bool in_place) {
  const auto uses = backward_uses(op);
  Tensor saved = x;
  if (uses == elementwise::Uses::y) {  // y is given as stored, so that all backends read the same
    std::vector<double> y = host_values(x);
    for (double& v : y) {
      v = op == UnaryOp::exp       ? std::exp(v)
          : op == UnaryOp::sqrt    ? std::sqrt(v)
          : op == UnaryOp::relu    ? (v <= 0 ? 0 : v)
          : op == UnaryOp::sigmoid ? 1 / (1 + std::exp(-v))
                                   : std::tanh(v);
    }
    saved = m.values(x.shape(), y);
  }
  const Tensor dy = m.normal(x.shape());
  const Tensor& dx = in_place ? m.changes("dx", dy) : m.output("dx", x.shape());
  run(prim::UnaryBackward{.op = op,
                          .params = params,
                          .x = uses == elementwise::Uses::x ? saved : prim::none,
                          .y = uses == elementwise::Uses::y ? saved : prim::none,
                          .dy = dy,
                          .dx = dx});
}

void binary_backward(Maker& m, BinaryOp op, const Tensor& a, const Tensor& b, const Shape& shape) {
  using Of = prim::BinaryBackward::Of;
  const Tensor dy = m.normal(shape);
  run(prim::BinaryBackward{
      .op = op, .of = Of::a, .a = a, .b = b, .dy = dy, .d = m.output("da", shape)});
  run(prim::BinaryBackward{
      .op = op, .of = Of::b, .a = a, .b = b, .dy = dy, .d = m.output("db", shape)});
}

const CompareOp compare_ops[] = {CompareOp::eq, CompareOp::ne, CompareOp::lt,
                                 CompareOp::le, CompareOp::gt, CompareOp::ge};
const char* const compare_names[] = {"Eq", "Ne", "Lt", "Le", "Gt", "Ge"};

}  // namespace

template <>
std::vector<PrimitiveSample> Samples<prim::Unary>::all() {
  std::vector<PrimitiveSample> s;
  for (const UnaryCase& c : unary_cases) {
    auto add = [&](const char* name, auto make) {
      s.push_back({title(c.op) + name, [c, make](Maker& m) {
                     const Tensor x = make(m, c);
                     run(prim::Unary{
                         .op = c.op, .params = c.params, .x = x, .y = m.output("y", x.shape())});
                   }});
    };
    add("Odd", [](Maker& m, const UnaryCase& u) { return m.uniform({7, 37}, u.low, u.high); });
    add("Long", [](Maker& m, const UnaryCase& u) { return m.uniform({20011}, u.low, u.high); });
    add("OneElement", [](Maker& m, const UnaryCase& u) { return m.uniform({}, u.low, u.high); });
    if (c.op != UnaryOp::power && c.op != UnaryOp::affine) {
      add("Special", [](Maker& m, const UnaryCase&) {
        return m.values({static_cast<int64_t>(special.size())}, special);
      });
    }
    s.push_back({title(c.op) + "InPlace", [c](Maker& m) {
                   const Tensor x = m.uniform({129}, c.low, c.high);
                   run(prim::Unary{.op = c.op, .params = c.params, .x = x, .y = m.changes("y", x)});
                 }});
  }
  for (const double exponent : {0.0, -1.0, 0.5, 3.0}) {
    s.push_back({"Power" + std::to_string(static_cast<int>(exponent * 10 + 100)), [=](Maker& m) {
                   run(prim::Unary{.op = UnaryOp::power,
                                   .params = {exponent, 0.0},
                                   .x = m.values({4}, {0.0, 0.5, 1.0, 2.0}),
                                   .y = m.output("y", {4})});
                 }});
  }
  return s;
}

template <>
std::vector<PrimitiveSample> Samples<prim::UnaryBackward>::all() {
  std::vector<PrimitiveSample> s;
  for (const UnaryCase& c : unary_cases) {
    s.push_back({title(c.op) + "Odd", [c](Maker& m) {
                   unary_backward(m, c.op, c.params, m.uniform({7, 37}, c.low, c.high), false);
                 }});
    s.push_back({title(c.op) + "InPlace", [c](Maker& m) {
                   unary_backward(m, c.op, c.params, m.uniform({20011}, c.low, c.high), true);
                 }});
    if (c.op == UnaryOp::log || c.op == UnaryOp::power || c.op == UnaryOp::affine) continue;
    s.push_back({title(c.op) + "Special", [c](Maker& m) {
                   const bool root = c.op == UnaryOp::sqrt;
                   const std::vector<double> x =
                       root ? std::vector<double>{0.0, 1.0, 4.0, 1e4}
                            : std::vector<double>{0.0, -0.0, 1.0, -1.0, 20.0, -20.0, nan};
                   unary_backward(m, c.op, c.params, m.values({static_cast<int64_t>(x.size())}, x),
                                  false);
                 }});
  }
  s.push_back({"SqrtZeroUpstream", [](Maker& m) {
                 run(prim::UnaryBackward{.op = UnaryOp::sqrt,
                                         .y = m.values({3}, {0.0, 0.0, 2.0}),
                                         .dy = m.values({3}, {0.0, 1.0, 0.0}),
                                         .dx = m.output("dx", {3})});
               }});
  s.push_back({"PowerZeroExponent", [](Maker& m) {
                 run(prim::UnaryBackward{.op = UnaryOp::power,
                                         .params = {0.0, 0.0},
                                         .x = m.values({3}, {0.0, -1.0, 2.0}),
                                         .dy = m.normal({3}),
                                         .dx = m.output("dx", {3})});
               }});
  return s;
}

template <>
std::vector<PrimitiveSample> Samples<prim::Binary>::all() {
  std::vector<PrimitiveSample> s;
  for (const BinaryOp op : binary_ops) {
    const double low = op == BinaryOp::pow || op == BinaryOp::div ? 0.2 : -3.0;
    for (const Broadcast& shapes : broadcasts) {
      const Shape shape = broadcast_shapes("sample", shapes.a, shapes.b);
      s.push_back({title(op) + shapes.name, [=, a = shapes.a, b = shapes.b](Maker& m) {
                     run(prim::Binary{.op = op,
                                      .a = expanded(m.uniform(a, low, 3.0), shape),
                                      .b = expanded(m.uniform(b, low, 3.0), shape),
                                      .y = m.output("y", shape)});
                   }});
    }
    s.push_back({title(op) + "Strided", [=](Maker& m) {
                   run(prim::Binary{.op = op,
                                    .a = m.uniform({9, 33}, low, 3.0, Layout::flipped),
                                    .b = m.uniform({9, 33}, low, 3.0, Layout::gapped),
                                    .y = m.output("y", {9, 33})});
                 }});
    s.push_back(
        {title(op) + "InPlaceLong", [=](Maker& m) {
           const Tensor a = m.uniform({20011}, low, 3.0);
           run(prim::Binary{
               .op = op, .a = a, .b = m.uniform({20011}, low, 3.0), .y = m.changes("y", a)});
         }});
    s.push_back({title(op) + "RowInto", [=](Maker& m) {
                   run(prim::Binary{.op = op,
                                    .a = m.uniform({65, 130}, low, 3.0),
                                    .b = expanded(m.uniform({130}, low, 3.0), {65, 130}),
                                    .y = m.output("y", {65, 130})});
                 }});
    if (op == BinaryOp::pow) continue;
    s.push_back({title(op) + "Special", [=](Maker& m) {
                   run(prim::Binary{.op = op,
                                    .a = m.values({6}, {0.0, -0.0, infinity, nan, 1.0, -1.0}),
                                    .b = m.values({6}, {0.0, 1.0, 1.0, 1.0, nan, infinity}),
                                    .y = m.output("y", {6})});
                 }});
  }
  for (const BinaryOp op :
       {BinaryOp::add, BinaryOp::sub, BinaryOp::mul, BinaryOp::maximum, BinaryOp::minimum}) {
    s.push_back({title(op) + "Integers",
                 [=](Maker& m) {
                   run(prim::Binary{.op = op,
                                    .a = m.integers({5, 3}, -1000, 1000),
                                    .b = m.integers({5, 3}, -1000, 1000),
                                    .y = m.output_as(DType::i64, "y", {5, 3})});
                 },
                 {DType::i64}});
  }
  return s;
}

template <>
std::vector<PrimitiveSample> Samples<prim::BinaryBackward>::all() {
  std::vector<PrimitiveSample> s;
  for (const BinaryOp op : binary_ops) {
    const double low = op == BinaryOp::pow || op == BinaryOp::div ? 0.2 : -3.0;
    for (const Broadcast& shapes : broadcasts) {
      const Shape shape = broadcast_shapes("sample", shapes.a, shapes.b);
      s.push_back({title(op) + shapes.name, [=, a = shapes.a, b = shapes.b](Maker& m) {
                     binary_backward(m, op, expanded(m.uniform(a, low, 3.0), shape),
                                     expanded(m.uniform(b, low, 3.0), shape), shape);
                   }});
    }
    s.push_back({title(op) + "Strided", [=](Maker& m) {
                   binary_backward(m, op, m.uniform({9, 33}, low, 3.0, Layout::flipped),
                                   m.uniform({9, 33}, low, 3.0, Layout::gapped), {9, 33});
                 }});
  }
  s.push_back({"MaximumTies", [](Maker& m) {
                 binary_backward(m, BinaryOp::maximum, m.values({3}, {1, 2, 3}),
                                 m.values({3}, {1, 1, 4}), {3});
               }});
  s.push_back({"PowSingular", [](Maker& m) {
                 binary_backward(m, BinaryOp::pow, m.values({4}, {0, 0, 2, 0}),
                                 m.values({4}, {0, 2, 0, 1}), {4});
               }});
  return s;
}

template <>
std::vector<PrimitiveSample> Samples<prim::Compare>::all() {
  std::vector<PrimitiveSample> s;
  for (int i = 0; i < 6; ++i) {
    s.push_back({compare_names[i], [op = compare_ops[i]](Maker& m) {
                   run(prim::Compare{.op = op,
                                     .a = m.values({7}, {1, 2, 3, nan, -0.0, infinity, -1}),
                                     .b = m.values({7}, {1, 3, 2, nan, 0.0, infinity, nan}),
                                     .y = m.output_as(DType::boolean, "y", {7})});
                 }});
  }
  s.push_back({"Strided", [](Maker& m) {
                 run(prim::Compare{.op = CompareOp::lt,
                                   .a = m.normal({9, 33}, Layout::flipped),
                                   .b = expanded(m.normal({33}), {9, 33}),
                                   .y = m.output_as(DType::boolean, "y", {9, 33})});
               }});
  s.push_back({"Integers",
               [](Maker& m) {
                 run(prim::Compare{.op = CompareOp::ge,
                                   .a = m.integers({41}, -2, 3),
                                   .b = m.integers({41}, -2, 3),
                                   .y = m.output_as(DType::boolean, "y", {41})});
               },
               {DType::i64}});
  s.push_back({"Bytes",
               [](Maker& m) {
                 run(prim::Compare{.op = CompareOp::eq,
                                   .a = m.uniform({41}, 0, 4),
                                   .b = m.uniform({41}, 0, 4),
                                   .y = m.output_as(DType::boolean, "y", {41})});
               },
               {DType::u8, DType::i32}});
  return s;
}

template <>
std::vector<PrimitiveSample> Samples<prim::Where>::all() {
  const std::vector<DType> all_dtypes{DType::f64, DType::f32, DType::f16, DType::bf16,
                                      DType::i64, DType::i32, DType::u8};
  auto sample = [&](const char* name, Shape condition, Shape a, Shape b, Shape shape) {
    return PrimitiveSample{name,
                           [=](Maker& m) {
                             run(prim::Where{.condition = expanded(m.booleans(condition), shape),
                                             .a = expanded(m.uniform(a, 0, 100), shape),
                                             .b = expanded(m.uniform(b, 0, 100), shape),
                                             .y = m.output("y", shape)});
                           },
                           all_dtypes};
  };
  return {sample("Equal", {5, 7}, {5, 7}, {5, 7}, {5, 7}),
          sample("ScalarOther", {5, 7}, {5, 7}, {}, {5, 7}),
          sample("ColumnCondition", {5, 1}, {5, 7}, {7}, {5, 7}),
          sample("OneElement", {}, {}, {}, {}),
          sample("Long", {10007}, {10007}, {1}, {10007}),
          {"StridedAndNaN", [](Maker& m) {
             run(prim::Where{
                 .condition = m.values_as(DType::boolean, {2, 2}, {1, 0, 0, 1}, Layout::flipped),
                 .a = m.values({2, 2}, {nan, nan, 1, infinity}, Layout::gapped),
                 .b = m.values({2, 2}, {nan, 2, 3, nan}, Layout::flipped),
                 .y = m.output("y", {2, 2})});
           }}};
}

namespace {

using Unary = Tensor (*)(const Tensor&);
using Binary = Tensor (*)(const Tensor&, const Tensor&);

struct NamedUnary {
  const char* op;
  std::function<Tensor(const Tensor&)> f;
  double low, high;
  std::vector<double> singular, gradient;  // points without a difference quotient, and the answer
};

void add_unary(OpSamples& s, const NamedUnary& u) {
  struct Input {
    const char* name;
    Shape shape;
    Layout layout = Layout::dense;
  };
  const Input inputs[] = {{"Odd", {3, 5}},
                          {"Scalar", {}},
                          {"Empty", {0, 3}},
                          {"Flipped", {4, 3}, Layout::flipped},
                          {"Gapped", {2, 3, 2}, Layout::gapped},
                          {"OneElement", {1, 1}}};
  for (const Input& i : inputs) {
    s.differentiable.push_back({u.op, i.name,
                                [u, i](Maker& m) {
                                  return std::vector<Tensor>{
                                      m.uniform(i.shape, u.low, u.high, i.layout)};
                                },
                                [u](const std::vector<Tensor>& x, Maker&) { return u.f(x[0]); }});
  }
  s.differentiable.push_back({u.op,
                              "Singular",
                              [u](Maker& m) {
                                return std::vector<Tensor>{m.values(
                                    {static_cast<int64_t>(u.singular.size())}, u.singular)};
                              },
                              [u](const std::vector<Tensor>& x, Maker&) { return u.f(x[0]); },
                              {{u.gradient}}});
  s.errors.push_back({u.op, "Integers", [u](Maker& m) { u.f(m.integers({3}, 0, 5)); },
                      std::string(u.op) + ": x holds i64; f16, bf16, f32 or f64 is needed"});
  s.errors.push_back(
      {u.op, "Undefined", [u](Maker&) { u.f(Tensor()); }, std::string(u.op) + ": x is undefined"});
}

void add_binary(OpSamples& s, const char* op, Binary f, double low) {
  for (const Broadcast& shapes : broadcasts) {
    s.differentiable.push_back(
        {op, shapes.name,
         [=, a = shapes.a, b = shapes.b](Maker& m) {
           return std::vector<Tensor>{m.uniform(a, low, 3.0), m.uniform(b, low, 3.0)};
         },
         [f](const std::vector<Tensor>& x, Maker&) { return f(x[0], x[1]); }});
  }
  s.differentiable.push_back({op, "Strided",
                              [=](Maker& m) {
                                return std::vector<Tensor>{
                                    m.uniform({4, 3}, low, 3.0, Layout::flipped),
                                    m.uniform({4, 3}, low, 3.0, Layout::gapped)};
                              },
                              [f](const std::vector<Tensor>& x, Maker&) { return f(x[0], x[1]); }});
  const std::string name = op;
  s.errors.push_back({op, "Shapes",
                      [f](Maker& m) {
                        f(m.normal({2, 3}), m.normal({2, 4}));
                      },
                      name + ": shapes do not broadcast: [2, 3] and [2, 4]"});
  s.errors.push_back(
      {op, "Dtypes",
       [f](Maker& m) { f(m.values_as(DType::f32, {1}, {1}), m.values_as(DType::f16, {1}, {1})); },
       name + ": dtypes differ: f32 and f16"});
}

void add_singular(OpSamples& s, const char* op, Binary f, const char* name, std::vector<double> a,
                  std::vector<double> b, std::vector<double> da, std::vector<double> db) {
  const int64_t n = static_cast<int64_t>(a.size());
  s.differentiable.push_back({op,
                              name,
                              [=](Maker& m) {
                                return std::vector<Tensor>{m.values({n}, a), m.values({n}, b)};
                              },
                              [f](const std::vector<Tensor>& x, Maker&) { return f(x[0], x[1]); },
                              {{da, db}}});
}

}  // namespace

void add_elementwise_samples(OpSamples& s) {
  // clang-format off
  const NamedUnary unaries[] = {
      {"neg", [](const Tensor& x) { return neg(x); }, -3, 3, {0, infinity}, {-1, -1}},
      {"abs", [](const Tensor& x) { return abs(x); }, -3, 3, {-1, 0, -0.0, 1, nan}, {-1, 0, 0, 1, nan}},
      {"exp", [](const Tensor& x) { return exp(x); }, -3, 3, {-infinity, 0, nan}, {0, 1, nan}},
      {"log", [](const Tensor& x) { return log(x); }, 0.1, 5, {0, 1, nan}, {infinity, 1, nan}},
      {"sqrt", [](const Tensor& x) { return sqrt(x); }, 0.1, 5, {0, 4, nan}, {infinity, 0.25, nan}},
      {"square", [](const Tensor& x) { return square(x); }, -3, 3, {0, -0.0, nan}, {0, 0, nan}},
      {"relu", [](const Tensor& x) { return relu(x); }, -3, 3, {nan, -1, -0.0, 0, 1}, {nan, 0, 0, 0, 1}},
      {"gelu", [](const Tensor& x) { return gelu(x); }, -4, 4, {0, -0.0, 60, -60}, {0.5, 0.5, 1, 0}},
      {"gelu_tanh", [](const Tensor& x) { return gelu_tanh(x); }, -4, 4, {0, -0.0, 60, -60}, {0.5, 0.5, 1, 0}},
      {"sigmoid", [](const Tensor& x) { return sigmoid(x); }, -5, 5, {infinity, -infinity, 0}, {0, 0, 0.25}},
      {"tanh", [](const Tensor& x) { return tanh(x); }, -3, 3, {infinity, -infinity, 0}, {0, 0, 1}},
      {"silu", [](const Tensor& x) { return silu(x); }, -5, 5, {0, 800, -800}, {0.5, 1, 0}},
      {"clamp", [](const Tensor& x) { return clamp(x, -1.25, 0.75); }, -3, 3, {-1.25, 0.75, 2, -2, nan}, {1, 1, 0, 0, nan}},
      {"affine", [](const Tensor& x) { return add(mul(div(sub(x, 0.5), 4.0), 3.0), 1.0); }, -3, 3, {0, infinity}, {0.75, 0.75}},
      {"power", [](const Tensor& x) { return pow(x, 3.0); }, 0.2, 3, {0, -0.0, nan}, {0, 0, nan}},
  };
  // clang-format on
  for (const NamedUnary& u : unaries) add_unary(s, u);
  s.differentiable.push_back({"power",
                              "ExponentZero",
                              [](Maker& m) {
                                return std::vector<Tensor>{m.values({3}, {0, -2, 3})};
                              },
                              [](const std::vector<Tensor>& x, Maker&) { return pow(x[0], 0.0); },
                              {{{0, 0, 0}}}});
  s.differentiable.push_back({"square",
                              "PowerTwo",
                              [](Maker& m) {
                                return std::vector<Tensor>{m.values({3}, {0, -2, 3})};
                              },
                              [](const std::vector<Tensor>& x, Maker&) { return pow(x[0], 2.0); },
                              {{{0, -4, 6}}}});
  s.errors.push_back({"clamp", "LowAboveHigh", [](Maker& m) { clamp(m.normal({2}), 2.0, 1.0); },
                      "clamp: low 2 is above high 1"});

  const std::pair<const char*, Binary> binaries[] = {
      {"add", add}, {"sub", sub},         {"mul", mul},        {"div", div},
      {"pow", pow}, {"maximum", maximum}, {"minimum", minimum}};
  for (const auto& [op, f] : binaries) {
    const std::string name = op;
    add_binary(s, op, f, name == "div" || name == "pow" ? 0.3 : -3.0);
  }
  add_singular(s, "maximum", maximum, "Ties", {1, 2, -0.0}, {1, 1, 0.0}, {0.5, 1, 0.5},
               {0.5, 0, 0.5});
  add_singular(s, "minimum", minimum, "Ties", {1, 2, -0.0}, {1, 1, 0.0}, {0.5, 0, 0.5},
               {0.5, 1, 0.5});
  add_singular(s, "pow", pow, "Zeros", {0, 0, 2, 0}, {0, 2, 0, 1}, {0, 0, 0, 1},
               {0, 0, std::log(2.0), 0});
  add_singular(s, "div", div, "ByZero", {1, -1}, {0, 0}, {infinity, infinity},
               {-infinity, infinity});
  add_singular(s, "mul", mul, "Zeros", {0, 0, 3}, {0, 5, 0}, {0, 5, 0}, {0, 0, 3});
  s.errors.push_back({"div", "Integers",
                      [](Maker& m) { div(m.integers({2}, 1, 5), m.integers({2}, 1, 5)); },
                      "div: the operands hold i64; cast them to a floating dtype first"});

  for (const Broadcast& shapes : broadcasts) {
    s.differentiable.push_back({"where", shapes.name,
                                [a = shapes.a, b = shapes.b](Maker& m) {
                                  return std::vector<Tensor>{m.normal(a), m.normal(b)};
                                },
                                [shape = broadcast_shapes("sample", shapes.a, shapes.b)](
                                    const std::vector<Tensor>& x, Maker& m) {
                                  return where(m.booleans(shape), x[0], x[1]);
                                }});
  }
  s.differentiable.push_back(
      {"where",
       "HiddenNaN",
       [](Maker& m) {
         return std::vector<Tensor>{m.values({2}, {1, nan}), m.values({2}, {infinity, 2})};
       },
       [](const std::vector<Tensor>& x, Maker& m) {
         return where(m.values_as(DType::boolean, {2}, {1, 0}), x[0], x[1]);
       },
       {{{1, 0}, {0, 1}}}});
  s.errors.push_back({"where", "ConditionDtype",
                      [](Maker& m) { where(m.normal({2}), m.normal({2}), m.normal({2})); },
                      "where: condition holds f64; it must be bool"});
  s.errors.push_back({"where", "Shapes",
                      [](Maker& m) { where(m.booleans({3}), m.normal({2}), m.normal({2})); },
                      "where: shapes do not broadcast: [3] and [2]"});

  const std::vector<double> by_op[] = {{0, 1, 0}, {1, 0, 1}, {1, 0, 0},
                                       {1, 1, 0}, {0, 0, 1}, {0, 1, 1}};
  for (int i = 0; i < 6; ++i) {
    s.no_gradient.push_back({"compare", compare_names[i],
                             [op = compare_ops[i]](Maker& m) {
                               return compare(op, m.values({3}, {1, 2, 3}), m.values({1}, {2}));
                             },
                             by_op[i]});
  }
  s.errors.push_back({"compare", "Shapes",
                      [](Maker& m) { compare(CompareOp::lt, m.normal({3}), m.normal({2})); },
                      "compare: shapes do not broadcast: [3] and [2]"});

  auto change = [&](const char* name, auto f, std::vector<double> expected) {
    s.no_gradient.push_back({"in-place change", name,
                             [f](Maker& m) {
                               const Tensor y = m.values({2, 2}, {1, 2, 3, 4});
                               f(y, m);
                               return y;
                             },
                             std::move(expected)});
  };
  change("Add",
         [](const Tensor& y, Maker& m) {
           add_(y, m.values({2, 2}, {1, 1, 2, 2}));
         },
         {2, 3, 5, 6});
  change("AddRow",
         [](const Tensor& y, Maker& m) {
           add_(y, m.values({2}, {10, 20}));
         },
         {11, 22, 13, 24});
  change("AddToColumn",
         [](const Tensor& y, Maker& m) { add_(y.as_strided({2}, {2}, 1), m.values({}, {5})); },
         {1, 7, 3, 9});
  change("Mul", [](const Tensor& y, Maker&) { mul_(y, -2.0); }, {-2, -4, -6, -8});
  change("Fill", [](const Tensor& y, Maker&) { fill_(y, 7.0); }, {7, 7, 7, 7});
  change("CopyConverts",
         [](const Tensor& y, Maker& m) {
           copy_(y, m.integers({2, 1}, 3, 4));
         },
         {3, 3, 3, 3});
  change("CopyTransposed",
         [](const Tensor& y, Maker& m) {
           copy_(y.as_strided({2, 2}, {1, 2}), m.values({2, 2}, {1, 2, 3, 4}));
         },
         {1, 3, 2, 4});
  s.errors.push_back({"in-place change", "AddShapes",
                      [](Maker& m) {
                        add_(m.normal({2}), m.normal({3, 2}));
                      },
                      "add_: [3, 2] does not broadcast to [2]"});
  s.errors.push_back({"in-place change", "CopyShapes",
                      [](Maker& m) { copy_(m.normal({2}), m.normal({3})); },
                      "copy_: shapes do not broadcast: [3] and [2]"});
}

}  // namespace crucible::testing
