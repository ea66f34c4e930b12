/// Files and images that the data tests make for themselves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace crucible::data {

using Bytes = std::vector<std::byte>;

/// A directory that is removed with everything in it.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

Bytes bytes_from(std::string_view text);
Bytes first_bytes(const Bytes& bytes, double share);
Bytes joined(Bytes a, const Bytes& b);
/// Creates folders above the file as needed.
void write_bytes(const std::filesystem::path& path, std::span<const std::byte> bytes);

Bytes gzip(std::span<const std::byte> contents);
/// An IDX file whose header may lie: `values` are written as they are.
Bytes idx_file(uint32_t magic, const std::vector<uint32_t>& sizes,
               const std::vector<uint8_t>& values);

enum class JpegColor { rgb, grey, cmyk };
/// A smooth image of this size.
Bytes jpeg_file(int width, int height, JpegColor color = JpegColor::rgb, bool progressive = false);
/// PNG with `channels` of `bits` each: a gradient along x in every channel.
Bytes png_file(int width, int height, int channels, int bits = 8);
/// A small PNG whose header claims another size.
Bytes png_claiming(uint32_t width, uint32_t height);
/// A small JPEG whose header claims another size.
Bytes jpeg_claiming(uint16_t width, uint16_t height);

/// What the exception's text is if `call` throws an Error with exit code 2, else a description of
/// what happened instead.
std::string refusal(const std::function<void()>& call);

}  // namespace crucible::data
