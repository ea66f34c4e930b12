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

}  // namespace crucible::testing
