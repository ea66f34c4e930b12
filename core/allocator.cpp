#include "core/allocator.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <unordered_map>

#include "core/check.h"

namespace crucible {
namespace {

constexpr int64_t mebibyte = 1 << 20;
// Sizes are rounded up to a granule; small requests share segments, large ones get their own.
constexpr int64_t granule = 512;
constexpr int64_t small_limit = mebibyte;
constexpr int64_t small_segment = 2 * mebibyte;
constexpr int64_t medium_limit = 10 * mebibyte;
constexpr int64_t medium_segment = 20 * mebibyte;
constexpr int64_t large_rounding = 2 * mebibyte;

int64_t round_up(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

double gibibytes(int64_t bytes) {
  return static_cast<double>(bytes) / (1 << 30);
}

thread_local MemoryTag current_tag = MemoryTag::activations;

// A piece of a segment.  Neighbours in address order are linked, so that free ones can merge.
struct Block {
  char* address;
  int64_t bytes;
  bool small;
  bool live = false;
  MemoryTag tag = MemoryTag::activations;
  Block* before = nullptr;
  Block* after = nullptr;
};

struct BySizeThenAddress {
  bool operator()(const Block* a, const Block* b) const {
    return a->bytes != b->bytes ? a->bytes < b->bytes : a->address < b->address;
  }
};

}  // namespace

struct Allocator::State {
  MemorySource& source;
  std::string device_name;
  mutable std::mutex mutex;
  std::unordered_map<void*, Block*> live;
  std::set<Block*, BySizeThenAddress> free_small, free_large;
  MemoryStatistics stats;
  int64_t limit = -1;
  int64_t fail_in = 0;
  int fresh_pattern = -1, freed_pattern = -1;

  std::set<Block*, BySizeThenAddress>& pool(bool small) { return small ? free_small : free_large; }

  Block* take_cached(int64_t bytes, bool small) {
    auto& free = pool(small);
    Block key{nullptr, bytes, small};
    auto it = free.lower_bound(&key);
    // A small block may hold any small request; a huge block is not broken for a much smaller one
    // unless what remains is usable.
    if (it == free.end()) return nullptr;
    Block* block = *it;
    free.erase(it);
    return block;
  }

  Block* take_from_source(int64_t bytes, bool small) {
    const int64_t segment = small                  ? small_segment
                            : bytes < medium_limit ? medium_segment
                                                   : round_up(bytes, large_rounding);
    for (const int64_t size : {segment, bytes}) {  // a tight device may still have the exact size
      if (limit >= 0 && stats.reserved_bytes + size > limit) continue;
      if (void* address = source.allocate(size)) {
        ++stats.source_allocations;
        stats.reserved_bytes += size;
        stats.peak_reserved_bytes = std::max(stats.peak_reserved_bytes, stats.reserved_bytes);
        return new Block{static_cast<char*>(address), size, small};
      }
    }
    return nullptr;
  }

  void split(Block* block, int64_t bytes) {
    const int64_t rest = block->bytes - bytes;
    const int64_t worth_keeping = block->small ? granule : small_limit;
    if (rest < worth_keeping) return;
    Block* tail = new Block{block->address + bytes, rest, block->small};
    tail->before = block;
    tail->after = block->after;
    if (tail->after) tail->after->before = tail;
    block->after = tail;
    block->bytes = bytes;
    pool(tail->small).insert(tail);
  }

  // Joins `block` with the free block behind it.
  void merge_after(Block* block) {
    Block* next = block->after;
    if (!next || next->live) return;
    pool(next->small).erase(next);
    block->bytes += next->bytes;
    block->after = next->after;
    if (block->after) block->after->before = block;
    delete next;
  }

  void release_cached() {
    for (auto* pool : {&free_small, &free_large}) {
      for (auto it = pool->begin(); it != pool->end();) {
        Block* block = *it;
        if (block->before || block->after) {
          ++it;
          continue;
        }
        source.release(block->address, block->bytes);
        stats.reserved_bytes -= block->bytes;
        delete block;
        it = pool->erase(it);
      }
    }
  }

  int64_t largest_free() const {
    int64_t largest = 0;
    for (auto* pool : {&free_small, &free_large}) {
      if (!pool->empty()) largest = std::max(largest, (*pool->rbegin())->bytes);
    }
    return largest;
  }

  [[noreturn]] void throw_out_of_memory(int64_t bytes, MemoryTag tag) {
    ++stats.out_of_memory;
    std::string by_tag;
    for (int t = 0; t < memory_tag_count; ++t) {
      if (stats.live_by_tag[t] > 0) {
        by_tag += fmt::format("{}{} {:.3f} GiB", by_tag.empty() ? "" : ", ",
                              name_of(static_cast<MemoryTag>(t)), gibibytes(stats.live_by_tag[t]));
      }
    }
    throw OutOfMemory(
        fmt::format("{}: out of memory: {} bytes ({:.3f} GiB) asked for {}; live {:.3f} GiB ({}), "
                    "reserved {:.3f} GiB, largest free block {:.3f} GiB{}; use a smaller batch, "
                    "gradient accumulation or a 16-bit precision.",
                    device_name, bytes, gibibytes(bytes), name_of(tag), gibibytes(stats.live_bytes),
                    by_tag.empty() ? "nothing" : by_tag, gibibytes(stats.reserved_bytes),
                    gibibytes(largest_free()),
                    limit >= 0 ? fmt::format(", limit {:.3f} GiB", gibibytes(limit)) : ""),
        bytes);
  }
};

Allocator::Allocator(MemorySource& source, std::string device_name)
    : state_(new State{.source = source, .device_name = std::move(device_name)}) {}

Allocator::~Allocator() {
  // Live blocks at this point belong to tensors that outlive their device; they are not touched.
  state_->release_cached();
}

void* Allocator::allocate(int64_t bytes, MemoryTag tag) {
  State& s = *state_;
  std::lock_guard lock(s.mutex);
  if (bytes < 0 || bytes > INT64_MAX - medium_segment) s.throw_out_of_memory(bytes, tag);
  if (s.fail_in > 0 && --s.fail_in == 0) s.throw_out_of_memory(bytes, tag);
  const int64_t size = std::max(granule, round_up(bytes, granule));
  const bool small = size <= small_limit;
  Block* block = s.take_cached(size, small);
  if (!block) block = s.take_from_source(size, small);
  if (!block && s.stats.reserved_bytes > s.stats.live_bytes) {
    s.release_cached();
    ++s.stats.retries;
    block = s.take_from_source(size, small);
  }
  if (!block) s.throw_out_of_memory(bytes, tag);
  s.split(block, size);
  block->live = true;
  block->tag = tag;
  s.live.emplace(block->address, block);

  MemoryStatistics& stats = s.stats;
  ++stats.allocations;
  stats.live_bytes += block->bytes;
  stats.peak_live_bytes = std::max(stats.peak_live_bytes, stats.live_bytes);
  int64_t& live = stats.live_by_tag[static_cast<int>(tag)];
  live += block->bytes;
  int64_t& peak = stats.peak_by_tag[static_cast<int>(tag)];
  peak = std::max(peak, live);
  if (s.fresh_pattern >= 0) {
    s.source.fill(block->address, block->bytes, static_cast<uint8_t>(s.fresh_pattern));
  }
  return block->address;
}

void Allocator::free(void* address) {
  State& s = *state_;
  std::lock_guard lock(s.mutex);
  const auto it = s.live.find(address);
  check<DeviceError>(it != s.live.end(),
                     "{}: free of {} which is not a live block; it was freed twice or is foreign.",
                     s.device_name, fmt::ptr(address));
  Block* block = it->second;
  s.live.erase(it);
  if (s.freed_pattern >= 0) {
    s.source.fill(block->address, block->bytes, static_cast<uint8_t>(s.freed_pattern));
  }
  block->live = false;
  s.stats.live_bytes -= block->bytes;
  s.stats.live_by_tag[static_cast<int>(block->tag)] -= block->bytes;
  s.merge_after(block);
  if (Block* before = block->before; before && !before->live) {
    s.pool(before->small).erase(before);  // its size, which is its key, is about to change
    before->bytes += block->bytes;
    before->after = block->after;
    if (before->after) before->after->before = before;
    delete block;
    block = before;
  }
  s.pool(block->small).insert(block);
}

void Allocator::release_cached() {
  std::lock_guard lock(state_->mutex);
  state_->release_cached();
}

MemoryStatistics Allocator::statistics() const {
  std::lock_guard lock(state_->mutex);
  MemoryStatistics stats = state_->stats;
  stats.largest_free_bytes = state_->largest_free();
  return stats;
}

void Allocator::reset_peak() {
  std::lock_guard lock(state_->mutex);
  MemoryStatistics& stats = state_->stats;
  stats.peak_live_bytes = stats.live_bytes;
  stats.peak_reserved_bytes = stats.reserved_bytes;
  stats.peak_by_tag = stats.live_by_tag;
}

void Allocator::set_limit(int64_t bytes) {
  std::lock_guard lock(state_->mutex);
  state_->limit = bytes;
}

int64_t Allocator::limit() const {
  std::lock_guard lock(state_->mutex);
  return state_->limit;
}

void Allocator::fail_nth_allocation(int64_t n) {
  std::lock_guard lock(state_->mutex);
  state_->fail_in = n;
}

void Allocator::set_fill_patterns(int fresh, int freed) {
  std::lock_guard lock(state_->mutex);
  state_->fresh_pattern = fresh;
  state_->freed_pattern = freed;
}

double MemoryStatistics::fragmentation() const {
  const int64_t cached = reserved_bytes - live_bytes;
  return cached > 0 ? 1.0 - static_cast<double>(largest_free_bytes) / cached : 0.0;
}

std::string MemoryStatistics::to_json() const {
  std::string tags;
  for (int t = 0; t < memory_tag_count; ++t) {
    tags += fmt::format("{}\"{}\":{{\"live_bytes\":{},\"peak_live_bytes\":{}}}", t ? "," : "",
                        name_of(static_cast<MemoryTag>(t)), live_by_tag[t], peak_by_tag[t]);
  }
  return fmt::format(
      "{{\"live_bytes\":{},\"peak_live_bytes\":{},\"reserved_bytes\":{},\"peak_reserved_bytes\":{},"
      "\"largest_free_bytes\":{},\"fragmentation\":{:.6f},\"allocations\":{},"
      "\"source_allocations\":{},\"retries\":{},\"out_of_memory\":{},\"by_tag\":{{{}}}}}",
      live_bytes, peak_live_bytes, reserved_bytes, peak_reserved_bytes, largest_free_bytes,
      fragmentation(), allocations, source_allocations, retries, out_of_memory, tags);
}

std::string_view name_of(MemoryTag tag) {
  constexpr std::string_view names[] = {"parameters",  "gradients", "optimizer",
                                        "activations", "workspace", "data"};
  return names[static_cast<int>(tag)];
}

MemoryTagScope::MemoryTagScope(MemoryTag tag) : previous_(current_tag) {
  current_tag = tag;
}
MemoryTagScope::~MemoryTagScope() {
  current_tag = previous_;
}
MemoryTag MemoryTagScope::current() {
  return current_tag;
}

}  // namespace crucible
