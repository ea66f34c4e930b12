/// The caching allocator that every device uses, written once over a small source of raw memory.
///
/// Freed blocks are kept, merged with free neighbours and reused; the source is asked only when no
/// kept block fits.  The same code runs on a card, on the host and on a simulated card of N bytes,
/// so that what a plan says about memory is what the card will do.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace crucible {

/// What a block of memory is for; statistics are kept per tag.
enum class MemoryTag : uint8_t { parameters, gradients, optimizer, activations, workspace, data };
inline constexpr int memory_tag_count = 6;
std::string_view name_of(MemoryTag tag);

/// Raw memory of one device.
class MemorySource {
 public:
  virtual ~MemorySource() = default;
  /// Returns   a block aligned to at least 256 bytes, or nullptr if there is no room.
  virtual void* allocate(int64_t bytes) = 0;
  virtual void release(void* block, int64_t bytes) = 0;
  /// Writes `pattern` to every byte; used by tests only.
  virtual void fill(void* block, int64_t bytes, uint8_t pattern) = 0;
};

/// Exact counters.  Units: bytes, unless the name says otherwise.
struct MemoryStatistics {
  int64_t live_bytes = 0;       ///< Handed out now, after rounding up.
  int64_t peak_live_bytes = 0;  ///< Largest live_bytes since the last reset_peak().
  int64_t reserved_bytes = 0;   ///< Taken from the source: live plus cached.
  int64_t peak_reserved_bytes = 0;
  int64_t largest_free_bytes = 0;  ///< Largest cached block.
  int64_t allocations = 0;         ///< Successful requests so far.
  int64_t source_allocations = 0;  ///< Requests that reached the source.
  int64_t retries = 0;             ///< Times that the cache was given back to satisfy a request.
  int64_t out_of_memory = 0;       ///< Requests that failed.
  std::array<int64_t, memory_tag_count> live_by_tag{};
  std::array<int64_t, memory_tag_count> peak_by_tag{};

  /// Share of the cached bytes that the largest free block cannot serve; 0 if nothing is cached.
  double fragmentation() const;
  /// One JSON object with the fields above.
  std::string to_json() const;
};

class Allocator {
 public:
  /// The source must outlive the allocator; `device_name` appears in messages.
  Allocator(MemorySource& source, std::string device_name);
  ~Allocator();
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;

  /// A block of at least `bytes` (0 gives a distinct one-granule block), aligned to 256 bytes.
  /// Throws    OutOfMemory naming the request, what is live by tag, and what would help.
  void* allocate(int64_t bytes, MemoryTag tag);
  /// Gives a block back to the cache.
  void free(void* block);
  /// Returns cached segments without live blocks to the source.
  void release_cached();

  MemoryStatistics statistics() const;
  void reset_peak();

  /// Test and planning hooks.
  /// At most this many bytes are reserved; negative means no limit.
  void set_limit(int64_t bytes);
  int64_t limit() const;
  /// The nth request from now (1 is the next) fails; 0 disarms.
  void fail_nth_allocation(int64_t n);
  /// Fills fresh and freed blocks with these patterns; negative means off.
  void set_fill_patterns(int fresh, int freed);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// While alive, tensors that this thread creates carry `tag` (default: activations).
class MemoryTagScope {
 public:
  explicit MemoryTagScope(MemoryTag tag);
  ~MemoryTagScope();
  MemoryTagScope(const MemoryTagScope&) = delete;
  MemoryTagScope& operator=(const MemoryTagScope&) = delete;
  static MemoryTag current();

 private:
  MemoryTag previous_;
};

}  // namespace crucible
