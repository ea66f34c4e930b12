#include "data/loader.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

#include "core/allocator.h"
#include "core/check.h"
#include "core/rng.h"

namespace crucible::data {
namespace {

constexpr uint64_t augment_purpose = 0x4155474d;  // "AUGM"

/// A batch on its way from a worker to the consumer.  Buffers are reused from batch to batch.
struct HostBatch {
  std::vector<std::byte> inputs;
  std::vector<std::byte> targets;
  std::vector<int64_t> samples;
  std::vector<BadSample> bad;
  std::exception_ptr error;
};

int64_t bytes_of(const Shape& shape, DType dtype) {
  return shape.numel() * size_of(dtype);
}

/// Builds any batch of one epoch; used by all workers at once.
struct Builder {
  const Dataset& dataset;
  const Sampler& sampler;
  std::vector<int64_t> order;
  uint64_t augment_seed;
  bool skip_bad;

  void build(int64_t number, HostBatch& out, const std::stop_token& stop) const {
    const auto samples = sampler.batch(order, number);
    const SampleSpec spec = dataset.sample();
    const auto input_bytes = static_cast<size_t>(bytes_of(spec.input, spec.input_dtype));
    const auto target_bytes = static_cast<size_t>(bytes_of(spec.target, spec.target_dtype));
    out.inputs.resize(samples.size() * input_bytes);
    out.targets.resize(samples.size() * target_bytes);
    out.samples.clear();
    out.bad.clear();
    out.error = nullptr;
    for (const int64_t index : samples) {
      if (stop.stop_requested()) return;
      const size_t row = out.samples.size();
      Rng rng(augment_seed, static_cast<uint64_t>(index));
      try {
        dataset.read(index, rng, {out.inputs.data() + row * input_bytes, input_bytes},
                     {out.targets.data() + row * target_bytes, target_bytes});
        out.samples.push_back(index);
      } catch (const IoError& e) {
        if (!skip_bad) throw;
        out.bad.push_back({index, e.what()});
      }
    }
  }

  void build_or_keep_error(int64_t number, HostBatch& out, const std::stop_token& stop) const {
    try {
      build(number, out, stop);
    } catch (...) {
      out.error = std::current_exception();
    }
  }
};

/// `count` samples from a buffer as one tensor [count, ...].
Tensor stack(const std::vector<std::byte>& bytes, int64_t count, const Shape& shape, DType dtype,
             Device device) {
  Tensor tensor;
  visit_dtype(dtype, Numbers{}, [&]<class T>() {
    const auto* values = reinterpret_cast<const T*>(bytes.data());
    const auto size = static_cast<size_t>(count * shape.numel());
    tensor = Tensor::from(std::span<const T>(values, size), shape.insert(0, count), device);
  });
  check(tensor.defined(), "loader: samples of dtype {} are not supported; use numbers.",
        name_of(dtype));
  return tensor;
}

}  // namespace

struct Loader::BadList {
  mutable std::mutex mutex;
  std::map<int64_t, std::string> reasons;
};

/// The workers of one epoch and the ring through which batches come from them in order.
struct Epoch::Pipeline {
  DatasetPtr dataset;
  Sampler sampler;
  LoaderOptions options;
  std::shared_ptr<Loader::BadList> bad;
  int64_t epoch;
  Device device;
  Builder builder;
  HostBatch current;

  struct Slot {
    HostBatch batch;
    bool ready = false;
  };
  std::mutex mutex;
  std::condition_variable_any is_ready;
  std::condition_variable_any has_room;
  std::vector<Slot> ring;
  int64_t next_claimed;               // by a worker
  int64_t next_delivered;             // to the consumer
  std::vector<std::jthread> workers;  // last: joined before anything they use is gone

  Pipeline(const Loader& loader, int64_t epoch_number, Device to, int64_t first_batch)
      : dataset(loader.dataset_),
        sampler(loader.sampler_),
        options(loader.options_),
        bad(loader.bad_),
        epoch(epoch_number),
        device(to),
        builder{*dataset, sampler, sampler.order(epoch),
                epoch_seed(options.seed, epoch, augment_purpose), options.skip_bad},
        next_claimed(first_batch),
        next_delivered(first_batch) {
    const int64_t left = sampler.batches() - first_batch;
    const auto threads = std::min<int64_t>(options.workers, left);
    ring.resize(static_cast<size_t>(std::max(options.prefetch, threads)));
    for (int64_t i = 0; i < threads; ++i) {
      workers.emplace_back([this](std::stop_token stop) { work(stop); });
    }
  }

  Slot& slot(int64_t number) { return ring[static_cast<size_t>(number) % ring.size()]; }

  void work(const std::stop_token& stop) {
    std::unique_lock lock(mutex);
    while (true) {
      const auto room = [&] {
        return next_claimed == sampler.batches() ||
               next_claimed < next_delivered + static_cast<int64_t>(ring.size());
      };
      if (!has_room.wait(lock, stop, room) || next_claimed == sampler.batches()) return;
      const int64_t number = next_claimed++;
      Slot& mine = slot(number);
      lock.unlock();
      builder.build_or_keep_error(number, mine.batch, stop);
      lock.lock();
      mine.ready = true;
      is_ready.notify_all();
    }
  }

  /// Moves the next batch into `current`.
  void take() {
    if (workers.empty()) {
      builder.build_or_keep_error(next_delivered++, current, {});
    } else {
      std::unique_lock lock(mutex);
      Slot& next = slot(next_delivered);
      is_ready.wait(lock, [&] { return next.ready; });
      std::swap(current, next.batch);
      next.ready = false;
      ++next_delivered;
      has_room.notify_all();
    }
    if (current.error) std::rethrow_exception(std::exchange(current.error, nullptr));
  }

  /// Counts the unreadable samples of `current`; throws if there are too many by now.
  void note_bad() {
    if (current.bad.empty()) return;
    std::lock_guard lock(bad->mutex);
    for (BadSample& sample : current.bad) {
      bad->reasons.emplace(sample.index, std::move(sample.reason));
    }
    const auto count = static_cast<int64_t>(bad->reasons.size());
    const auto most = options.max_bad_share * static_cast<double>(dataset->size());
    check<IoError>(static_cast<double>(count) <= most,
                   "loader: {} of {} samples are unreadable, more than the allowed share of {}; "
                   "repair them or raise max_bad_share.  The last one: {}",
                   count, dataset->size(), options.max_bad_share,
                   bad->reasons.at(current.bad.back().index));
  }

  /// The next batch; false at the end of the epoch.
  bool next(Batch& out) {
    while (next_delivered < sampler.batches()) {
      const int64_t number = next_delivered;
      take();
      note_bad();
      const auto count = static_cast<int64_t>(current.samples.size());
      if (count == 0 && options.world_size == 1) continue;
      const SampleSpec spec = dataset->sample();
      const MemoryTagScope tag(MemoryTag::data);
      out = {};  // its memory may serve the next one
      out.inputs = stack(current.inputs, count, spec.input, spec.input_dtype, device);
      out.targets = stack(current.targets, count, spec.target, spec.target_dtype, device);
      if (options.on_batch) options.on_batch(epoch, number, current.samples);
      return true;
    }
    return false;
  }
};

Epoch::Epoch(std::unique_ptr<Pipeline> pipeline) : pipeline_(std::move(pipeline)) {}
Epoch::~Epoch() = default;

Epoch::Iterator Epoch::begin() {
  advance();
  return Iterator(this);
}

int64_t Epoch::next_batch() const {
  return pipeline_->next_delivered;
}

void Epoch::advance() {
  done_ = true;  // also if next() throws
  done_ = !pipeline_->next(batch_);
}

Loader::Loader(DatasetPtr dataset, LoaderOptions options)
    : dataset_(std::move(dataset)),
      options_(std::move(options)),
      sampler_(dataset_ ? dataset_->size() : 0, {.batch_size = options_.batch_size,
                                                 .seed = options_.seed,
                                                 .shuffle = options_.shuffle,
                                                 .drop_last = options_.drop_last,
                                                 .rank = options_.rank,
                                                 .world_size = options_.world_size}),
      bad_(std::make_shared<BadList>()) {
  check(options_.workers >= 0 && options_.workers <= 256,
        "loader: {} workers are outside [0, 256]; set workers.", options_.workers);
  check(options_.prefetch >= 1 && options_.prefetch <= 4096,
        "loader: prefetch {} is outside [1, 4096]; set prefetch.", options_.prefetch);
  check(options_.max_bad_share >= 0 && options_.max_bad_share <= 1,
        "loader: max_bad_share {} is outside [0, 1]; give a share of the data set.",
        options_.max_bad_share);
  const SampleSpec spec = dataset_->sample();
  const int64_t bytes =
      std::max(bytes_of(spec.input, spec.input_dtype), bytes_of(spec.target, spec.target_dtype));
  check(bytes <= (int64_t{1} << 40) / options_.batch_size,
        "loader: a batch of {} samples of {} bytes passes 1 TiB; set a smaller batch_size.",
        options_.batch_size, bytes);
}

Epoch Loader::epoch(int64_t epoch, Device device, int64_t first_batch) const {
  check(epoch >= 0, "loader: epoch {} is negative; count epochs from 0.", epoch);
  check(
      first_batch >= 0 && first_batch <= batches(),
      "loader: first batch {} is outside [0, {}]; resume with the settings the position was taken "
      "with.",
      first_batch, batches());
  return Epoch(std::make_unique<Epoch::Pipeline>(*this, epoch, device, first_batch));
}

std::vector<BadSample> Loader::bad_samples() const {
  std::lock_guard lock(bad_->mutex);
  std::vector<BadSample> list;
  for (const auto& [index, reason] : bad_->reasons) list.push_back({index, reason});
  return list;
}

LoaderState Loader::state(int64_t epoch, int64_t next_batch) const {
  return {.epoch = epoch,
          .next_batch = next_batch,
          .dataset_size = dataset_->size(),
          .batch_size = options_.batch_size,
          .world_size = options_.world_size,
          .seed = options_.seed,
          .shuffle = options_.shuffle,
          .drop_last = options_.drop_last};
}

void Loader::check_resume(const LoaderState& saved) const {
  const LoaderState now = state(saved.epoch, saved.next_batch);
  const auto same = [](const char* what, auto then, auto here) {
    check(
        then == here,
        "loader: cannot resume in the middle of an epoch: {} was {}, is {}; use the saved setting "
        "or start a new run.",
        what, then, here);
  };
  same("dataset_size", saved.dataset_size, now.dataset_size);
  same("batch_size", saved.batch_size, now.batch_size);
  same("world_size", saved.world_size, now.world_size);
  same("seed", saved.seed, now.seed);
  same("shuffle", saved.shuffle, now.shuffle);
  same("drop_last", saved.drop_last, now.drop_last);
  check(saved.epoch >= 0 && saved.next_batch >= 0 && saved.next_batch <= batches(),
        "loader: saved position epoch {} batch {} is outside an epoch of {} batches; the state is "
        "damaged.",
        saved.epoch, saved.next_batch, batches());
}

}  // namespace crucible::data
