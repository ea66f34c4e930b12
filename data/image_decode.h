/// Private: JPEG and PNG images, from memory to RGB bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace crucible::data {

/// An image with its own pixels, row-major [height, width, 3].
struct RgbImage {
  int64_t height = 0;
  int64_t width = 0;
  std::vector<uint8_t> pixels;
};

/// Decodes by content, whatever the file is called.
///
/// Greyscale is repeated over the channels, palettes and CMYK are converted, 16-bit samples keep
/// their upper 8 bits, transparency is dropped, rotation in EXIF data is ignored.
///
/// Memory    the header is checked first: an image of more than `max_pixels`, or with a side above
///           65535, is refused before anything is allocated for it.
/// Throws    IoError naming `file` if it is neither format, too large, cut or damaged; damage that
///           decoders can paint over is an error too.
RgbImage decode_image(std::span<const std::byte> bytes, std::string_view file,
                      int64_t max_pixels = int64_t{1} << 26);

}  // namespace crucible::data
