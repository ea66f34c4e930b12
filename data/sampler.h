/// Which samples make which batch: a pure function of (seed, epoch), shared out over ranks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace crucible::data {

struct SamplerOptions {
  int64_t batch_size = 32;  ///< Of each rank.
  uint64_t seed = 0;
  bool shuffle = true;
  bool drop_last = false;  ///< Leave out a last batch that is not full on every rank.
  int64_t rank = 0;
  int64_t world_size = 1;
};

/// Cuts one global order into batches.
///
/// Batch b of all ranks together is the next batch_size * world_size samples of the order, rank
/// after rank; a shorter last one is split as evenly as it goes.  So every sample is used exactly
/// once an epoch (unless drop_last), each rank has the same number of batches, and the union over
/// ranks does not depend on how many share it.  Only with fewer samples left than ranks is a batch
/// empty.
class Sampler {
 public:
  /// Throws    InvalidArgument for an option out of range, or if no batch would be left.
  Sampler(int64_t size, const SamplerOptions& options);

  const SamplerOptions& options() const { return options_; }
  int64_t size() const { return size_; }        ///< Samples of the data set.
  int64_t batches() const { return batches_; }  ///< Of an epoch, the same on every rank.

  /// The order of all samples in an epoch (Durstenfeld 1964 with Philox; identity without shuffle).
  std::vector<int64_t> order(int64_t epoch) const;
  /// This rank's samples of batch `batch`, in [0, batches()), of such an order.
  std::span<const int64_t> batch(std::span<const int64_t> order, int64_t batch) const;

 private:
  int64_t size_;
  SamplerOptions options_;
  int64_t batches_;
};

/// The seed of everything random about one epoch that concerns `purpose`.
uint64_t epoch_seed(uint64_t seed, int64_t epoch, uint64_t purpose);

}  // namespace crucible::data
