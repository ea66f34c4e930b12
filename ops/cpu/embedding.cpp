// Rows of a table by index.  The gradient sorts positions by index (counting sort, stable), so that
// each row of the table is summed by one thread in ascending order of position.
#include <algorithm>
#include <vector>

#include "core/check.h"
#include "ops/cpu/cpu_backend.h"
#include "ops/cpu/parallel.h"
#include "ops/cpu/strided.h"

namespace crucible::cpu {
namespace {

void check_ids(const Tensor& ids, int64_t vocabulary) {
  const int64_t* id = ids.data<int64_t>();
  for (int64_t i = 0; i < ids.numel(); ++i) {
    check(id[i] >= 0 && id[i] < vocabulary,
          "embedding: id {} at position {} is outside [0, {}); check the vocabulary size.", id[i],
          i, vocabulary);
  }
}

template <class T>
void embedding_backward(const prim::EmbeddingBackward& p) {
  using A = Accumulator<T>;
  const int64_t vocabulary = p.dtable.size(0), c = p.dtable.size(1), count = p.ids.numel();
  const int64_t* ids = p.ids.data<int64_t>();
  std::vector<int64_t> first(vocabulary + 1, 0), order(count);
  for (int64_t i = 0; i < count; ++i) ++first[ids[i] + 1];
  for (int64_t v = 0; v < vocabulary; ++v) first[v + 1] += first[v];
  std::vector<int64_t> next(first.begin(), first.end() - 1);
  for (int64_t i = 0; i < count; ++i) order[next[ids[i]]++] = i;

  const T* dy = p.dy.data<T>();
  T* dtable = p.dtable.data<T>();
  parallel_for(vocabulary, cheap_grain / std::max<int64_t>(c, 1), [&](int64_t begin, int64_t end) {
    A sums[block_elements];
    for (int64_t v = begin; v < end; ++v) {
      T* to = dtable + v * c;
      if (first[v] == first[v + 1]) {
        std::fill_n(to, c, T(0.0f));
        continue;
      }
      for (int64_t j = 0; j < c; j += block_elements) {
        const int64_t n = std::min(block_elements, c - j);
        std::fill_n(sums, n, A(0));
        for (int64_t k = first[v]; k < first[v + 1]; ++k) {
          const T* from = dy + order[k] * c + j;
          for (int64_t i = 0; i < n; ++i) sums[i] += static_cast<A>(from[i]);
        }
        read_run(sums, 1, to + j, n);
      }
    }
  });
}

}  // namespace

void CpuBackend::kernel(const prim::Embedding& p) {
  check_ids(p.ids, p.table.size(0));
  const int64_t row_bytes = p.table.size(1) * size_of(p.table.dtype());
  const int64_t* ids = p.ids.data<int64_t>();
  parallel_for(p.ids.numel(), cheap_grain / std::max<int64_t>(p.table.size(1), 1),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   std::memcpy(p.y.raw_data() + i * row_bytes,
                               p.table.raw_data() + ids[i] * row_bytes, row_bytes);
                 }
               });
}

void CpuBackend::kernel(const prim::EmbeddingBackward& p) {
  check_ids(p.ids, p.dtable.size(0));
  visit_dtype(p.dtable.dtype(), Floats{}, [&]<class T>() { embedding_backward<T>(p); });
}

}  // namespace crucible::cpu
