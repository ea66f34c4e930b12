#include "data/image_decode.h"

// jpeglib.h needs size_t and FILE before it.
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

#include <jerror.h>
#include <jpeglib.h>
#include <png.h>

#include "core/check.h"

// Both libraries report an error by longjmp, which skips destructors.  So a function that calls
// setjmp below owns nothing that needs one: the caller holds the library's state and the pixels,
// and the function returns whether it got through.

namespace crucible::data {
namespace {

void check_size(int64_t width, int64_t height, int64_t max_pixels, std::string_view file) {
  constexpr int64_t longest_side = 65535;
  check<IoError>(
      width > 0 && height > 0 && width <= longest_side && height <= longest_side &&
          width <= max_pixels / height,
      "{}: the image is {}x{}, decoded are at most {} pixels and {} a side; shrink it or "
      "leave it out.",
      file, width, height, max_pixels, longest_side);
}

// ---- JPEG

/// libjpeg's decoder with its error handler: the first error or serious warning ends decoding.
struct JpegDecoder {
  jpeg_decompress_struct state{};
  jpeg_error_mgr errors{};
  jpeg_progress_mgr progress{};
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX] = "";

  JpegDecoder() {
    state.err = jpeg_std_error(&errors);
    state.client_data = this;
    errors.error_exit = [](j_common_ptr common) { give_up(common); };
    errors.output_message = [](j_common_ptr) {};
    errors.emit_message = [](j_common_ptr common, int level) {
      if (level < 0 && is_damage(common->err->msg_code)) give_up(common);
    };
    // A progressive file may hold any number of scans over all its pixels; a real one has about
    // ten.
    progress.progress_monitor = [](j_common_ptr common) {
      constexpr int most_scans = 200;
      auto* decoder = static_cast<JpegDecoder*>(common->client_data);
      if (decoder->state.input_scan_number > most_scans) {
        std::snprintf(decoder->message, sizeof decoder->message, "more than %d scans", most_scans);
        std::longjmp(decoder->jump, 1);
      }
    };
  }
  ~JpegDecoder() { jpeg_destroy_decompress(&state); }
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  [[noreturn]] static void give_up(j_common_ptr common) {
    auto* decoder = static_cast<JpegDecoder*>(common->client_data);
    common->err->format_message(common, decoder->message);
    std::longjmp(decoder->jump, 1);
  }
  /// Warnings that leave the pixels as the encoder meant them.
  static bool is_damage(int code) {
    return code != JWRN_EXTRANEOUS_DATA && code != JWRN_ADOBE_XFORM && code != JWRN_JFIF_MAJOR &&
           code != JWRN_BOGUS_PROGRESSION;
  }
};

bool read_jpeg_header(JpegDecoder& decoder, std::span<const std::byte> bytes) {
  if (setjmp(decoder.jump)) return false;
  jpeg_create_decompress(&decoder.state);
  decoder.state.client_data = &decoder;
  decoder.state.progress = &decoder.progress;
  jpeg_mem_src(&decoder.state, reinterpret_cast<const unsigned char*>(bytes.data()),
               static_cast<unsigned long>(bytes.size()));
  jpeg_read_header(&decoder.state, TRUE);
  const bool four = decoder.state.num_components == 4;
  decoder.state.out_color_space = four ? JCS_CMYK : JCS_RGB;
  return true;
}

/// `pixels` has room for width * height * (4 if CMYK, else 3).
bool read_jpeg_pixels(JpegDecoder& decoder, uint8_t* pixels, size_t row_bytes) {
  if (setjmp(decoder.jump)) return false;
  jpeg_start_decompress(&decoder.state);
  while (decoder.state.output_scanline < decoder.state.output_height) {
    JSAMPROW row = pixels + decoder.state.output_scanline * row_bytes;
    jpeg_read_scanlines(&decoder.state, &row, 1);
  }
  jpeg_finish_decompress(&decoder.state);
  return true;
}

/// Adobe writes CMYK inverted, so that 255 is no ink; others write it straight.
std::vector<uint8_t> rgb_from_cmyk(const std::vector<uint8_t>& cmyk, bool inverted) {
  std::vector<uint8_t> rgb(cmyk.size() / 4 * 3);
  const uint8_t* in = cmyk.data();
  for (size_t i = 0; i < rgb.size(); i += 3, in += 4) {
    const int paper = inverted ? in[3] : 255 - in[3];
    for (size_t c = 0; c < 3; ++c) {
      const int light = inverted ? in[c] : 255 - in[c];
      rgb[i + c] = static_cast<uint8_t>((light * paper + 127) / 255);
    }
  }
  return rgb;
}

RgbImage decode_jpeg(std::span<const std::byte> bytes, std::string_view file, int64_t max_pixels) {
  const auto decoder = std::make_unique<JpegDecoder>();
  check<IoError>(read_jpeg_header(*decoder, bytes),
                 "{}: the JPEG header cannot be read: {}; restore the file or leave it out.", file,
                 decoder->message);
  const int64_t width = decoder->state.image_width, height = decoder->state.image_height;
  check_size(width, height, max_pixels, file);
  const bool cmyk = decoder->state.out_color_space == JCS_CMYK;
  const bool inverted = decoder->state.saw_Adobe_marker;
  const size_t row_bytes = static_cast<size_t>(width) * (cmyk ? 4 : 3);
  std::vector<uint8_t> pixels(row_bytes * static_cast<size_t>(height));
  check<IoError>(read_jpeg_pixels(*decoder, pixels.data(), row_bytes),
                 "{}: the JPEG data is cut or damaged: {}; restore the file or leave it out.", file,
                 decoder->message);
  return {height, width, cmyk ? rgb_from_cmyk(pixels, inverted) : std::move(pixels)};
}

// ---- PNG

struct PngDecoder {
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::span<const std::byte> unread;
  std::jmp_buf jump;
  char message[128] = "";

  PngDecoder() = default;
  ~PngDecoder() { png_destroy_read_struct(&png, &info, nullptr); }
  PngDecoder(const PngDecoder&) = delete;
  PngDecoder& operator=(const PngDecoder&) = delete;
};

[[noreturn]] void give_up_png(png_structp png, png_const_charp text) {
  auto* decoder = static_cast<PngDecoder*>(png_get_error_ptr(png));
  std::snprintf(decoder->message, sizeof decoder->message, "%s", text);
  std::longjmp(decoder->jump, 1);
}

void read_png_bytes(png_structp png, png_bytep into, size_t count) {
  auto* decoder = static_cast<PngDecoder*>(png_get_io_ptr(png));
  if (count > decoder->unread.size()) give_up_png(png, "the file ends early");
  std::memcpy(into, decoder->unread.data(), count);
  decoder->unread = decoder->unread.subspan(count);
}

bool read_png_header(PngDecoder& decoder) {
  if (setjmp(decoder.jump)) return false;
  decoder.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &decoder, give_up_png,
                                       [](png_structp, png_const_charp) {});
  if (!decoder.png) return false;
  decoder.info = png_create_info_struct(decoder.png);
  if (!decoder.info) return false;
  png_set_user_limits(decoder.png, 0x7fffffff, 0x7fffffff);  // ours follow, with the better message
  png_set_chunk_cache_max(decoder.png, 128);
  png_set_chunk_malloc_max(decoder.png, png_alloc_size_t{8} << 20);
  png_set_read_fn(decoder.png, &decoder, read_png_bytes);
  png_read_info(decoder.png, decoder.info);
  return true;
}

/// Asks libpng for 8-bit RGB.  `row_bytes` becomes the size of a row.
bool convert_png(PngDecoder& decoder, size_t& row_bytes) {
  if (setjmp(decoder.jump)) return false;
  png_set_expand(decoder.png);
  png_set_scale_16(decoder.png);
  png_set_gray_to_rgb(decoder.png);
  png_set_strip_alpha(decoder.png);
  png_set_interlace_handling(decoder.png);
  png_read_update_info(decoder.png, decoder.info);
  row_bytes = png_get_rowbytes(decoder.png, decoder.info);
  return true;
}

bool read_png_pixels(PngDecoder& decoder, png_bytepp rows) {
  if (setjmp(decoder.jump)) return false;
  png_read_image(decoder.png, rows);
  png_read_end(decoder.png, nullptr);
  return true;
}

RgbImage decode_png(std::span<const std::byte> bytes, std::string_view file, int64_t max_pixels) {
  const auto decoder = std::make_unique<PngDecoder>();
  decoder->unread = bytes;
  check<IoError>(read_png_header(*decoder),
                 "{}: the PNG header cannot be read: {}; restore the file or leave it out.", file,
                 decoder->message);
  const int64_t width = png_get_image_width(decoder->png, decoder->info);
  const int64_t height = png_get_image_height(decoder->png, decoder->info);
  check_size(width, height, max_pixels, file);
  size_t row_bytes = 0;
  bool good = convert_png(*decoder, row_bytes);
  check<IoError>(
      good && row_bytes == static_cast<size_t>(width) * 3,
      "{}: the PNG has an unusual pixel format ({} bytes for {} pixels; {}); convert it.", file,
      row_bytes, width, decoder->message);
  RgbImage image{height, width, std::vector<uint8_t>(row_bytes * static_cast<size_t>(height))};
  std::vector<png_bytep> rows(static_cast<size_t>(height));
  for (size_t y = 0; y < rows.size(); ++y) rows[y] = image.pixels.data() + y * row_bytes;
  good = read_png_pixels(*decoder, rows.data());
  check<IoError>(good, "{}: the PNG data is cut or damaged: {}; restore the file or leave it out.",
                 file, decoder->message);
  return image;
}

bool starts_with(std::span<const std::byte> bytes, std::initializer_list<int> magic) {
  if (bytes.size() < magic.size()) return false;
  size_t i = 0;
  for (const int value : magic) {
    if (std::to_integer<int>(bytes[i++]) != value) return false;
  }
  return true;
}

}  // namespace

RgbImage decode_image(std::span<const std::byte> bytes, std::string_view file, int64_t max_pixels) {
  if (starts_with(bytes, {0xff, 0xd8, 0xff})) return decode_jpeg(bytes, file, max_pixels);
  if (starts_with(bytes, {0x89, 'P', 'N', 'G'})) return decode_png(bytes, file, max_pixels);
  fail<IoError>("{}: is neither JPEG nor PNG ({} bytes); convert it or leave it out.", file,
                bytes.size());
}

}  // namespace crucible::data
