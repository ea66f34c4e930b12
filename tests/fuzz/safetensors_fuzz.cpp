// An input is either a whole file, or (to get past the length field) a header text whose length is
// filled in here.  What the parser accepts must be safe to read, and must survive being written.
#include <cstdlib>
#include <cstring>
#include <string>

#include "core/error.h"
#include "models/safetensors_header.h"

namespace {

using namespace crucible;
using namespace crucible::models;

void require(bool condition) {
  if (!condition) std::abort();
}

void try_file(std::span<const std::byte> file) {
  const auto size = static_cast<int64_t>(file.size());
  SafetensorsHeader header;
  try {
    header = parse_safetensors(file, size, "fuzz");
  } catch (const IoError&) {
    return;
  }
  int64_t total = 0;
  for (const TensorEntry& entry : header.tensors) {
    require(0 <= entry.begin && entry.begin <= entry.end);
    require(header.data_begin + entry.end <= size);
    require(entry.nbytes() == entry.shape.numel() * size_of(entry.dtype));
    require(header.find(entry.name) == &entry);
    total += entry.nbytes();
  }
  require(header.data_begin + total == size);

  const std::string start = safetensors_start(header.tensors, header.metadata);
  const SafetensorsHeader again = parse_safetensors(
      std::as_bytes(std::span(start)), static_cast<int64_t>(start.size()) + total, "again");
  require(again.metadata == header.metadata && again.tensors.size() == header.tensors.size());
  for (size_t i = 0; i < again.tensors.size(); ++i) {
    const TensorEntry &a = again.tensors[i], &b = header.tensors[i];
    require(a.name == b.name && a.dtype == b.dtype && a.shape == b.shape && a.begin == b.begin);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  try_file(bytes);
  if (size < 2) return 0;
  std::vector<std::byte> file(8);  // data[0] is how many bytes of data follow the text
  const uint64_t n = size - 1;
  std::memcpy(file.data(), &n, sizeof n);
  file.insert(file.end(), bytes.begin() + 1, bytes.end());
  file.resize(file.size() + data[0]);
  try_file(file);
  return 0;
}
