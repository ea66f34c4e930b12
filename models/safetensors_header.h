/// The header of a safetensors file: names, dtypes, shapes and byte ranges, in JSON.
///
/// Eight bytes hold the header's length N (little-endian), then N bytes of JSON map each name to
/// dtype, shape and a byte range of what follows.  Nothing that a file says is used before it has
/// been checked against the size of the file.
/// Source    https://github.com/huggingface/safetensors, section "Format".
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.h"
#include "core/shape.h"

namespace crucible::models {

/// One tensor of a file.  Its bytes are [begin, end) counted from the end of the header.
struct TensorEntry {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  int64_t begin = 0;
  int64_t end = 0;

  int64_t nbytes() const { return end - begin; }
};

/// Text to text, from the header's `__metadata__`.
using Metadata = std::map<std::string, std::string>;

/// A checked header: ranges match dtype and shape, and together cover the file without gap or
/// overlap.
struct SafetensorsHeader {
  std::vector<TensorEntry> tensors;  ///< Sorted by name.
  Metadata metadata;
  int64_t data_begin = 0;  ///< Where in the file the tensors' bytes start.

  /// Null if there is no tensor of that name.
  const TensorEntry* find(std::string_view name) const;
};

/// Checks the first eight bytes of a file of `file_bytes` bytes.  `who` names the file in errors.
/// Returns   bytes of the JSON text, at most 100,000,000 and at most what the file holds.
/// Throws    IoError.
int64_t safetensors_header_bytes(std::span<const std::byte> first_eight, int64_t file_bytes,
                                 std::string_view who);

/// Parses the header of a file of `file_bytes` bytes, of which `start` holds the first ones: all of
/// the header at least.
///
/// Refused, besides what contradicts the format: tensors of a dtype that crucible lacks, more than
/// eight axes, more than 100,000 tensors, a text of more than 8 MiB.
/// Memory    a small multiple of the header.
/// Throws    IoError naming the tensor and the values.
SafetensorsHeader parse_safetensors(std::span<const std::byte> start, int64_t file_bytes,
                                    std::string_view who);

/// "F32", "BF16", "BOOL", ...: the format's name of a dtype.
std::string_view safetensors_name(DType dtype);

/// The start of a file with these tensors: length and header, padded to a multiple of 8 bytes.
/// Throws    InvalidArgument for a text that is not UTF-8.
std::string safetensors_start(std::span<const TensorEntry> entries, const Metadata& metadata);

}  // namespace crucible::models
