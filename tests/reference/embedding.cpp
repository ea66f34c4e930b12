#include "core/check.h"
#include "tests/reference/reference_backend.h"
#include "tests/reference/values.h"

namespace crucible::reference {

void ReferenceBackend::kernel(const prim::Embedding& p) {
  const int64_t rows = p.table.size(0), width = p.table.size(1);
  const std::vector<Real> table = read(p.table);
  const std::vector<int64_t> ids = read_integers(p.ids);
  std::vector<Real> y;
  for (size_t i = 0; i < ids.size(); ++i) {
    check(ids[i] >= 0 && ids[i] < rows,
          "embedding: id {} at position {} is outside [0, {}); check the vocabulary size.", ids[i],
          i, rows);
    y.insert(y.end(), table.begin() + ids[i] * width, table.begin() + (ids[i] + 1) * width);
  }
  write(p.y, y);
}

void ReferenceBackend::kernel(const prim::EmbeddingBackward& p) {
  const int64_t width = p.dtable.size(1);
  const std::vector<int64_t> ids = read_integers(p.ids);
  const std::vector<Real> dy = read(p.dy);
  std::vector<Sum> sums(p.dtable.numel());
  for (size_t i = 0; i < ids.size(); ++i) {
    for (int64_t c = 0; c < width; ++c) sums[ids[i] * width + c].add(dy[i * width + c]);
  }
  std::vector<Real> dtable;
  for (const Sum& s : sums) dtable.push_back(s.total());
  write(p.dtable, dtable);
}

}  // namespace crucible::reference
