#include "ops/join.h"

#include "ops/view.h"
#include "tests/samples/op.h"

namespace crucible::testing {

void add_join_samples(OpSamples& s) {
  struct Sample {
    const char* name;
    std::vector<Shape> shapes;
    int axis;
    Layout layout = Layout::dense;
  };
  auto add = [&](const char* op, auto f, const std::vector<Sample>& samples) {
    for (const Sample& c : samples) {
      s.differentiable.push_back(
          {op, c.name,
           [c](Maker& m) {
             std::vector<Tensor> t;
             for (const Shape& shape : c.shapes) {
               t.push_back(m.normal(shape, c.layout));
             }
             return t;
           },
           [c, f](const std::vector<Tensor>& t, Maker&) { return f(t, c.axis); }});
    }
  };
  add("concat", concat,
      {{"Rows", {{2, 3}, {1, 3}}, 0},
       {"Columns", {{2, 3}, {2, 1}, {2, 2}}, -1},
       {"One", {{3}}, 0},
       {"WithEmpty", {{2, 2}, {0, 2}, {1, 2}}, 0},
       {"AllEmpty", {{0}, {0}}, 0},
       {"Flipped", {{3, 2}, {3, 4}}, 1, Layout::flipped},
       {"Gapped", {{2, 2, 2}, {2, 1, 2}}, 1, Layout::gapped}});
  s.differentiable.push_back({"concat", "SameTwice",
                              [](Maker& m) {
                                return std::vector<Tensor>{m.normal({2, 2})};
                              },
                              [](const std::vector<Tensor>& t, Maker&) {
                                return concat({t[0], transpose(t[0])}, 0);
                              }});
  add("stack", stack,
      {{"First", {{2, 3}, {2, 3}}, 0},
       {"Last", {{2, 3}, {2, 3}}, -1},
       {"Middle", {{2, 2}, {2, 2}, {2, 2}}, 1},
       {"Scalars", {{}, {}, {}}, 0},
       {"Empty", {{0, 2}, {0, 2}}, 1},
       {"Flipped", {{3, 2}, {3, 2}}, 1, Layout::flipped},
       {"One", {{4}}, 0}});

  s.errors.push_back(
      {"concat", "EmptyList", [](Maker&) { concat({}, 0); }, "concat: the list is empty"});
  s.errors.push_back({"concat", "Sizes",
                      [](Maker& m) {
                        concat({m.normal({2, 3}), m.normal({2, 4})}, 0);
                      },
                      "concat: [2, 3] and [2, 4] differ outside axis 0"});
  s.errors.push_back({"concat", "Ranks",
                      [](Maker& m) {
                        concat({m.normal({2, 3}), m.normal({2})}, 0);
                      },
                      "concat: [2, 3] and [2] differ outside axis 0"});
  s.errors.push_back({"concat", "AxisOutside", [](Maker& m) { concat({m.normal({2})}, 1); },
                      "concat: axis 1 is outside [-1, 1)"});
  s.errors.push_back({"stack", "Shapes",
                      [](Maker& m) {
                        stack({m.normal({2}), m.normal({3})}, 0);
                      },
                      "stack: shapes differ: [2] and [3]"});
  s.errors.push_back(
      {"stack", "EmptyList", [](Maker&) { stack({}, 0); }, "stack: the list is empty"});

  struct Pad {
    const char* name;
    Shape x;
    std::vector<std::array<int64_t, 2>> widths;
    double value = 0.0;
    Layout layout = Layout::dense;
  };
  for (const Pad& c : {Pad{"Around", {2, 3}, {{1, 1}, {2, 0}}}, Pad{"Value", {3}, {{0, 2}}, 7.0},
                       Pad{"Nothing", {2, 2}, {{0, 0}, {0, 0}}}, Pad{"Scalar", {}, {}},
                       Pad{"Empty", {0, 2}, {{2, 1}, {0, 1}}},
                       Pad{"Flipped", {3, 2}, {{1, 0}, {0, 1}}, 0.0, Layout::flipped},
                       Pad{"Gapped", {2, 2}, {{1, 0}, {0, 1}}, 1.0, Layout::gapped}}) {
    s.differentiable.push_back(
        {"pad", c.name, [c](Maker& m) { return std::vector<Tensor>{m.normal(c.x, c.layout)}; },
         [c](const std::vector<Tensor>& t, Maker&) { return pad(t[0], c.widths, c.value); }});
  }
  s.errors.push_back({"pad", "Count",
                      [](Maker& m) {
                        pad(m.normal({2, 3}), {{1, 1}});
                      },
                      "pad: 1 pairs are given; [2, 3] has 2 axes"});
  s.errors.push_back({"pad", "Negative",
                      [](Maker& m) {
                        pad(m.normal({2}), {{-1, 0}});
                      },
                      "pad: widths -1 and 0 at axis 0 are out of range"});
}

}  // namespace crucible::testing
