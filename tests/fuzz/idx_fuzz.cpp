// IDX files, plain and gzip: the first byte chooses packing and rank, the rest is the file.
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/error.h"
#include "data/gzip.h"
#include "data/idx.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace crucible::data;
  if (size == 0) return 0;
  const std::span<const std::byte> file(reinterpret_cast<const std::byte*>(data + 1), size - 1);
  try {
    const Packing packing = data[0] & 1 ? Packing::gzip : Packing::plain;
    const IdxArray array = parse_idx(file, data[0] & 2 ? 3 : 1, packing, "input");
    int64_t count = 1;
    for (const int64_t n : array.sizes) count *= n;
    if (count != static_cast<int64_t>(array.values.size())) __builtin_trap();
  } catch (const crucible::IoError&) {
  }
  try {
    constexpr int64_t limit = 1 << 16;
    if (gunzip(file, limit, "input").size() > limit) __builtin_trap();
  } catch (const crucible::IoError&) {
  }
  return 0;
}
