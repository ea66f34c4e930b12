#include "ops/cast.h"

#include <cmath>
#include <limits>

#include "tests/reference/reference_backend.h"
#include "tests/samples/op.h"

namespace crucible::testing {

void add_cast_samples(OpSamples& s) {
  struct Sample {
    const char* name;
    Shape x;
    DType to;
    Layout layout = Layout::dense;
  };
  // Narrower types round the result: difference quotients say nothing, the gradient is known.
  for (const Sample& c : {Sample{"ToF32", {2, 3}, DType::f32}, Sample{"ToF16", {3}, DType::f16},
                          Sample{"ToBf16", {3}, DType::bf16}, Sample{"Same", {2}, DType::f64},
                          Sample{"Scalar", {}, DType::f32}, Sample{"Empty", {0, 2}, DType::f32},
                          Sample{"Flipped", {2, 3}, DType::f32, Layout::flipped}}) {
    s.differentiable.push_back(
        {"cast",
         c.name,
         [c](Maker& m) { return std::vector<Tensor>{m.normal(c.x, c.layout)}; },
         [c](const std::vector<Tensor>& t, Maker&) { return cast(t[0], c.to); },
         {{std::vector<double>(c.x.numel(), 1.0)}}});
  }
  s.no_gradient.push_back({"cast",
                           "ToInteger",
                           [](Maker& m) {
                             Tensor x = m.values({4}, {-1.7, 2.9, std::nan(""), 1e300});
                             x.set_requires_grad();
                             return cast(x, DType::i32);
                           },
                           {-1, 2, 0, std::numeric_limits<int32_t>::max()}});
  s.errors.push_back(
      {"cast", "Undefined", [](Maker&) { cast(Tensor(), DType::f32); }, "cast: x is undefined"});

  auto other = [](const Tensor& x) {
    return x.device() == Device::cpu() ? reference::device : Device::cpu();
  };
  struct Transfer {
    const char* name;
    Shape x;
    Layout layout = Layout::dense;
  };
  for (const Transfer& c :
       {Transfer{"Odd", {3, 5}}, Transfer{"Scalar", {}}, Transfer{"Empty", {0, 3}},
        Transfer{"Flipped", {4, 3}, Layout::flipped}, Transfer{"Gapped", {2, 3}, Layout::gapped},
        Transfer{"OneElement", {1}}}) {
    s.differentiable.push_back(
        {"to_device", c.name,
         [c](Maker& m) { return std::vector<Tensor>{m.normal(c.x, c.layout)}; },
         [other](const std::vector<Tensor>& t, Maker&) { return to_device(t[0], other(t[0])); }});
  }
  s.differentiable.push_back(
      {"to_device", "Same", [](Maker& m) { return std::vector<Tensor>{m.normal({2})}; },
       [](const std::vector<Tensor>& t, Maker&) { return to_device(t[0], t[0].device()); }});
  s.errors.push_back({"to_device", "Undefined", [](Maker&) { to_device(Tensor(), Device::cpu()); },
                      "to_device: x is undefined"});
}

}  // namespace crucible::testing
