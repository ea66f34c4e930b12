#include "ops/matmul.h"

#include "ops/view.h"
#include "tests/samples/op.h"
#include "tests/samples/primitive.h"

namespace crucible::testing {
namespace {

struct Product {
  std::string name;
  int64_t batch_a, batch_b, m, n, k;
  bool transpose_a = false, transpose_b = false;
  bool bias = false;
  Activation activation = Activation::none;
};

PrimitiveSample sample(Product p) {
  return {
      p.name, [p](Maker& m) {
        const int64_t batch = std::max(p.batch_a, p.batch_b);
        const bool gelu = p.activation == Activation::gelu_tanh;
        const Shape shape{batch, p.m, p.n};
        run(prim::Matmul{
            .a = m.normal(p.transpose_a ? Shape{p.batch_a, p.k, p.m} : Shape{p.batch_a, p.m, p.k}),
            .b = m.normal(p.transpose_b ? Shape{p.batch_b, p.n, p.k} : Shape{p.batch_b, p.k, p.n}),
            .transpose_a = p.transpose_a,
            .transpose_b = p.transpose_b,
            .bias = p.bias ? m.normal({p.n}) : prim::none,
            .activation = p.activation,
            .pre_activation = gelu ? m.output("pre_activation", shape) : prim::none,
            .y = m.output("y", shape)});
      }};
}

PrimitiveSample backward(const char* name, Activation activation, int64_t rows, int64_t columns,
                         bool with_dz, bool with_db, bool in_place = false) {
  return {
      name, [=](Maker& m) {
        const Tensor saved = activation == Activation::none ? Tensor() : m.normal({rows, columns});
        const Tensor dy = m.normal({rows, columns});
        run(prim::BiasActivationBackward{.activation = activation,
                                         .saved = saved,
                                         .dy = dy,
                                         .dz = !with_dz   ? prim::none
                                               : in_place ? m.changes("dz", dy)
                                                          : m.output("dz", {rows, columns}),
                                         .db = with_db ? m.output("db", {columns}) : prim::none});
      }};
}

}  // namespace

template <>
std::vector<PrimitiveSample> Samples<prim::Matmul>::all() {
  std::vector<PrimitiveSample> s;
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      const std::string suffix = std::string(ta ? "T" : "N") + (tb ? "T" : "N");
      s.push_back(sample({"Odd" + suffix, 1, 1, 7, 33, 17, ta, tb}));
      s.push_back(sample({"Batched" + suffix, 3, 3, 5, 9, 12, ta, tb}));
      s.push_back(sample({"LeftOnce" + suffix, 1, 4, 5, 3, 8, ta, tb}));
      s.push_back(sample({"RightOnce" + suffix, 4, 1, 5, 3, 8, ta, tb}));
      s.push_back(sample({"Vector" + suffix, 1, 1, 1, 64, 31, ta, tb}));
      s.push_back(sample({"Column" + suffix, 1, 1, 64, 1, 31, ta, tb}));
      s.push_back(sample({"NoInner" + suffix, 2, 2, 3, 4, 0, ta, tb}));
      s.push_back(sample({"Long" + suffix, 1, 1, 4, 5, 4097, ta, tb}));
    }
  }
  s.push_back(sample({"OneElement", 1, 1, 1, 1, 1}));
  s.push_back(sample({"Square", 1, 1, 96, 96, 96}));
  for (const auto& [name, activation] :
       {std::pair{"None", Activation::none}, std::pair{"Relu", Activation::relu},
        std::pair{"GeluTanh", Activation::gelu_tanh}}) {
    s.push_back(
        sample({std::string("Linear") + name, 1, 1, 33, 20, 48, false, true, true, activation}));
    s.push_back(
        sample({std::string("NoBias") + name, 1, 1, 9, 130, 16, false, true, false, activation}));
    s.push_back(
        sample({std::string("BiasOnly") + name, 1, 1, 3, 5, 0, false, true, true, activation}));
    s.push_back(
        sample({std::string("BatchedBias") + name, 3, 1, 4, 6, 5, false, false, true, activation}));
  }
  return s;
}

template <>
std::vector<PrimitiveSample> Samples<prim::BiasActivationBackward>::all() {
  return {backward("NoneBias", Activation::none, 33, 17, false, true),
          backward("NoneBiasLong", Activation::none, 5000, 3, false, true),
          backward("NoneBiasNoRows", Activation::none, 0, 5, false, true),
          backward("Relu", Activation::relu, 33, 17, true, true),
          backward("ReluNoBias", Activation::relu, 9, 70, true, false),
          backward("ReluInPlace", Activation::relu, 65, 33, true, true, true),
          backward("GeluTanh", Activation::gelu_tanh, 33, 17, true, true),
          backward("GeluTanhNoBias", Activation::gelu_tanh, 9, 70, true, false),
          backward("GeluTanhInPlace", Activation::gelu_tanh, 257, 8, true, true, true),
          backward("OneElement", Activation::relu, 1, 1, true, true)};
}

void add_matmul_samples(OpSamples& s) {
  auto product = [&](const char* name, Shape a, Shape b, Layout la = Layout::dense,
                     Layout lb = Layout::dense) {
    s.differentiable.push_back(
        {"matmul", name,
         [=](Maker& m) {
           return std::vector<Tensor>{m.normal(a, la), m.normal(b, lb)};
         },
         [](const std::vector<Tensor>& x, Maker&) { return matmul(x[0], x[1]); }});
  };
  product("Matrices", {3, 4}, {4, 2});
  product("RowTimesMatrix", {3}, {3, 2});
  product("MatrixTimesColumn", {2, 3}, {3});
  product("Dot", {4}, {4});
  product("Batched", {2, 2, 3}, {2, 3, 2});
  product("BatchBroadcast", {2, 1, 2, 2}, {3, 2, 1});
  product("OneBatchManyMatrices", {2, 2}, {3, 2, 2});
  product("FlippedLeft", {3, 4}, {4, 2}, Layout::flipped);
  product("FlippedRight", {3, 4}, {4, 2}, Layout::dense, Layout::flipped);
  product("GappedBoth", {2, 3}, {3, 2}, Layout::gapped, Layout::gapped);
  product("NoInner", {2, 0}, {0, 3});
  product("NoRows", {0, 3}, {3, 2});
  product("NoBatch", {0, 2, 3}, {3, 2});
  product("OneElement", {1, 1}, {1, 1});
  s.errors.push_back({"matmul", "InnerSizes",
                      [](Maker& m) {
                        matmul(m.normal({64, 784}), m.normal({512, 10}));
                      },
                      "matmul: inner sizes differ: a is [64, 784], b is [512, 10]; a's last axis "
                      "(784) must equal b's second to last (512)."});
  s.errors.push_back({"matmul", "Batches",
                      [](Maker& m) {
                        matmul(m.normal({2, 1, 1}), m.normal({3, 1, 1}));
                      },
                      "matmul: shapes do not broadcast: [2] and [3]"});
  s.errors.push_back({"matmul", "Scalar",
                      [](Maker& m) {
                        matmul(m.normal({}), m.normal({3, 1}));
                      },
                      "both need at least one axis"});
  s.errors.push_back({"matmul", "Integers",
                      [](Maker& m) {
                        matmul(m.integers({2, 2}, 0, 3), m.integers({2, 2}, 0, 3));
                      },
                      "matmul: the operands hold i64"});

  auto layer = [&](const char* name, Shape x, Shape w, bool bias, Activation activation,
                   Layout lx = Layout::dense, Layout lw = Layout::dense) {
    s.differentiable.push_back({"linear", name,
                                [=](Maker& m) {
                                  std::vector<Tensor> t{m.normal(x, lx), m.normal(w, lw)};
                                  if (bias) t.push_back(m.normal({w[0]}));
                                  return t;
                                },
                                [=](const std::vector<Tensor>& t, Maker&) {
                                  return linear(t[0], t[1], bias ? t[2] : Tensor(), activation);
                                }});
  };
  layer("Bias", {3, 4}, {2, 4}, true, Activation::none);
  layer("NoBias", {3, 4}, {2, 4}, false, Activation::none);
  layer("Relu", {3, 4}, {5, 4}, true, Activation::relu);
  layer("ReluNoBias", {3, 4}, {5, 4}, false, Activation::relu);
  layer("GeluTanh", {3, 4}, {3, 4}, true, Activation::gelu_tanh);
  layer("GeluTanhNoBias", {3, 4}, {3, 4}, false, Activation::gelu_tanh);
  layer("ThreeAxes", {2, 2, 3}, {2, 3}, true, Activation::none);
  layer("Vector", {3}, {2, 3}, true, Activation::gelu_tanh);
  layer("Flipped", {3, 4}, {2, 4}, true, Activation::none, Layout::flipped, Layout::flipped);
  layer("NoRows", {0, 3}, {2, 3}, true, Activation::relu);
  layer("NoInputs", {2, 0}, {3, 0}, true, Activation::none);
  s.errors.push_back({"linear", "Sizes",
                      [](Maker& m) {
                        linear(m.normal({2, 3}), m.normal({4, 5}), {});
                      },
                      "linear: x is [2, 3], weight is [4, 5]"});
  s.errors.push_back({"linear", "Bias",
                      [](Maker& m) {
                        linear(m.normal({2, 3}), m.normal({4, 3}), m.normal({3}));
                      },
                      "linear: bias is [3], weight is [4, 3]; bias must be [4]"});
}

}  // namespace crucible::testing
