/// The memory behind tensors: who owns it, how large it is, and how often it was changed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/allocator.h"
#include "core/device.h"

namespace crucible {

/// A block of device memory.  Views of one tensor share one Storage, so that the change of one is
/// seen by the version of all.
class Storage {
 public:
  /// Takes `bytes` from the allocator of `device`.
  /// Throws    OutOfMemory.
  Storage(int64_t bytes, Device device, MemoryTag tag);
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  std::byte* data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  Device device() const { return device_; }
  MemoryTag tag() const { return tag_; }

  /// Counts in-place changes; a saved tensor whose count moved is stale.
  uint64_t version() const {
    return arena_ ? arena_->version() : version_.load(std::memory_order_relaxed);
  }
  void bump_version() {
    arena_ ? arena_->bump_version()
           : static_cast<void>(version_.fetch_add(1, std::memory_order_relaxed));
  }

  /// Gives the own block back and becomes the slice [offset, offset + bytes()) of `arena`.  Every
  /// handle of this storage moves along; contents are not copied.  From then on the slice shares
  /// the version of the arena: an optimizer step ages every parameter at once.
  void move_into(std::shared_ptr<Storage> arena, int64_t offset_bytes);

  /// What the backend derives from the contents and keeps beside them, such as weights in another
  /// layout.  It dies with the storage; the backend guards it against races and staleness.
  std::shared_ptr<void>& derived() { return derived_; }

 private:
  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
  Device device_;
  MemoryTag tag_;
  std::atomic<uint64_t> version_{0};
  std::shared_ptr<Storage> arena_;
  std::shared_ptr<void> derived_;
};

}  // namespace crucible
