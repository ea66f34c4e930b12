// Order, resume and failure of the loader; pain log P17 and the threads of P18.
#include "data/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <mutex>
#include <set>
#include <thread>

#include "core/error.h"
#include "core/rng.h"
#include "tests/data/made_files.h"

namespace crucible::data {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Sample i is [i, a random number]; some samples fail.
class Numbered : public Dataset {
 public:
  explicit Numbered(int64_t size, std::set<int64_t> bad = {}) : size_(size), bad_(std::move(bad)) {}
  int64_t size() const override { return size_; }
  SampleSpec sample() const override { return {Shape{2}, DType::f32, Shape{}, DType::i64}; }
  int64_t classes() const override { return size_; }
  std::string description() const override { return "numbered"; }
  void read(int64_t index, Rng& rng, std::span<std::byte> input,
            std::span<std::byte> target) const override {
    ++reads;
    if (delay.count() > 0) std::this_thread::sleep_for(delay);
    if (bad_.contains(index)) throw IoError("file-" + std::to_string(index) + ": is damaged.");
    if (index == fatal) throw std::runtime_error("worker died at " + std::to_string(index));
    const float values[] = {static_cast<float>(index), rng.uniform()};
    std::memcpy(input.data(), values, sizeof values);
    std::memcpy(target.data(), &index, sizeof index);
  }
  mutable std::atomic<int64_t> reads = 0;
  std::chrono::milliseconds delay{0};
  int64_t fatal = -1;

 private:
  int64_t size_;
  std::set<int64_t> bad_;
};

/// Everything that a pass delivers: sample ids and the random numbers that came with them.
struct Stream {
  std::vector<int64_t> ids;
  std::vector<float> randoms;
  friend bool operator==(const Stream&, const Stream&) = default;
};

void append(Epoch pass, Stream& stream, int64_t most_batches = 1'000'000) {
  if (most_batches == 0) return;
  for (const auto& [inputs, targets] : pass) {
    const auto ids = targets.to_vector<int64_t>();
    const auto values = inputs.to_vector<float>();
    ASSERT_EQ(inputs.shape(), (Shape{static_cast<int64_t>(ids.size()), 2}));
    stream.ids.insert(stream.ids.end(), ids.begin(), ids.end());
    for (size_t i = 0; i < ids.size(); ++i) {
      EXPECT_EQ(values[2 * i], static_cast<float>(ids[i]));
      stream.randoms.push_back(values[2 * i + 1]);
    }
    if (--most_batches == 0) break;
  }
}

TEST(Loader, DeliversTheSameWhateverTheNumberOfWorkers) {
  const auto dataset = std::make_shared<Numbered>(101);
  std::vector<Stream> streams;
  for (const int workers : {0, 1, 3, 8}) {
    for (const int64_t prefetch : {1, 4}) {
      const Loader loader(dataset,
                          {.batch_size = 7, .seed = 9, .workers = workers, .prefetch = prefetch});
      append(loader.epoch(3), streams.emplace_back());
    }
  }
  EXPECT_EQ(streams.front().ids.size(), 101u);
  for (const Stream& stream : streams) EXPECT_TRUE(stream == streams.front());
}

TEST(Loader, AugmentationChangesWithTheEpoch) {
  const Loader loader(std::make_shared<Numbered>(20), {.batch_size = 20, .shuffle = false});
  Stream first, second, again;
  append(loader.epoch(0), first);
  append(loader.epoch(1), second);
  append(loader.epoch(0), again);
  EXPECT_EQ(first.ids, second.ids);
  EXPECT_NE(first.randoms, second.randoms);
  EXPECT_TRUE(first == again);
}

TEST(Loader, KeepsThePartialLastBatch) {
  const Loader loader(std::make_shared<Numbered>(10), {.batch_size = 4});
  std::vector<int64_t> sizes;
  for (const auto& [inputs, targets] : loader.epoch(0)) sizes.push_back(inputs.size(0));
  EXPECT_THAT(sizes, ElementsAre(4, 4, 2));
  EXPECT_EQ(loader.batches(), 3);
}

// P17: 64 samples, batch 4, 3 epochs; stopped and resumed at several steps.
TEST(Loader, ResumeContinuesTheSameStream) {
  const auto dataset = std::make_shared<Numbered>(64);
  for (const int workers : {0, 4}) {
    for (const int64_t world_size : {1, 2}) {
      for (int64_t rank = 0; rank < world_size; ++rank) {
        const LoaderOptions options{.batch_size = 4,
                                    .seed = 11,
                                    .workers = workers,
                                    .rank = rank,
                                    .world_size = world_size};
        const Loader loader(dataset, options);
        const int64_t per_epoch = loader.batches();
        ASSERT_EQ(per_epoch, 16 / world_size);
        Stream whole;
        for (int64_t e = 0; e < 3; ++e) append(loader.epoch(e), whole);
        for (const int64_t stop : {0, 1, 5, 15, 16, 17, 31}) {
          if (stop > 3 * per_epoch) continue;
          Stream parts;
          for (int64_t e = 0; e < stop / per_epoch; ++e) append(loader.epoch(e), parts);
          append(loader.epoch(stop / per_epoch), parts, stop % per_epoch);
          const LoaderState state = loader.state(stop / per_epoch, stop % per_epoch);

          Rng(11).next_word();  // draws from elsewhere change nothing
          Stream evaluation;
          append(Loader(dataset, {.batch_size = 9, .shuffle = false}).epoch(0), evaluation);

          const Loader fresh(dataset, options);
          fresh.check_resume(state);
          append(fresh.epoch(state.epoch, Device::cpu(), state.next_batch), parts);
          for (int64_t e = state.epoch + 1; e < 3; ++e) append(fresh.epoch(e), parts);
          EXPECT_TRUE(parts == whole) << "stop " << stop << " workers " << workers << " rank "
                                      << rank << " of " << world_size;
        }
      }
    }
  }
}

TEST(Loader, RefusesToResumeWithOtherSettings) {
  const auto dataset = std::make_shared<Numbered>(64);
  const LoaderState state = Loader(dataset, {.batch_size = 4, .seed = 1}).state(1, 5);
  const auto why = [&](DatasetPtr data, const LoaderOptions& options) {
    return refusal([&] { Loader(data, options).check_resume(state); });
  };
  EXPECT_EQ(why(dataset, {.batch_size = 4, .seed = 1, .workers = 3}), "accepted");
  EXPECT_THAT(why(dataset, {.batch_size = 8, .seed = 1}), HasSubstr("batch_size was 4, is 8"));
  EXPECT_THAT(why(dataset, {.batch_size = 4, .seed = 1, .world_size = 2}),
              HasSubstr("world_size was 1, is 2"));
  EXPECT_THAT(why(dataset, {.batch_size = 4, .seed = 2}), HasSubstr("seed was 1, is 2"));
  EXPECT_THAT(why(std::make_shared<Numbered>(65), {.batch_size = 4, .seed = 1}),
              HasSubstr("dataset_size was 64, is 65"));
}

TEST(Loader, NextBatchIsWhereToResume) {
  const Loader loader(std::make_shared<Numbered>(40), {.batch_size = 4, .workers = 3});
  Epoch pass = loader.epoch(0, Device::cpu(), 2);
  EXPECT_EQ(pass.next_batch(), 2);
  int64_t expected = 3;
  for (auto it = pass.begin(); it != pass.end(); ++it) EXPECT_EQ(pass.next_batch(), expected++);
  EXPECT_EQ(expected, 11);
}

TEST(Loader, ReportsTheSamplesOfEachBatch) {
  std::vector<int64_t> logged;
  const Loader loader(
      std::make_shared<Numbered>(10),
      {.batch_size = 4, .on_batch = [&](int64_t epoch, int64_t, std::span<const int64_t> ids) {
         EXPECT_EQ(epoch, 2);
         logged.insert(logged.end(), ids.begin(), ids.end());
       }});
  Stream stream;
  append(loader.epoch(2), stream);
  EXPECT_EQ(logged, stream.ids);
}

TEST(Loader, CarriesAWorkersExceptionInOrder) {
  const auto dataset = std::make_shared<Numbered>(64);
  dataset->fatal = 42;
  for (const int workers : {0, 1, 8}) {
    const Loader loader(dataset, {.batch_size = 4, .shuffle = false, .workers = workers});
    int64_t delivered = 0;
    try {
      for (const auto& batch : loader.epoch(0)) delivered += batch.inputs.size(0);
      FAIL() << "no exception";
    } catch (const std::runtime_error& e) {
      EXPECT_STREQ(e.what(), "worker died at 42");
    }
    EXPECT_EQ(delivered, 40);
  }
}

TEST(Loader, RefusesABadSampleByDefault) {
  const auto dataset = std::make_shared<Numbered>(20, std::set<int64_t>{7});
  for (const int workers : {0, 1, 8}) {
    const Loader loader(dataset, {.batch_size = 4, .workers = workers});
    Stream stream;
    EXPECT_EQ(refusal([&] { append(loader.epoch(0), stream); }), "file-7: is damaged.");
  }
}

TEST(Loader, SkipsBadSamplesAndListsThem) {
  const auto dataset = std::make_shared<Numbered>(20, std::set<int64_t>{3, 4, 5, 6, 7, 19});
  for (const int workers : {0, 1, 8}) {
    const Loader loader(dataset, {.batch_size = 4,
                                  .shuffle = false,
                                  .workers = workers,
                                  .skip_bad = true,
                                  .max_bad_share = 0.3});
    Stream stream;
    append(loader.epoch(0), stream);
    append(loader.epoch(1), stream);  // counted once only
    EXPECT_EQ(stream.ids.size(), 28u);
    std::vector<int64_t> bad;
    for (const BadSample& sample : loader.bad_samples()) bad.push_back(sample.index);
    EXPECT_THAT(bad, ElementsAre(3, 4, 5, 6, 7, 19));
    EXPECT_EQ(loader.bad_samples()[1].reason, "file-4: is damaged.");
  }
}

TEST(Loader, StopsOverTheAllowedShareOfBadSamples) {
  const auto dataset = std::make_shared<Numbered>(20, std::set<int64_t>{3, 4, 19});
  const Loader loader(dataset,
                      {.batch_size = 4, .shuffle = false, .skip_bad = true, .max_bad_share = 0.1});
  Stream stream;
  EXPECT_THAT(refusal([&] { append(loader.epoch(0), stream); }),
              AllOf(HasSubstr("3 of 20 samples"), HasSubstr("file-19")));
  EXPECT_EQ(stream.ids.size(), 14u);
}

TEST(Loader, HoldsNoMoreThanItsPrefetch) {
  const auto dataset = std::make_shared<Numbered>(400);
  const Loader loader(dataset, {.batch_size = 4, .workers = 2, .prefetch = 3});
  Epoch pass = loader.epoch(0);
  pass.begin();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_LE(dataset->reads, (1 + 3) * 4);
  EXPECT_GE(dataset->reads, 3 * 4);
}

TEST(Loader, AbandonedEpochStopsItsWorkers) {
  const auto dataset = std::make_shared<Numbered>(400'000);
  dataset->delay = std::chrono::milliseconds(5);
  const auto start = std::chrono::steady_clock::now();
  {
    const Loader loader(dataset, {.batch_size = 1000, .workers = 4});
    const Epoch pass = loader.epoch(0);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
}

TEST(Loader, ShardWithoutSamplesGetsAnEmptyBatch) {
  const auto dataset = std::make_shared<Numbered>(3);
  int64_t total = 0;
  for (int64_t rank = 0; rank < 4; ++rank) {
    const Loader loader(dataset, {.batch_size = 2, .rank = rank, .world_size = 4});
    int64_t batches = 0;
    for (const auto& [inputs, targets] : loader.epoch(0)) {
      ++batches;
      total += targets.size(0);
      EXPECT_EQ(inputs.size(0), targets.size(0));
    }
    EXPECT_EQ(batches, 1);
  }
  EXPECT_EQ(total, 3);
}

TEST(Loader, RefusesOptionsOutOfRange) {
  const auto why = [](const LoaderOptions& options) {
    return refusal([&] { Loader(std::make_shared<Numbered>(8), options); });
  };
  EXPECT_THAT(why({.batch_size = 0}), HasSubstr("batch size 0"));
  EXPECT_THAT(why({.workers = -1}), HasSubstr("-1 workers"));
  EXPECT_THAT(why({.prefetch = 0}), HasSubstr("prefetch 0"));
  EXPECT_THAT(why({.max_bad_share = 1.5}), HasSubstr("max_bad_share 1.5"));
  const Loader loader(std::make_shared<Numbered>(8), {.batch_size = 4});
  EXPECT_THAT(refusal([&] { loader.epoch(-1); }), HasSubstr("epoch -1"));
  EXPECT_THAT(refusal([&] { loader.epoch(0, Device::cpu(), 3); }), HasSubstr("first batch 3"));
}

}  // namespace
}  // namespace crucible::data
