// Token files, raw and with a header: what the layout promises must be inside the file.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/error.h"
#include "data/token_bin.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace crucible::data;
  const std::span<const std::byte> file(reinterpret_cast<const std::byte*>(data), size);
  const auto head = file.first(std::min<size_t>(size, token_header_bytes));
  try {
    const auto layout = parse_token_layout(head, static_cast<int64_t>(size), "input");
    const int64_t bytes = layout.count * layout.token_bytes;
    if (layout.count <= 0 || layout.first_byte + bytes != static_cast<int64_t>(size)) {
      __builtin_trap();
    }
    std::vector<int64_t> tokens(static_cast<size_t>(layout.count));
    widen_tokens(file.subspan(static_cast<size_t>(layout.first_byte)), layout.token_bytes, tokens);
  } catch (const crucible::IoError&) {
  }
  return 0;
}
