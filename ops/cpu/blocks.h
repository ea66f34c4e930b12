/// Sums over the rows of a [rows, columns] matrix that do not depend on the number of threads:
/// blocks of rows, whose size depends on the shape alone, each give a partial result.
#pragma once

#include <memory>

#include "ops/cpu/parallel.h"

namespace crucible::cpu {

struct RowBlocks {
  static constexpr int64_t chunk = 512;  ///< Columns of one task.

  RowBlocks(int64_t rows, int64_t columns)
      : rows(rows),
        columns(columns),
        length(std::clamp<int64_t>((rows + 63) / 64, 64, 512)),
        count((rows + length - 1) / length) {}

  /// Calls f(block, first row, rows, first column, columns) for every block and chunk of columns.
  template <class F>
  void for_each(F&& f) const {
    const int64_t chunks = (columns + chunk - 1) / chunk;
    const int64_t task = std::min(length, rows) * std::min(chunk, columns);
    parallel_for(count * chunks, cheap_grain / std::max<int64_t>(task, 1),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) {
                     const int64_t block = i / chunks, column = i % chunks * chunk;
                     f(block, block * length, std::min(length, rows - block * length), column,
                       std::min(chunk, columns - column));
                   }
                 });
  }

  /// Calls f(begin, end) for ranges of columns, to combine the blocks of each.
  template <class F>
  void for_columns(F&& f) const {
    parallel_for(columns, cheap_grain / std::max<int64_t>(count, 1), f, 16);
  }

  int64_t rows, columns, length, count;
};

/// `n` zeros of a workspace.
template <class A>
std::unique_ptr<A[]> zeros(int64_t n) {
  return std::make_unique<A[]>(n);
}

}  // namespace crucible::cpu
