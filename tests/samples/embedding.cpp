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

}  // namespace crucible::testing
