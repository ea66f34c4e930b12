#include "tests/reference/reference_backend.h"

#include <cstdlib>
#include <cstring>

#include "core/registry.h"
#include "tests/reference/real.h"

namespace crucible::reference {
namespace {

const bool registered = [] {
  register_backend(DeviceType::reference, [](int) { return std::make_unique<ReferenceBackend>(); });
  return true;
}();

constexpr int64_t alignment = 256;

}  // namespace

void* HeapMemory::allocate(int64_t bytes) {
  if (bytes > INT64_MAX - alignment) return nullptr;
  return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}
void HeapMemory::release(void* block, int64_t) {
  std::free(block);
}
void HeapMemory::fill(void* block, int64_t bytes, uint8_t pattern) {
  std::memset(block, pattern, bytes);
}

ReferenceBackend::ReferenceBackend() : allocator_(memory_, "reference") {}

void ReferenceBackend::run(const Primitive& primitive) {
  std::visit(
      [this](const auto& p) {
        const bool wide = p.output().dtype() == DType::f64;
        unit = wide ? 0x1p-50 : 0x1p-21;
        flush = wide ? 0x1p-1021 : 0x1p-125;
        kernel(p);
      },
      primitive);
}

void ReferenceBackend::copy_to_host(void* to, const void* from, int64_t bytes) {
  std::memcpy(to, from, bytes);
}
void ReferenceBackend::copy_from_host(void* to, const void* from, int64_t bytes) {
  std::memcpy(to, from, bytes);
}

}  // namespace crucible::reference
