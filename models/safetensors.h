/// Reading and writing the tensors of safetensors files; the format is in
/// models/safetensors_header.h.
#pragma once

#include <cstddef>
#include <filesystem>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/file.h"
#include "core/named_tensor.h"
#include "models/safetensors_header.h"

namespace crucible::models {

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
