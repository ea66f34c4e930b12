/// Reading and writing safetensors files: a JSON header, then the bytes of the tensors.
///
/// Eight bytes hold the header's length N (little-endian), then N bytes of JSON map each name to
/// dtype, shape and a byte range of what follows.  Nothing that a file says is used before it has
/// been checked against the size of the file.
/// Source    https://github.com/huggingface/safetensors, section "Format".
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/file.h"
#include "core/named_tensor.h"

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

/// A file open for reading.  Tensors are read when asked for; only the header is kept.
class SafetensorsFile {
 public:
  /// Throws    IoError.
  explicit SafetensorsFile(const std::filesystem::path& path);

  const InputFile& file() const { return file_; }
  const SafetensorsHeader& header() const { return header_; }
  const std::vector<TensorEntry>& tensors() const { return header_.tensors; }
  const TensorEntry* find(std::string_view name) const { return header_.find(name); }

  /// Fills `out` (of entry.nbytes() bytes) with the bytes of a tensor of this file.
  /// Throws    IoError if the file was cut, or if a BOOL is neither 0 nor 1.
  void read(const TensorEntry& entry, std::span<std::byte> out) const;
  /// Reads one tensor, in the order of axes and the dtype of the file.
  /// Throws    IoError also if there is no tensor of that name.
  Tensor read(std::string_view name, Device device = Device::cpu()) const;

 private:
  InputFile file_;
  SafetensorsHeader header_;
};

/// Collects tensors, then writes them one by one; equal contents give equal bytes.
///
/// The file is ordered by element size, largest first, then by name, so that each tensor starts at
/// a multiple of its element size.
class SafetensorsWriter {
 public:
  explicit SafetensorsWriter(Metadata metadata = {}) : metadata_(std::move(metadata)) {}

  /// Adds a tensor of any device.  Its contents are read by `write()`.
  /// Throws    InvalidArgument if it is undefined, or its name occurs twice or is "__metadata__".
  void add(const NamedTensor& named);
  /// Adds row-major bytes, which the caller keeps until `write()` is done.
  /// Throws    InvalidArgument if their number does not match.
  void add(std::string name, DType dtype, const Shape& shape, std::span<const std::byte> bytes);

  /// Memory    one tensor at a time, if it has to be copied from a device or permuted.
  /// Throws    InvalidArgument for a text that is not UTF-8; IoError.
  void write(OutputFile& out) const;

 private:
  struct Source {
    TensorEntry entry;
    Tensor tensor;  // undefined: `bytes` are the contents
    ExportLayout layout = ExportLayout::as_is;
    std::span<const std::byte> bytes;
  };
  void add_source(Source source);

  std::vector<Source> sources_;
  std::set<std::string> names_;
  Metadata metadata_;
};

}  // namespace crucible::models
