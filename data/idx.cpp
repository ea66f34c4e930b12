#include "data/idx.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <utility>

#include "core/check.h"
#include "core/file.h"
#include "data/gzip.h"

namespace crucible::data {
namespace {

constexpr int64_t largest_file_bytes = int64_t{8} << 30;

uint32_t big_endian(std::span<const std::byte> bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | std::to_integer<uint32_t>(bytes[at + i]);
  return value;
}

int64_t header_bytes(int rank) {
  return 4 + 4 * int64_t{rank};
}

/// Checks the header and returns the sizes; their product is at most `largest_payload`.
std::vector<int64_t> parse_header(std::span<const std::byte> bytes, int rank,
                                  int64_t largest_payload, std::string_view file) {
  check<IoError>(static_cast<int64_t>(bytes.size()) >= header_bytes(rank),
                 "{}: holds {} bytes, an IDX header of rank {} has {}; download it again.", file,
                 bytes.size(), rank, header_bytes(rank));
  const uint32_t magic = big_endian(bytes, 0);
  const uint32_t expected = 0x0800u + static_cast<uint32_t>(rank);
  check<IoError>(magic == expected,
                 "{}: magic number is {} (0x{:08x}), expected {}: u8 of rank {}; the file is not "
                 "what its name says.",
                 file, magic, magic, expected, rank);
  std::vector<int64_t> sizes;
  for (int axis = 0; axis < rank; ++axis) {
    const int64_t size = big_endian(bytes, 4 + 4 * static_cast<size_t>(axis));
    check<IoError>(size > 0, "{}: size {} of axis {} is not positive; the file is damaged.", file,
                   size, axis);
    sizes.push_back(size);
  }
  int64_t payload = 1;
  for (const int64_t size : sizes) {
    check<IoError>(
        size <= largest_payload / payload,
        "{}: the header's sizes [{}] need more than the {} bytes that the file can hold; "
        "it is cut or damaged.",
        file, fmt::join(sizes, ", "), largest_payload);
    payload *= size;
  }
  return sizes;
}

int64_t product(const std::vector<int64_t>& sizes) {
  int64_t result = 1;
  for (const int64_t size : sizes) result *= size;
  return result;
}

IdxArray parse_plain(std::span<const std::byte> bytes, int rank, std::string_view file) {
  check<IoError>(
      !starts_like_gzip(bytes),
      "{}: holds gzip data under a name without .gz; rename it to end in .gz or unpack it.", file);
  const int64_t present = static_cast<int64_t>(bytes.size()) - header_bytes(rank);
  IdxArray array;
  array.sizes = parse_header(bytes, rank, std::max<int64_t>(present, 1), file);
  const int64_t payload = product(array.sizes);
  check<IoError>(present == payload,
                 "{}: the header stands for {} bytes of data, {} are there; download it again.",
                 file, payload, present);
  const auto* first =
      reinterpret_cast<const uint8_t*>(bytes.data()) + static_cast<size_t>(header_bytes(rank));
  array.values.assign(first, first + payload);
  return array;
}

IdxArray parse_gzip(std::span<const std::byte> bytes, int rank, std::string_view file) {
  constexpr int64_t largest_ratio = 1032;  // of deflate: 258 bytes for 2 bits
  const int64_t largest = static_cast<int64_t>(bytes.size()) * largest_ratio;
  const auto head = gunzip_prefix(bytes, header_bytes(rank), file);
  const auto sizes = parse_header(head, rank, largest, file);
  const int64_t whole = header_bytes(rank) + product(sizes);
  return parse_plain(gunzip(bytes, whole, file), rank, file);
}

/// The base name of a file of a split, which MNIST calls "train" and "t10k".
std::string file_stem(std::string_view split, std::string_view what) {
  check(split == "train" || split == "test",
        "idx: split \"{}\" is not known; use \"train\" or \"test\".", split);
  return fmt::format("{}-{}", split == "train" ? "train" : "t10k", what);
}

std::optional<std::filesystem::path> find_file(const std::filesystem::path& directory,
                                               const std::string& stem) {
  for (const char* suffix : {"", ".gz"}) {
    const auto path = directory / (stem + suffix);
    std::error_code ignored;
    if (std::filesystem::exists(path, ignored)) return path;
  }
  return std::nullopt;
}

IdxArray load_part(const std::filesystem::path& directory, const std::string& stem, int rank) {
  const auto path = find_file(directory, stem);
  check<IoError>(path.has_value(), "{}: has neither {} nor {}.gz; check the directory.",
                 directory.string(), stem, stem);
  return load_idx(*path, rank);
}

}  // namespace

IdxArray parse_idx(std::span<const std::byte> bytes, int rank, Packing packing,
                   std::string_view file) {
  check(rank >= 1 && rank <= 8, "idx: rank {} is outside [1, 8]; give the file's rank.", rank);
  return packing == Packing::gzip ? parse_gzip(bytes, rank, file) : parse_plain(bytes, rank, file);
}

IdxArray load_idx(const std::filesystem::path& path, int rank) {
  const auto bytes = read_file(path, largest_file_bytes);
  const Packing packing = path.extension() == ".gz" ? Packing::gzip : Packing::plain;
  return parse_idx(bytes, rank, packing, path.string());
}

bool has_idx_split(const std::filesystem::path& directory, std::string_view split) {
  return find_file(directory, file_stem(split, "images-idx3-ubyte")) &&
         find_file(directory, file_stem(split, "labels-idx1-ubyte"));
}

std::shared_ptr<const LabelledImages> load_idx_split(const std::filesystem::path& directory,
                                                     std::string_view split, int64_t classes) {
  IdxArray images = load_part(directory, file_stem(split, "images-idx3-ubyte"), 3);
  const IdxArray labels = load_part(directory, file_stem(split, "labels-idx1-ubyte"), 1);
  check<IoError>(images.sizes[0] == labels.sizes[0],
                 "{}: split {} has {} images but {} labels; download both files again.",
                 directory.string(), split, images.sizes[0], labels.sizes[0]);
  const int64_t largest = *std::max_element(labels.values.begin(), labels.values.end());
  check<IoError>(classes == 0 || largest < classes,
                 "{}: split {} has label {}, expected [0, {}); the labels are of another data set.",
                 directory.string(), split, largest, classes);
  auto result = std::make_shared<LabelledImages>();
  result->origin = fmt::format("{} ({})", directory.string(), split);
  result->count = images.sizes[0];
  result->height = images.sizes[1];
  result->width = images.sizes[2];
  result->channels = 1;
  result->classes = classes > 0 ? classes : largest + 1;
  result->pixels = std::move(images.values);
  result->labels.assign(labels.values.begin(), labels.values.end());
  return result;
}

std::optional<std::filesystem::path> find_fashion_mnist() {
  const std::filesystem::path directory = "/usr/share/datasets/fashion-mnist";
  if (has_idx_split(directory, "train") && has_idx_split(directory, "test")) return directory;
  return std::nullopt;
}

std::shared_ptr<const ImageArray> fashion_mnist(std::string_view split,
                                                const std::filesystem::path& directory) {
  const auto found = directory.empty() ? find_fashion_mnist() : std::optional(directory);
  check<IoError>(
      found.has_value(),
      "fashion_mnist: /usr/share/datasets/fashion-mnist is missing or incomplete; install "
      "dataset-fashion-mnist or give a directory.");
  // Mean and deviation of the 60000 training images.
  return std::make_shared<ImageArray>(load_idx_split(*found, split, 10),
                                      ImageTransform{.mean = {0.2860f}, .std = {0.3530f}});
}

}  // namespace crucible::data
