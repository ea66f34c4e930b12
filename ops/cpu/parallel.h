/// Sharing a range over the threads of OpenMP, the only pool of the CPU backend.
///
/// Which thread computes what depends on the number of threads, so a body must give every element
/// the same value wherever the cuts fall.  Sums that cross elements are made of blocks whose size
/// does not depend on the threads and are combined in the order of the blocks.
///
/// Subnormal numbers are not flushed to zero: conversions and small gradients keep IEEE results,
/// and `scalar::exp`, the one plentiful source of subnormals, returns 0 instead.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>

namespace crucible::cpu {

/// Elements worth a thread for one pass of cheap arithmetic; a fork costs about a microsecond.
constexpr int64_t cheap_grain = 16384;
/// The same where each element costs an exponential or so.
constexpr int64_t costly_grain = 2048;

/// Calls f(begin, end) for disjoint ranges that cover [0, n), in parallel if n holds at least two
/// grains.  Cuts are multiples of `unit`.  f must not throw.
///
/// The team is always whole or absent: libgomp ends threads when a smaller team is asked for.
template <class F>
void parallel_for(int64_t n, int64_t grain, F&& f, int64_t unit = 1) {
  if (n <= 0) return;
  const int64_t threads = omp_get_max_threads();
  if (threads == 1 || n < 2 * std::max<int64_t>(grain, 1) || omp_in_parallel()) {
    f(int64_t{0}, n);
    return;
  }
  const int64_t units = (n + unit - 1) / unit;
  const int64_t shares = std::min(threads, std::max<int64_t>(n / std::max<int64_t>(grain, 1), 1));
#pragma omp parallel
  {
    // With fewer threads than asked for, a thread takes several shares.
    const int64_t team = omp_get_num_threads();
    for (int64_t share = omp_get_thread_num(); share < shares; share += team) {
      const int64_t begin = units * share / shares * unit;
      const int64_t end = std::min(units * (share + 1) / shares * unit, n);
      if (begin < end) f(begin, end);
    }
  }
}

}  // namespace crucible::cpu
