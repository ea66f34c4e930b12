#include "tests/data/made_files.h"

#include <stdlib.h>
#include <zlib.h>

#include <cstdio>
#include <cstring>
#include <fstream>

#include <jpeglib.h>
#include <png.h>

#include "core/error.h"

namespace crucible::data {

namespace fs = std::filesystem;

TemporaryDirectory::TemporaryDirectory() {
  std::string name = (fs::temp_directory_path() / "crucible-data-XXXXXX").string();
  if (!mkdtemp(name.data())) throw IoError(name + ": cannot be created.");
  path_ = name;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

Bytes bytes_from(std::string_view text) {
  Bytes bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

Bytes first_bytes(const Bytes& bytes, double share) {
  const auto count = static_cast<std::ptrdiff_t>(share * static_cast<double>(bytes.size()));
  return {bytes.begin(), bytes.begin() + count};
}

Bytes joined(Bytes a, const Bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

void write_bytes(const fs::path& path, std::span<const std::byte> bytes) {
  fs::create_directories(path.parent_path());
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
  if (!out) throw IoError(path.string() + ": cannot be written.");
}

Bytes gzip(std::span<const std::byte> contents) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  Bytes packed(deflateBound(&stream, contents.size()) + 64);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(contents.data()));
  stream.avail_in = static_cast<uInt>(contents.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

Bytes idx_file(uint32_t magic, const std::vector<uint32_t>& sizes,
               const std::vector<uint8_t>& values) {
  Bytes bytes;
  const auto put = [&](uint32_t value) {
    for (int shift = 24; shift >= 0; shift -= 8) {
      bytes.push_back(static_cast<std::byte>(value >> shift));
    }
  };
  put(magic);
  for (const uint32_t size : sizes) put(size);
  for (const uint8_t value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

Bytes jpeg_file(int width, int height, JpegColor color, bool progressive) {
  jpeg_compress_struct state{};
  jpeg_error_mgr errors{};
  state.err = jpeg_std_error(&errors);
  jpeg_create_compress(&state);
  unsigned char* buffer = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&state, &buffer, &size);
  state.image_width = static_cast<JDIMENSION>(width);
  state.image_height = static_cast<JDIMENSION>(height);
  state.input_components = color == JpegColor::rgb ? 3 : color == JpegColor::grey ? 1 : 4;
  state.in_color_space = color == JpegColor::rgb    ? JCS_RGB
                         : color == JpegColor::grey ? JCS_GRAYSCALE
                                                    : JCS_CMYK;
  jpeg_set_defaults(&state);
  jpeg_set_quality(&state, 95, TRUE);
  if (progressive) jpeg_simple_progression(&state);
  jpeg_start_compress(&state, TRUE);
  std::vector<unsigned char> row(static_cast<size_t>(width * state.input_components));
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < state.input_components; ++c) {
        row[static_cast<size_t>(x * state.input_components + c)] =
            static_cast<unsigned char>((x * 3 + y * 2 + c * 50) % 200 + 20);
      }
    }
    JSAMPROW rows[] = {row.data()};
    jpeg_write_scanlines(&state, rows, 1);
  }
  jpeg_finish_compress(&state);
  Bytes bytes(size);
  std::memcpy(bytes.data(), buffer, size);
  jpeg_destroy_compress(&state);
  free(buffer);
  return bytes;
}

Bytes png_file(int width, int height, int channels, int bits) {
  Bytes bytes;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(
      png, &bytes,
      [](png_structp p, png_bytep data, size_t count) {
        auto* out = static_cast<Bytes*>(png_get_io_ptr(p));
        const auto* from = reinterpret_cast<const std::byte*>(data);
        out->insert(out->end(), from, from + count);
      },
      nullptr);
  constexpr int types[] = {0, PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                           PNG_COLOR_TYPE_RGB_ALPHA};
  png_set_IHDR(png, info, static_cast<png_uint_32>(width), static_cast<png_uint_32>(height), bits,
               types[channels], PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  png_write_info(png, info);
  const int sample_bytes = bits / 8;
  std::vector<png_byte> row(static_cast<size_t>(width * channels * sample_bytes));
  for (int x = 0; x < width; ++x) {
    for (int c = 0; c < channels; ++c) {
      // The upper byte carries the value; 16-bit samples are big-endian.
      row[static_cast<size_t>((x * channels + c) * sample_bytes)] = static_cast<png_byte>(x * 2);
    }
  }
  for (int y = 0; y < height; ++y) png_write_row(png, row.data());
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return bytes;
}

Bytes png_claiming(uint32_t width, uint32_t height) {
  Bytes bytes = png_file(4, 4, 3);
  for (int i = 0; i < 4; ++i) {
    bytes[static_cast<size_t>(16 + i)] = static_cast<std::byte>(width >> (24 - 8 * i));
    bytes[static_cast<size_t>(20 + i)] = static_cast<std::byte>(height >> (24 - 8 * i));
  }
  const auto* chunk = reinterpret_cast<const Bytef*>(bytes.data()) + 12;  // type and data of IHDR
  const uLong crc = crc32(0, chunk, 17);
  for (int i = 0; i < 4; ++i) {
    bytes[static_cast<size_t>(29 + i)] = static_cast<std::byte>(crc >> (24 - 8 * i));
  }
  return bytes;
}

Bytes jpeg_claiming(uint16_t width, uint16_t height) {
  Bytes bytes = jpeg_file(16, 16);
  for (size_t i = 0; i + 9 < bytes.size(); ++i) {
    if (bytes[i] != std::byte{0xff} || bytes[i + 1] != std::byte{0xc0}) continue;  // SOF0
    bytes[i + 5] = static_cast<std::byte>(height >> 8);
    bytes[i + 6] = static_cast<std::byte>(height);
    bytes[i + 7] = static_cast<std::byte>(width >> 8);
    bytes[i + 8] = static_cast<std::byte>(width);
    return bytes;
  }
  throw IoError("jpeg_claiming: no frame header.");
}

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& e) {
    if (e.exit_code() == 2) return e.what();
    return std::string("wrong kind of error: ") + e.what();
  } catch (const std::exception& e) {
    return std::string("wrong kind of exception: ") + e.what();
  }
  return "accepted";
}

}  // namespace crucible::data
