// JPEG and PNG images of up to 256 Ki pixels.
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/error.h"
#include "data/image_decode.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr int64_t max_pixels = 1 << 18;
  const std::span<const std::byte> file(reinterpret_cast<const std::byte*>(data), size);
  try {
    const auto image = crucible::data::decode_image(file, "input", max_pixels);
    const int64_t pixels = image.height * image.width;
    if (pixels <= 0 || pixels > max_pixels) __builtin_trap();
    if (static_cast<int64_t>(image.pixels.size()) != pixels * 3) __builtin_trap();
  } catch (const crucible::IoError&) {
  }
  return 0;
}
