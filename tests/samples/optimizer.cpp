#include "tests/samples/primitive.h"

namespace crucible::testing {
namespace {

struct Sgd {
  const char* name;
  int64_t n;
  double momentum = 0.0, weight_decay = 0.0;
  bool nesterov = false, decoupled = false, first = false, scaled = false;
};

void sgd_step(Maker& m, const Sgd& c) {
  const Tensor velocity = c.momentum != 0.0 ? m.normal({c.n}) : Tensor();
  const Tensor param = m.normal({c.n});
  run(prim::SgdStep{.lr = 0.1,
                    .momentum = c.momentum,
                    .weight_decay = c.weight_decay,
                    .nesterov = c.nesterov,
                    .decoupled = c.decoupled,
                    .first_step = c.first,
                    .grad_scale = c.scaled ? m.uniform({}, 0.1, 1.0) : prim::none,
                    .grad = m.normal({c.n}),
                    .velocity = velocity.defined() ? m.changes("velocity", velocity) : prim::none,
                    .param = m.changes("param", param)});
}

struct AdamW {
  const char* name;
  int64_t n, step;
  double weight_decay = 0.0;
  bool scaled = false;
};

void adamw_step(Maker& m, const AdamW& c) {
  const Tensor first = m.normal({c.n}), second = m.uniform({c.n}, 0.0, 1.0);
  const Tensor param = m.normal({c.n});
  run(prim::AdamWStep{.lr = 1e-2,
                      .weight_decay = c.weight_decay,
                      .step = c.step,
                      .grad_scale = c.scaled ? m.uniform({}, 0.1, 1.0) : prim::none,
                      .grad = m.normal({c.n}),
                      .m = m.changes("m", first),
                      .v = m.changes("v", second),
                      .param = m.changes("param", param)});
}

}  // namespace

template <>
std::vector<PrimitiveSample> Samples<prim::SgdStep>::all() {
  std::vector<PrimitiveSample> s;
  for (const Sgd& c :
       {Sgd{"Plain", 37}, Sgd{"Decay", 1000, 0.0, 0.1}, Sgd{"Momentum", 20011, 0.9, 0.01},
        Sgd{"FirstStep", 33, 0.9, 0.01, false, false, true}, Sgd{"Nesterov", 65, 0.9, 0.01, true},
        Sgd{"Decoupled", 65, 0.9, 0.1, true, true},
        Sgd{"Scaled", 130, 0.9, 0.1, false, false, false, true}, Sgd{"OneElement", 1}}) {
    s.push_back({c.name, [c](Maker& m) { sgd_step(m, c); }, full_precision});
  }
  return s;
}

template <>
std::vector<PrimitiveSample> Samples<prim::AdamWStep>::all() {
  std::vector<PrimitiveSample> s;
  for (const AdamW& c : {AdamW{"First", 37, 1}, AdamW{"Later", 20011, 100},
                         AdamW{"Decay", 65, 3, 0.1}, AdamW{"Scaled", 130, 7, 0.1, true},
                         AdamW{"OneElement", 1, 2}, AdamW{"VeryLate", 33, 1000000, 0.01}}) {
    s.push_back({c.name, [c](Maker& m) { adamw_step(m, c); }, full_precision});
  }
  s.push_back({"ZeroGradient",
               [](Maker& m) {
                 const Tensor zero1 = m.values({3}, {0, 0, 0}), zero2 = m.values({3}, {0, 0, 0});
                 const Tensor param = m.normal({3});
                 run(prim::AdamWStep{.lr = 0.01,
                                     .weight_decay = 0.1,
                                     .step = 1,
                                     .grad = m.values({3}, {0, 0, 0}),
                                     .m = m.changes("m", zero1),
                                     .v = m.changes("v", zero2),
                                     .param = m.changes("param", param)});
               },
               full_precision});
  return s;
}

}  // namespace crucible::testing
