/// Batches of tensors from a data set, built ahead by worker threads.
#pragma once

#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "data/dataset.h"
#include "data/sampler.h"

namespace crucible::data {

/// The samples of one batch, stacked along a new first axis: images f32 [N, H, W, C] and labels
/// i64 [N], or tokens and next tokens i64 [B, T].
struct Batch {
  Tensor inputs;
  Tensor targets;
};

/// A sample that could not be read, and why (the text names its file).
struct BadSample {
  int64_t index;
  std::string reason;
};

/// Where a run stands in its data, and what that position depends on.
struct LoaderState {
  int64_t epoch = 0;
  int64_t next_batch = 0;
  int64_t dataset_size = 0;
  int64_t batch_size = 0;
  int64_t world_size = 1;
  uint64_t seed = 0;
  bool shuffle = true;
  bool drop_last = false;

  friend bool operator==(const LoaderState&, const LoaderState&) = default;
};

struct LoaderOptions {
  int64_t batch_size = 32;  ///< Of each rank.
  uint64_t seed = 0;        ///< Of the order and of augmentation.
  bool shuffle = true;
  int workers = 1;         ///< Threads that build batches; 0 builds them in the caller's thread.
  bool drop_last = false;  ///< Leave out a last batch that is not full.
  int64_t prefetch = 4;    ///< Batches held ready ahead of the consumer, at most.
  int64_t rank = 0;
  int64_t world_size = 1;
  bool skip_bad = false;        ///< Leave unreadable samples out instead of stopping.
  double max_bad_share = 0.01;  ///< With skip_bad: stop once more than this share is unreadable.
  /// Called in the consumer's thread as each batch is delivered, with the samples it holds.
  std::function<void(int64_t epoch, int64_t batch, std::span<const int64_t> samples)> on_batch;
};

/// One pass over the data set, or the rest of one; made by Loader::epoch, used in a range-for once.
///
/// What is delivered depends on the seed, the epoch and the data set alone, not on the number of
/// workers.  An exception in a worker is thrown from the ++ (or begin) that would have delivered
/// its batch.  Destroying an unfinished epoch stops and joins its workers.
class Epoch {
 public:
  class Iterator {
   public:
    using value_type = Batch;
    using difference_type = std::ptrdiff_t;
    Iterator() = default;
    const Batch& operator*() const { return epoch_->batch_; }
    Iterator& operator++() {
      epoch_->advance();
      return *this;
    }
    void operator++(int) { epoch_->advance(); }
    bool operator==(std::default_sentinel_t) const { return epoch_->done_; }

   private:
    friend class Epoch;
    explicit Iterator(Epoch* epoch) : epoch_(epoch) {}
    Epoch* epoch_ = nullptr;
  };

  ~Epoch();
  Epoch(const Epoch&) = delete;  // nor moved: iterators point to it
  Epoch& operator=(const Epoch&) = delete;

  Iterator begin();
  std::default_sentinel_t end() const { return {}; }
  /// The batch to start with if this pass is broken off now and resumed later.
  int64_t next_batch() const;

 private:
  friend class Loader;
  struct Pipeline;
  explicit Epoch(std::unique_ptr<Pipeline> pipeline);
  void advance();

  std::unique_ptr<Pipeline> pipeline_;
  Batch batch_;
  bool done_ = false;
};

class Loader {
 public:
  /// Throws    InvalidArgument for an option out of range or an empty data set.
  Loader(DatasetPtr dataset, LoaderOptions options);

  const Dataset& dataset() const { return *dataset_; }
  const LoaderOptions& options() const { return options_; }
  int64_t batches() const { return sampler_.batches(); }  ///< Of a whole epoch.

  /// The batches of an epoch on `device`, from `first_batch` on.  In a sharded loader a rank
  /// without samples left gets an empty last batch; a lone loader whose whole batch is unreadable
  /// skips it. Throws    InvalidArgument for a negative epoch or first_batch outside [0,
  /// batches()].
  Epoch epoch(int64_t epoch, Device device = Device::cpu(), int64_t first_batch = 0) const;

  /// Samples skipped so far, each once, by index.
  std::vector<BadSample> bad_samples() const;

  LoaderState state(int64_t epoch, int64_t next_batch) const;
  /// Whether epoch(state.epoch, device, state.next_batch) goes on where `state` was taken.
  /// Throws    InvalidArgument naming the setting that differs.
  void check_resume(const LoaderState& state) const;

 private:
  friend class Epoch;
  struct BadList;

  DatasetPtr dataset_;
  LoaderOptions options_;
  Sampler sampler_;
  std::shared_ptr<BadList> bad_;
};

}  // namespace crucible::data
