#include "ops/conv.h"

#include "ops/view.h"
#include "tests/samples/op.h"
#include "tests/samples/primitive.h"

namespace crucible::testing {
namespace {

struct Case {
  const char* name;
  int64_t n, h, w, c, o;
  Window window;
  int64_t groups = 1;
  bool bias = false;
};

const Case cases[] = {
    {"OneByOne", 2, 5, 7, 8, 16, {{1, 1}}},
    {"ThreeByThree", 2, 8, 8, 3, 16, {{3, 3}, {1, 1}, {1, 1}}, 1, true},
    {"StrideRoundsDown", 1, 8, 9, 4, 5, {{3, 3}, {2, 2}, {0, 0}}},
    {"StrideLargerThanKernel", 1, 9, 10, 2, 3, {{2, 1}, {3, 4}, {0, 0}}},
    {"Dilated", 1, 9, 9, 3, 4, {{3, 2}, {1, 2}, {2, 1}, {2, 3}}},
    {"Grouped", 2, 6, 5, 6, 9, {{3, 3}, {1, 1}, {1, 1}}, 3, true},
    {"Depthwise", 1, 7, 7, 8, 8, {{3, 3}, {2, 2}, {1, 1}}, 8},
    {"FullPadding", 1, 3, 3, 2, 2, {{3, 3}, {1, 1}, {2, 2}}},
    {"Stem", 1, 17, 17, 3, 8, {{7, 7}, {2, 2}, {3, 3}}, 1, true},
    {"WholeImage", 2, 5, 4, 3, 4, {{5, 4}}},
    {"OneChannel", 1, 28, 28, 1, 1, {{3, 3}, {1, 1}, {1, 1}}, 1, true},
    {"OneElement", 1, 1, 1, 1, 1, {{1, 1}}, 1, true},
    {"Wide", 1, 6, 6, 32, 33, {{3, 3}, {1, 1}, {1, 1}}},
    {"StridedOneByOne", 2, 7, 7, 16, 8, {{1, 1}, {2, 2}}},
};

Shape weight_shape(const Case& c) {
  return {c.o, c.window.kernel[0], c.window.kernel[1], c.c / c.groups};
}
Shape output_shape(const Case& c) {
  auto size = [&](int i, int64_t in) {
    const Window& w = c.window;
    return (in + 2 * w.padding[i] - w.dilation[i] * (w.kernel[i] - 1) - 1) / w.stride[i] + 1;
  };
  return {c.n, size(0, c.h), size(1, c.w), c.o};
}

template <class F>
std::vector<PrimitiveSample> for_each_case(F f) {
  std::vector<PrimitiveSample> s;
  for (const Case& c : cases) s.push_back({c.name, [c, f](Maker& m) { f(m, c); }});
  return s;
}

}  // namespace

template <>
std::vector<PrimitiveSample> Samples<prim::Convolution>::all() {
  return for_each_case([](Maker& m, const Case& c) {
    run(prim::Convolution{.x = m.normal({c.n, c.h, c.w, c.c}),
                          .w = m.normal(weight_shape(c)),
                          .bias = c.bias ? m.normal({c.o}) : prim::none,
                          .window = c.window,
                          .groups = c.groups,
                          .y = m.output("y", output_shape(c))});
  });
}

template <>
std::vector<PrimitiveSample> Samples<prim::ConvolutionDataGradient>::all() {
  return for_each_case([](Maker& m, const Case& c) {
    run(prim::ConvolutionDataGradient{.dy = m.normal(output_shape(c)),
                                      .w = m.normal(weight_shape(c)),
                                      .window = c.window,
                                      .groups = c.groups,
                                      .dx = m.output("dx", {c.n, c.h, c.w, c.c})});
  });
}

template <>
std::vector<PrimitiveSample> Samples<prim::ConvolutionFilterGradient>::all() {
  std::vector<PrimitiveSample> s = for_each_case([](Maker& m, const Case& c) {
    run(prim::ConvolutionFilterGradient{.x = m.normal({c.n, c.h, c.w, c.c}),
                                        .dy = m.normal(output_shape(c)),
                                        .window = c.window,
                                        .groups = c.groups,
                                        .dw = m.output("dw", weight_shape(c))});
  });
  s.push_back({"NoImages", [](Maker& m) {
                 run(prim::ConvolutionFilterGradient{.x = m.normal({0, 5, 5, 3}),
                                                     .dy = m.normal({0, 3, 3, 4}),
                                                     .window = {{3, 3}},
                                                     .dw = m.output("dw", {4, 3, 3, 3})});
               }});
  return s;
}

void add_conv_samples(OpSamples& s) {
  struct Sample {
    const char* name;
    Shape x, w;
    ConvOptions options = {};
    bool bias = false;
    Layout layout = Layout::dense;
  };
  const Sample samples[] = {
      {"OneByOne", {1, 2, 2, 3}, {2, 1, 1, 3}},
      {"ThreeByThreePadded", {1, 3, 3, 2}, {2, 3, 3, 2}, {.padding = 1}, true},
      {"StrideRoundsDown", {1, 4, 5, 1}, {2, 3, 2, 1}, {.stride = 2}},
      {"StrideLargerThanKernel", {1, 5, 4, 1}, {1, 1, 2, 1}, {.stride = 3}},
      {"Dilated", {1, 5, 5, 1}, {1, 2, 2, 1}, {.padding = 1, .dilation = {2, 3}}},
      {"Grouped", {1, 3, 3, 4}, {2, 2, 2, 2}, {.groups = 2}, true},
      {"Depthwise", {1, 3, 3, 3}, {3, 2, 2, 1}, {.stride = {1, 2}, .groups = 3}},
      {"Flipped", {2, 3, 2, 2}, {1, 2, 2, 2}, {}, true, Layout::flipped},
      {"NoImages", {0, 3, 3, 2}, {2, 2, 2, 2}, {}, true},
      {"OneElement", {1, 1, 1, 1}, {1, 1, 1, 1}, {}, true},
  };
  for (const Sample& c : samples) {
    s.differentiable.push_back(
        {"conv2d", c.name,
         [c](Maker& m) {
           std::vector<Tensor> t{m.normal(c.x, c.layout), m.normal(c.w, c.layout)};
           if (c.bias) t.push_back(m.normal({c.w[0]}));
           return t;
         },
         [c](const std::vector<Tensor>& t, Maker&) {
           return conv2d(t[0], t[1], c.bias ? t[2] : Tensor(), c.options);
         }});
  }
  auto refuse = [&](const char* name, ConvOptions options, const char* text,
                    Shape w = {2, 3, 3, 4}) {
    s.errors.push_back({"conv2d", name,
                        [=](Maker& m) {
                          conv2d(m.normal({1, 5, 5, 4}), m.normal(w), {}, options);
                        },
                        text});
  };
  refuse("StrideZero", {.stride = 0}, "conv2d: stride 0 is outside [1, 2^30)");
  refuse("DilationZero", {.dilation = 0}, "conv2d: dilation 0 is outside [1, 2^30)");
  refuse("PaddingNegative", {.padding = -1}, "conv2d: padding -1 is outside [0, 2^30)");
  refuse("KernelTooLarge", {}, "conv2d: the kernel spans 6 pixels, the padded input has 5",
         {2, 6, 6, 4});
  refuse("DilatedKernelTooLarge", {.dilation = 3},
         "conv2d: the kernel spans 7 pixels, the padded input has 5: kernel 3, dilation 3");
  refuse("GroupsZero", {.groups = 0}, "do not fit 0 groups");
  refuse("Channels", {}, "conv2d: 4 input channels, 2 output channels and weight [2, 3, 3, 3]",
         {2, 3, 3, 3});
  s.errors.push_back({"conv2d", "Rank",
                      [](Maker& m) {
                        conv2d(m.normal({5, 5, 4}), m.normal({2, 3, 3, 4}), {});
                      },
                      "conv2d: x is [5, 5, 4], weight is [2, 3, 3, 4]"});
  s.errors.push_back({"conv2d", "Bias",
                      [](Maker& m) {
                        conv2d(m.normal({1, 5, 5, 4}), m.normal({2, 3, 3, 4}), m.normal({3}));
                      },
                      "conv2d: bias is [3]; it must be [2]"});
}

}  // namespace crucible::testing
