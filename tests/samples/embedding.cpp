#include "ops/embedding.h"

#include "ops/view.h"
#include "tests/samples/op.h"
#include "tests/samples/primitive.h"

namespace crucible::testing {
namespace {

struct Case {
  const char* name;
  int64_t vocabulary, width, rows;
};
const Case cases[] = {{"Odd", 11, 7, 33},          {"Wide", 5, 1025, 3}, {"OneRow", 1, 3, 4},
                      {"OneColumn", 9, 1, 100},    {"NoIds", 4, 5, 0},   {"OneElement", 1, 1, 1},
                      {"ManyRepeats", 2, 16, 3000}};

}  // namespace

template <>
std::vector<PrimitiveSample> Samples<prim::Embedding>::all() {
  std::vector<PrimitiveSample> s;
  for (const Case& c : cases) {
    s.push_back({c.name, [c](Maker& m) {
                   run(prim::Embedding{.table = m.normal({c.vocabulary, c.width}),
                                       .ids = m.integers({c.rows}, 0, c.vocabulary),
                                       .y = m.output("y", {c.rows, c.width})});
                 }});
  }
  return s;
}

template <>
std::vector<PrimitiveSample> Samples<prim::EmbeddingBackward>::all() {
  std::vector<PrimitiveSample> s;
  for (const Case& c : cases) {
    s.push_back(
        {c.name, [c](Maker& m) {
           run(prim::EmbeddingBackward{.ids = m.integers({c.rows}, 0, c.vocabulary),
                                       .dy = m.normal({c.rows, c.width}),
                                       .dtable = m.output("dtable", {c.vocabulary, c.width})});
         }});
  }
  return s;
}

void add_embedding_samples(OpSamples& s) {
  struct Sample {
    const char* name;
    Shape table, ids;
    Layout layout = Layout::dense;
  };
  for (const Sample& c :
       {Sample{"Vector", {5, 3}, {4}}, Sample{"Matrix", {3, 2}, {2, 3}},
        Sample{"Scalar", {4, 3}, {}}, Sample{"NoIds", {3, 2}, {0}}, Sample{"Repeats", {2, 2}, {7}},
        Sample{"Flipped", {4, 3}, {3}, Layout::flipped}, Sample{"OneColumn", {3, 1}, {3}}}) {
    s.differentiable.push_back(
        {"embedding", c.name,
         [c](Maker& m) { return std::vector<Tensor>{m.normal(c.table, c.layout)}; },
         [c](const std::vector<Tensor>& t, Maker& m) {
           return embedding(t[0], m.integers(c.ids, 0, c.table[0]));
         }});
  }
  s.differentiable.push_back({"embedding", "StridedIds",
                              [](Maker& m) {
                                return std::vector<Tensor>{m.normal({3, 2})};
                              },
                              [](const std::vector<Tensor>& t, Maker& m) {
                                return embedding(t[0], transpose(m.integers({2, 3}, 0, 3)));
                              }});
  auto refuse = [&](const char* name, auto make_ids, const char* text) {
    s.errors.push_back({"embedding", name,
                        [=](Maker& m) {
                          embedding(m.normal({5, 2}), make_ids(m));
                        },
                        text});
  };
  refuse(
      "IdTooLarge",
      [](Maker& m) {
        return m.labels({0, 5});
      },
      "embedding: id 5 at position 1 is outside [0, 5)");
  refuse(
      "IdNegative", [](Maker& m) { return m.labels({-1}); },
      "embedding: id -1 at position 0 is outside [0, 5)");
  refuse(
      "IdDtype", [](Maker& m) { return m.normal({2}); }, "embedding: ids are f64");
}

}  // namespace crucible::testing
