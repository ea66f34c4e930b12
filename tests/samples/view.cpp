#include "ops/view.h"

#include "tests/samples/op.h"

namespace crucible::testing {
namespace {

using Call = std::function<Tensor(const Tensor&)>;

struct View {
  const char* name;
  Shape x;
  Call call;
  Layout layout = Layout::dense;
};

void add(OpSamples& s, const char* op, const std::vector<View>& views) {
  for (const View& v : views) {
    s.differentiable.push_back(
        {op, v.name, [v](Maker& m) { return std::vector<Tensor>{m.normal(v.x, v.layout)}; },
         [v](const std::vector<Tensor>& t, Maker&) { return v.call(t[0]); }});
  }
}

// The same call on six kinds of input.
void add(OpSamples& s, const char* op, const Call& f, const std::vector<Shape>& shapes) {
  const char* const names[] = {"First", "Second", "Third", "Fourth"};
  std::vector<View> views;
  for (size_t i = 0; i < shapes.size(); ++i) views.push_back({names[i], shapes[i], f});
  views.push_back({"Flipped", shapes[0], f, Layout::flipped});
  views.push_back({"Gapped", shapes[0], f, Layout::gapped});
  add(s, op, views);
}

void refuse(OpSamples& s, const char* op, const char* name, Shape x, const Call& f,
            std::string text) {
  s.errors.push_back({op, name, [=](Maker& m) { f(m.normal(x)); }, std::move(text)});
}

}  // namespace

void add_view_samples(OpSamples& s) {
  add(s, "contiguous", [](const Tensor& x) { return contiguous(transpose(x)); },
      {{3, 4}, {2, 3, 2}, {0, 3}, {1, 1}});

  s.errors.push_back({"contiguous", "Undefined", [](Maker&) { contiguous(Tensor()); },
                      "contiguous: x is undefined"});

  add(s, "reshape",
      {{"Merge", {3, 4}, [](const Tensor& x) { return reshape(x, {12}); }},
       {"Infer",
        {3, 4},
        [](const Tensor& x) {
          return reshape(x, {2, -1, 3});
        }},
       {"Scalar",
        {},
        [](const Tensor& x) {
          return reshape(x, {1, 1});
        }},
       {"ToScalar", {1, 1}, [](const Tensor& x) { return reshape(x, Shape{}); }},
       {"Empty",
        {0, 3},
        [](const Tensor& x) {
          return reshape(x, {3, 0, 2});
        }},
       {"Flipped",
        {3, 4},
        [](const Tensor& x) {
          return reshape(x, {2, 6});
        },
        Layout::flipped},
       {"Gapped", {2, 3}, [](const Tensor& x) { return reshape(x, {6}); }, Layout::gapped}});
  refuse(
      s, "reshape", "Count", {3, 4},
      [](const Tensor& x) {
        return reshape(x, {5, 2});
      },
      "reshape: [3, 4] has 12 elements, [5, 2] has 10");
  refuse(
      s, "reshape", "TwoInferred", {4},
      [](const Tensor& x) {
        return reshape(x, {-1, -1});
      },
      "reshape: two sizes are -1");
  refuse(
      s, "reshape", "NotDivisible", {4},
      [](const Tensor& x) {
        return reshape(x, {3, -1});
      },
      "reshape: 4 elements do not fill the -1");
  refuse(
      s, "reshape", "Negative", {4}, [](const Tensor& x) { return reshape(x, {-2}); },
      "reshape: size -2 at axis 0 is out of range");

  add(s, "permute",
      [](const Tensor& x) {
        return permute(x, {2, 0, 1});
      },
      {{2, 3, 2}, {1, 2, 3}, {0, 2, 3}, {1, 1, 1}});
  refuse(
      s, "permute", "Count", {2, 3}, [](const Tensor& x) { return permute(x, {0}); },
      "permute: 1 axes are given; the tensor has 2");
  refuse(
      s, "permute", "Twice", {2, 3},
      [](const Tensor& x) {
        return permute(x, {1, 1});
      },
      "permute: axis 1 is named twice");
  refuse(
      s, "permute", "AxisOutside", {2, 3},
      [](const Tensor& x) {
        return permute(x, {0, 2});
      },
      "permute: axis 2 is outside [-2, 2)");

  add(s, "transpose", [](const Tensor& x) { return transpose(x, 0, -1); },
      {{3, 4}, {2, 3, 2}, {0, 3}, {5}});
  refuse(
      s, "transpose", "AxisOutside", {2, 3}, [](const Tensor& x) { return transpose(x, 0, 2); },
      "transpose: axis 2 is outside [-2, 2)");

  add(s, "slice",
      {{"Middle", {5, 2}, [](const Tensor& x) { return slice(x, 0, 1, 4); }},
       {"Step", {7}, [](const Tensor& x) { return slice(x, 0, 1, 7, 3); }},
       {"LastAxis", {2, 5}, [](const Tensor& x) { return slice(x, -1, -3, 5, 2); }},
       {"Nothing", {4, 2}, [](const Tensor& x) { return slice(x, 0, 2, 2); }},
       {"Everything", {3}, [](const Tensor& x) { return slice(x, 0, 0, 3); }},
       {"Empty", {0, 3}, [](const Tensor& x) { return slice(x, 1, 1, 2); }},
       {"Flipped", {4, 3}, [](const Tensor& x) { return slice(x, 0, 1, 4, 2); }, Layout::flipped},
       {"OfSlice", {9}, [](const Tensor& x) { return slice(slice(x, 0, 1, 8, 2), 0, 1, 3); }}});
  refuse(
      s, "slice", "Outside", {4}, [](const Tensor& x) { return slice(x, 0, 2, 5); },
      "slice: [2, 5) is not inside axis 0 of size 4");
  refuse(
      s, "slice", "Reversed", {4}, [](const Tensor& x) { return slice(x, 0, 3, 1); },
      "slice: [3, 1) is not inside axis 0 of size 4");
  refuse(
      s, "slice", "StepZero", {4}, [](const Tensor& x) { return slice(x, 0, 0, 4, 0); },
      "slice: step 0 is not positive");

  add(s, "select", [](const Tensor& x) { return select(x, 0, -1); },
      {{3, 4}, {2, 3, 2}, {2, 0}, {5}});
  refuse(
      s, "select", "Outside", {4}, [](const Tensor& x) { return select(x, 0, 4); },
      "select: index 4 is outside axis 0 of size 4");

  add(s, "unsqueeze", [](const Tensor& x) { return unsqueeze(x, -1); }, {{3, 4}, {2}, {0, 3}, {}});
  refuse(
      s, "unsqueeze", "AxisOutside", {2}, [](const Tensor& x) { return unsqueeze(x, 3); },
      "unsqueeze: axis 3 is outside [-2, 2)");

  add(s, "squeeze", [](const Tensor& x) { return squeeze(x, 1); },
      {{3, 1, 2}, {2, 1}, {0, 1}, {1, 1}});
  refuse(
      s, "squeeze", "NotOne", {2, 3}, [](const Tensor& x) { return squeeze(x, 1); },
      "squeeze: axis 1 of [2, 3] has size 3; it must be 1");

  add(s, "expand",
      {{"Row",
        {3},
        [](const Tensor& x) {
          return expand(x, {2, 3});
        }},
       {"Column",
        {3, 1},
        [](const Tensor& x) {
          return expand(x, {3, 4});
        }},
       {"Scalar",
        {},
        [](const Tensor& x) {
          return expand(x, {2, 2});
        }},
       {"ToNothing",
        {4, 1},
        [](const Tensor& x) {
          return expand(x, {4, 0});
        }},
       {"Middle",
        {2, 1, 2},
        [](const Tensor& x) {
          return expand(x, {3, 2, 2, 2});
        }},
       {"Flipped",
        {3, 2},
        [](const Tensor& x) {
          return expand(x, {2, 3, 2});
        },
        Layout::flipped},
       {"Same", {2, 3}, [](const Tensor& x) {
          return expand(x, {2, 3});
        }}});
  refuse(
      s, "expand", "Shapes", {3}, [](const Tensor& x) { return expand(x, {2}); },
      "expand: shapes do not broadcast: [3] and [2]");
  refuse(
      s, "expand", "Smaller", {3}, [](const Tensor& x) { return expand(x, {1}); },
      "expand: [3] does not broadcast to [1]");
}

}  // namespace crucible::testing
