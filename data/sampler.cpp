#include "data/sampler.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/check.h"
#include "core/rng.h"

namespace crucible::data {
namespace {

constexpr uint64_t shuffle_purpose = 0x5348554646;  // "SHUFF"

}  // namespace

Sampler::Sampler(int64_t size, const SamplerOptions& options) : size_(size), options_(options) {
  constexpr int64_t largest = int64_t{1} << 31;
  const SamplerOptions& o = options_;
  check(size > 0, "sampler: the data set has {} samples; it needs at least one.", size);
  check(o.batch_size > 0 && o.batch_size < largest,
        "sampler: batch size {} is outside [1, 2^31); set batch_size.", o.batch_size);
  check(o.world_size > 0 && o.world_size <= (1 << 20) && o.rank >= 0 && o.rank < o.world_size,
        "sampler: rank {} of {} is not in [0, world_size); correct one of them.", o.rank,
        o.world_size);
  const int64_t together = o.batch_size * o.world_size;
  batches_ = o.drop_last ? size / together : (size - 1) / together + 1;
  check(batches_ > 0,
        "sampler: {} samples do not fill one batch of {} on {} ranks and drop_last is set; use a "
        "smaller batch.",
        size, o.batch_size, o.world_size);
}

std::vector<int64_t> Sampler::order(int64_t epoch) const {
  std::vector<int64_t> order(static_cast<size_t>(size_));
  std::iota(order.begin(), order.end(), int64_t{0});
  if (!options_.shuffle) return order;
  Rng rng(epoch_seed(options_.seed, epoch, shuffle_purpose));
  for (int64_t i = size_ - 1; i > 0; --i) {
    std::swap(order[static_cast<size_t>(i)], order[static_cast<size_t>(rng.below(i + 1))]);
  }
  return order;
}

std::span<const int64_t> Sampler::batch(std::span<const int64_t> order, int64_t batch) const {
  const int64_t together = options_.batch_size * options_.world_size;
  const int64_t first = batch * together;
  const int64_t count = std::min(together, size_ - first);
  const int64_t begin = first + count * options_.rank / options_.world_size;
  const int64_t end = first + count * (options_.rank + 1) / options_.world_size;
  return order.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
}

uint64_t epoch_seed(uint64_t seed, int64_t epoch, uint64_t purpose) {
  const Philox::Words words = Philox::block(seed, purpose, static_cast<uint64_t>(epoch));
  return uint64_t{words[1]} << 32 | words[0];
}

}  // namespace crucible::data
