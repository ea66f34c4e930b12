/// IDX files, the format of MNIST and Fashion-MNIST, plain or gzip-compressed.
///
/// Layout    two zero bytes, element type (8: u8), rank, then `rank` big-endian 32-bit sizes, then
///           the elements row-major.  Source: LeCun, Cortes, Burges, "The MNIST database".
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "data/image_array.h"

namespace crucible::data {

struct IdxArray {
  std::vector<int64_t> sizes;
  std::vector<uint8_t> values;
};

enum class Packing { plain, gzip };

/// Reads an IDX file of bytes with `rank` sizes from memory.  `file` is its name in errors.
/// Memory    at most what the payload needs; a header is checked against the file's size first.
/// Throws    IoError if it is anything else, or does not hold exactly what its header says.
IdxArray parse_idx(std::span<const std::byte> bytes, int rank, Packing packing,
                   std::string_view file);

/// Reads a file; a name that ends in .gz must be gzip, any other name must not.
/// Throws    IoError.
IdxArray load_idx(const std::filesystem::path& path, int rank);

/// Whether `directory` has the four MNIST-style files (train-images-idx3-ubyte, ..., each perhaps
/// with .gz) for a split.
bool has_idx_split(const std::filesystem::path& directory, std::string_view split);

/// Images and labels of one split, "train" or "test".  `classes` 0: one more than the largest
/// label. Throws    IoError if a file is missing, damaged, or counts differ; InvalidArgument for
/// the split.
std::shared_ptr<const LabelledImages> load_idx_split(const std::filesystem::path& directory,
                                                     std::string_view split, int64_t classes = 0);

/// Where Debian's package dataset-fashion-mnist puts its files, if they are there.
std::optional<std::filesystem::path> find_fashion_mnist();

/// Fashion-MNIST (Xiao, Rasul, Vollgraf 2017), normalised, without augmentation.
/// An empty directory means find_fashion_mnist().
/// Throws    IoError if it is not there, InvalidArgument for a split other than "train" and "test".
std::shared_ptr<const ImageArray> fashion_mnist(std::string_view split,
                                                const std::filesystem::path& directory = {});

}  // namespace crucible::data
