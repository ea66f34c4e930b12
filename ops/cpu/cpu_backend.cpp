#include "ops/cpu/cpu_backend.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#include "core/check.h"
#include "core/registry.h"

namespace crucible::cpu {
namespace {

constexpr int64_t alignment = 256;
constexpr int64_t huge_page = 2 << 20;

const bool registered = [] {
  register_backend(DeviceType::cpu, [](int) { return std::make_unique<CpuBackend>(); });
  return true;
}();

}  // namespace

void* HostMemory::allocate(int64_t bytes) {
  const int64_t step = bytes >= huge_page ? huge_page : alignment;
  if (bytes > INT64_MAX - step) return nullptr;
  const int64_t size = (bytes + step - 1) / step * step;
  void* block = std::aligned_alloc(step, size);
  if (block && step == huge_page) madvise(block, size, MADV_HUGEPAGE);
  return block;
}

void HostMemory::release(void* block, int64_t) {
  std::free(block);
}

void HostMemory::fill(void* block, int64_t bytes, uint8_t pattern) {
  std::memset(block, pattern, bytes);
}

CpuBackend::CpuBackend() : allocator_(memory_, "cpu") {}

void CpuBackend::run(const Primitive& primitive) {
  std::visit([this](const auto& p) { kernel(p); }, primitive);
}

void CpuBackend::copy_to_host(void* to, const void* from, int64_t bytes) {
  std::memcpy(to, from, bytes);
}

void CpuBackend::copy_from_host(void* to, const void* from, int64_t bytes) {
  std::memcpy(to, from, bytes);
}

}  // namespace crucible::cpu
