#include "core/allocator.h"

#include <gmock/gmock.h>

#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/error.h"
#include "core/rng.h"

namespace crucible {
namespace {

using ::testing::HasSubstr;
constexpr int64_t granule = 512;
constexpr int64_t mebibyte = 1 << 20;

// Host memory with a hard end, that remembers what is out.
class Card final : public MemorySource {
 public:
  explicit Card(int64_t capacity) : left_(capacity) {}
  ~Card() override { EXPECT_TRUE(out_.empty()) << "segments were not given back"; }

  void* allocate(int64_t bytes) override {
    if (bytes > left_) return nullptr;
    left_ -= bytes;
    void* block = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
    out_[block] = bytes;
    return block;
  }
  void release(void* block, int64_t bytes) override {
    EXPECT_EQ(out_.at(block), bytes) << "released with another size than allocated";
    left_ += bytes;
    out_.erase(block);
    std::free(block);
  }
  void fill(void* block, int64_t bytes, uint8_t pattern) override {
    std::memset(block, pattern, bytes);
  }
  size_t segments() const { return out_.size(); }

 private:
  int64_t left_;
  std::map<void*, int64_t> out_;
};

struct Device64 {
  Card card{64 * mebibyte};
  Allocator allocator{card, "card:0"};

  void* get(int64_t bytes, MemoryTag tag = MemoryTag::activations) {
    return allocator.allocate(bytes, tag);
  }
  MemoryStatistics stats() const { return allocator.statistics(); }
};

TEST(Allocator, RoundsUpToAGranule) {
  Device64 d;
  for (const int64_t bytes : {int64_t{0}, int64_t{1}, granule - 1, granule}) {
    const int64_t before = d.stats().live_bytes;
    void* block = d.get(bytes);
    EXPECT_EQ(d.stats().live_bytes - before, granule) << bytes;
    d.allocator.free(block);
  }
  void* block = d.get(granule + 1);
  EXPECT_EQ(d.stats().live_bytes, 2 * granule);
  d.allocator.free(block);
}

TEST(Allocator, GivesDistinctAlignedBlocks) {
  Device64 d;
  std::map<char*, int64_t> blocks;
  Rng rng(1);
  for (int i = 0; i < 300; ++i) {
    const int64_t bytes = rng.below(20000);
    char* block = static_cast<char*>(d.get(bytes));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 256, 0u);
    blocks[block] = bytes;
  }
  for (auto it = blocks.begin(); std::next(it) != blocks.end(); ++it) {
    EXPECT_LE(it->first + it->second, std::next(it)->first);
  }
  for (const auto& [block, bytes] : blocks) d.allocator.free(block);
}

TEST(Allocator, ReusesAFreedBlock) {
  Device64 d;
  void* first = d.get(1000);
  d.allocator.free(first);
  EXPECT_EQ(d.get(1000), first);
  EXPECT_EQ(d.stats().source_allocations, 1);
  d.allocator.free(first);
}

TEST(Allocator, SplitsASegmentAndMergesItsParts) {
  Device64 d;
  void* a = d.get(granule);
  void* b = d.get(granule);
  void* c = d.get(granule);
  EXPECT_EQ(d.stats().source_allocations, 1) << "small requests share a segment";
  const int64_t segment = d.stats().reserved_bytes;
  d.allocator.free(a);
  d.allocator.free(c);
  EXPECT_LT(d.stats().largest_free_bytes, segment - granule) << "b still lies between";
  EXPECT_GT(d.stats().fragmentation(), 0.0);
  d.allocator.free(b);
  EXPECT_EQ(d.stats().largest_free_bytes, segment) << "all parts became one again";
  EXPECT_EQ(d.stats().fragmentation(), 0.0);
}

TEST(Allocator, MergesInEveryOrderOfFreeing) {
  const int orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  for (const auto& order : orders) {
    Device64 d;
    void* blocks[] = {d.get(granule), d.get(3 * granule), d.get(granule)};
    for (const int i : order) d.allocator.free(blocks[i]);
    EXPECT_EQ(d.stats().largest_free_bytes, d.stats().reserved_bytes);
    d.allocator.release_cached();
    EXPECT_EQ(d.stats().reserved_bytes, 0);
  }
}

TEST(Allocator, KeepsSmallAndLargeRequestsApart) {
  Device64 d;
  void* large = d.get(3 * mebibyte);
  d.allocator.free(large);
  void* small = d.get(granule);
  EXPECT_EQ(d.stats().source_allocations, 2) << "a small request must not break a large block";
  EXPECT_EQ(d.get(3 * mebibyte), large);
  d.allocator.free(large);
  d.allocator.free(small);
}

TEST(Allocator, ReleasesOnlySegmentsWithoutLiveBlocks) {
  Device64 d;
  void* small = d.get(granule);
  void* large = d.get(16 * mebibyte);
  d.allocator.free(large);
  d.allocator.release_cached();
  EXPECT_EQ(d.card.segments(), 1u);
  EXPECT_EQ(d.stats().live_bytes, granule);
  d.allocator.free(small);
  d.allocator.release_cached();
  EXPECT_EQ(d.card.segments(), 0u);
  EXPECT_EQ(d.stats().reserved_bytes, 0);
}

TEST(Allocator, GivesTheCacheBackBeforeItFails) {
  Device64 d;
  void* block = d.get(40 * mebibyte);
  d.allocator.free(block);
  block = d.get(50 * mebibyte);  // does not fit beside the cached 40
  EXPECT_EQ(d.stats().retries, 1);
  EXPECT_EQ(d.stats().out_of_memory, 0);
  EXPECT_EQ(d.stats().reserved_bytes, 50 * mebibyte);
  d.allocator.free(block);
}

TEST(Allocator, TakesTheExactSizeWhereASegmentDoesNotFit) {
  Card card(mebibyte / 2);
  Allocator allocator(card, "card:0");
  void* block = allocator.allocate(1000, MemoryTag::data);  // a segment would be 2 MiB
  EXPECT_EQ(allocator.statistics().reserved_bytes, 2 * granule);
  allocator.free(block);
}

TEST(Allocator, CountsLiveAndPeakByTag) {
  Device64 d;
  void* p = d.get(4 * granule, MemoryTag::parameters);
  void* a = d.get(2 * granule, MemoryTag::activations);
  void* b = d.get(3 * granule, MemoryTag::activations);
  d.allocator.free(a);
  void* w = d.get(granule, MemoryTag::workspace);
  const MemoryStatistics s = d.stats();
  auto live = [&](MemoryTag t) { return s.live_by_tag[static_cast<int>(t)]; };
  auto peak = [&](MemoryTag t) { return s.peak_by_tag[static_cast<int>(t)]; };
  EXPECT_EQ(live(MemoryTag::parameters), 4 * granule);
  EXPECT_EQ(live(MemoryTag::activations), 3 * granule);
  EXPECT_EQ(peak(MemoryTag::activations), 5 * granule);
  EXPECT_EQ(live(MemoryTag::workspace), granule);
  EXPECT_EQ(live(MemoryTag::gradients), 0);
  EXPECT_EQ(s.live_bytes, 8 * granule);
  EXPECT_EQ(s.peak_live_bytes, 9 * granule);
  EXPECT_EQ(s.allocations, 4);
  for (void* block : {p, b, w}) d.allocator.free(block);
  EXPECT_EQ(d.stats().live_bytes, 0);
  EXPECT_EQ(d.stats().peak_live_bytes, 9 * granule) << "a peak stays until it is reset";
}

TEST(Allocator, ResetPeakStartsFromNow) {
  Device64 d;
  void* a = d.get(10 * granule);
  void* b = d.get(granule);
  d.allocator.free(a);
  d.allocator.reset_peak();
  EXPECT_EQ(d.stats().peak_live_bytes, granule);
  EXPECT_EQ(d.stats().peak_by_tag[static_cast<int>(MemoryTag::activations)], granule);
  EXPECT_EQ(d.stats().peak_reserved_bytes, d.stats().reserved_bytes);
  d.allocator.free(b);
}

TEST(Allocator, ThrowsNamingTheRequestAndWhatIsLive) {
  Device64 d;
  void* p = d.get(32 * mebibyte, MemoryTag::parameters);
  try {
    d.get(48 * mebibyte, MemoryTag::activations);
    FAIL();
  } catch (const OutOfMemory& e) {
    EXPECT_EQ(e.requested_bytes(), 48 * mebibyte);
    EXPECT_THAT(
        e.what(),
        HasSubstr("card:0: out of memory: 50331648 bytes (0.047 GiB) asked for activations"));
    EXPECT_THAT(e.what(), HasSubstr("live 0.031 GiB (parameters 0.031 GiB)"));
    EXPECT_THAT(e.what(), HasSubstr("use a smaller batch, gradient accumulation or a 16-bit"));
  }
  EXPECT_EQ(d.stats().out_of_memory, 1);
  EXPECT_EQ(d.stats().live_bytes, 32 * mebibyte);
  void* after = d.get(16 * mebibyte);  // the process stays usable
  d.allocator.free(after);
  d.allocator.free(p);
}

TEST(Allocator, RefusesSizesThatCannotBe) {
  Device64 d;
  EXPECT_THROW(d.get(-1), OutOfMemory);
  EXPECT_THROW(d.get(INT64_MAX), OutOfMemory);
  EXPECT_THROW(d.get(INT64_MAX - granule), OutOfMemory);
  EXPECT_EQ(d.stats().live_bytes, 0);
}

TEST(Allocator, HonoursTheLimit) {
  Device64 d;
  EXPECT_LT(d.allocator.limit(), 0);
  d.allocator.set_limit(8 * mebibyte);
  EXPECT_EQ(d.allocator.limit(), 8 * mebibyte);
  try {
    d.get(9 * mebibyte);
    FAIL();
  } catch (const OutOfMemory& e) {
    EXPECT_THAT(e.what(), HasSubstr("limit 0.008 GiB"));
  }
  void* fits = d.get(8 * mebibyte);
  EXPECT_EQ(d.stats().reserved_bytes, 8 * mebibyte);
  d.allocator.free(fits);
  d.allocator.set_limit(-1);
  d.allocator.free(d.get(9 * mebibyte));
}

TEST(Allocator, FailsTheNthRequestOnce) {
  Device64 d;
  d.allocator.fail_nth_allocation(3);
  void* a = d.get(1);
  void* b = d.get(1);
  EXPECT_THROW(d.get(1), OutOfMemory);
  void* c = d.get(1);
  for (void* block : {a, b, c}) d.allocator.free(block);
  d.allocator.fail_nth_allocation(1);
  d.allocator.fail_nth_allocation(0);
  d.allocator.free(d.get(1));
}

TEST(Allocator, FillsFreshAndFreedBlocks) {
  Device64 d;
  d.allocator.set_fill_patterns(0xA5, 0x5A);
  auto* block = static_cast<unsigned char*>(d.get(granule));
  void* neighbour = d.get(granule);  // keeps the segment, so that freed bytes may be looked at
  EXPECT_EQ(block[0], 0xA5);
  EXPECT_EQ(block[granule - 1], 0xA5);
  d.allocator.free(block);
  EXPECT_EQ(block[0], 0x5A);
  EXPECT_EQ(block[granule - 1], 0x5A);
  d.allocator.set_fill_patterns(-1, -1);
  EXPECT_EQ(static_cast<unsigned char*>(d.get(granule))[0], 0x5A) << "off: contents are left alone";
  d.allocator.free(block);
  d.allocator.free(neighbour);
}

TEST(Allocator, RefusesToFreeWhatIsNotLive) {
  Device64 d;
  void* block = d.get(1);
  d.allocator.free(block);
  EXPECT_THROW(d.allocator.free(block), DeviceError);
  int foreign = 0;
  EXPECT_THROW(d.allocator.free(&foreign), DeviceError);
  EXPECT_EQ(d.stats().live_bytes, 0);
}

TEST(Allocator, WritesItsStatisticsAsJson) {
  Device64 d;
  void* block = d.get(granule, MemoryTag::optimizer);
  const auto json = nlohmann::json::parse(d.stats().to_json());
  EXPECT_EQ(json.at("live_bytes"), granule);
  EXPECT_EQ(json.at("allocations"), 1);
  EXPECT_EQ(json.at("by_tag").at("optimizer").at("peak_live_bytes"), granule);
  EXPECT_EQ(json.at("by_tag").size(), static_cast<size_t>(memory_tag_count));
  for (const char* field :
       {"peak_live_bytes", "reserved_bytes", "peak_reserved_bytes", "largest_free_bytes",
        "fragmentation", "source_allocations", "retries", "out_of_memory"}) {
    EXPECT_TRUE(json.contains(field)) << field;
  }
  d.allocator.free(block);
}

// Random traffic against a model: counters agree with what was asked, contents survive.
TEST(Allocator, KeepsItsBooksUnderRandomTraffic) {
  Device64 d;
  Rng rng(7);
  std::map<char*, std::pair<int64_t, char>> live;
  int64_t bytes_live = 0;
  for (int i = 0; i < 20000; ++i) {
    if (live.empty() || rng.below(5) < 3) {
      const int64_t bytes = rng.below(2) ? rng.below(4000) : rng.below(2 * mebibyte);
      try {
        char* block = static_cast<char*>(d.get(bytes));
        const char mark = static_cast<char>(i);
        if (bytes > 0) block[0] = block[bytes - 1] = mark;
        live[block] = {bytes, mark};
        bytes_live += std::max(granule, (bytes + granule - 1) / granule * granule);
      } catch (const OutOfMemory&) {
      }
    } else {
      auto it = std::next(live.begin(), rng.below(static_cast<int64_t>(live.size())));
      const auto [bytes, mark] = it->second;
      if (bytes > 0) {
        ASSERT_EQ(it->first[0], mark);
        ASSERT_EQ(it->first[bytes - 1], mark);
      }
      bytes_live -= std::max(granule, (bytes + granule - 1) / granule * granule);
      d.allocator.free(it->first);
      live.erase(it);
    }
    const MemoryStatistics s = d.stats();
    // A large block is split only where the rest is worth keeping, so live may exceed the request.
    ASSERT_GE(s.live_bytes, bytes_live);
    ASSERT_LE(s.live_bytes, s.reserved_bytes);
    ASSERT_LE(s.largest_free_bytes, s.reserved_bytes - s.live_bytes);
    ASSERT_LE(s.reserved_bytes, 64 * mebibyte);
    ASSERT_LE(s.live_bytes, s.peak_live_bytes);
  }
  for (const auto& [block, entry] : live) d.allocator.free(block);
  EXPECT_EQ(d.stats().live_bytes, 0);
  d.allocator.release_cached();
  EXPECT_EQ(d.stats().reserved_bytes, 0) << "everything merged back into whole segments";
}

TEST(Allocator, ServesThreads) {
  Device64 d;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 2000; ++i) {
        char* block = static_cast<char*>(d.get(64 + i % 5000));
        block[0] = static_cast<char>(t);
        d.allocator.free(block);
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(d.stats().live_bytes, 0);
  EXPECT_EQ(d.stats().allocations, 8000);
}

TEST(MemoryTagScope, NestsAndRestores) {
  EXPECT_EQ(MemoryTagScope::current(), MemoryTag::activations);
  {
    const MemoryTagScope outer(MemoryTag::parameters);
    {
      const MemoryTagScope inner(MemoryTag::workspace);
      EXPECT_EQ(MemoryTagScope::current(), MemoryTag::workspace);
    }
    EXPECT_EQ(MemoryTagScope::current(), MemoryTag::parameters);
  }
  EXPECT_EQ(MemoryTagScope::current(), MemoryTag::activations);
}

}  // namespace
}  // namespace crucible
