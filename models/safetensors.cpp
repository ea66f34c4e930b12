#include "models/safetensors.h"

#include <algorithm>
#include <utility>

#include "core/check.h"
#include "models/layout.h"
#include "models/shown.h"

namespace crucible::models {

namespace {

constexpr int64_t length_bytes = 8;  // of the length field
constexpr std::string_view damaged = "the file is damaged or not safetensors, get it anew";

}  // namespace

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path) : file_(path) {
  std::vector<std::byte> start(length_bytes);
  check<IoError>(file_.size() >= length_bytes,
                 "{}: the file has {} bytes, too few for safetensors; {}.", path.native(),
                 file_.size(), damaged);
  file_.read_at(0, start);
  start.resize(length_bytes + safetensors_header_bytes(start, file_.size(), path.native()));
  file_.read_at(length_bytes, std::span(start).subspan(length_bytes));
  header_ = parse_safetensors(start, file_.size(), path.native());
}

void SafetensorsFile::read(const TensorEntry& entry, std::span<std::byte> out) const {
  check(static_cast<int64_t>(out.size()) == entry.nbytes(),
        "{}: tensor {}: {} bytes of room for {}; give room for all.", file_.path().native(),
        Shown{entry.name}, out.size(), entry.nbytes());
  file_.read_at(header_.data_begin + entry.begin, out);
  if (entry.dtype != DType::boolean) return;
  const auto bad = std::ranges::find_if(out, [](std::byte b) { return b > std::byte{1}; });
  check<IoError>(bad == out.end(), "{}: tensor {}: element {} of a BOOL is neither 0 nor 1; {}.",
                 file_.path().native(), Shown{entry.name}, bad - out.begin(), damaged);
}

Tensor SafetensorsFile::read(std::string_view name, Device device) const {
  const TensorEntry* entry = find(name);
  check<IoError>(entry != nullptr, "{}: there is no tensor {}; the file holds {} others.",
                 file_.path().native(), Shown{name}, tensors().size());
  std::vector<std::byte> bytes(static_cast<size_t>(entry->nbytes()));
  read(*entry, bytes);
  Tensor tensor = Tensor::empty(entry->shape, entry->dtype, device);
  import_bytes(bytes, ExportLayout::as_is, tensor);
  return tensor;
}

void SafetensorsWriter::add(const NamedTensor& named) {
  check(named.tensor.defined(), "safetensors: tensor {} is undefined; give it a value first.",
        Shown{named.name});
  Source source;
  source.entry = {.name = named.name,
                  .dtype = named.tensor.dtype(),
                  .shape = exported_shape(named.tensor.shape(), named.layout)};
  source.entry.end = named.tensor.nbytes();
  source.tensor = named.tensor;
  source.layout = named.layout;
  add_source(std::move(source));
}

void SafetensorsWriter::add(std::string name, DType dtype, const Shape& shape,
                            std::span<const std::byte> bytes) {
  int64_t needed = 0;
  check(!__builtin_mul_overflow(shape.numel(), size_of(dtype), &needed) &&
            needed == static_cast<int64_t>(bytes.size()),
        "safetensors: tensor {}: {} bytes do not fill {} {}; {} are needed.", Shown{name},
        bytes.size(), safetensors_name(dtype), to_string(shape), needed);
  Source source;
  source.entry = {.name = std::move(name), .dtype = dtype, .shape = shape, .end = needed};
  source.bytes = bytes;
  add_source(std::move(source));
}

void SafetensorsWriter::add_source(Source source) {
  const std::string& name = source.entry.name;
  check(name != "__metadata__", "safetensors: {} is reserved by the format; rename the tensor.",
        name);
  check(names_.insert(name).second, "safetensors: tensor {} occurs twice; rename one.",
        Shown{name});
  sources_.push_back(std::move(source));
}

void SafetensorsWriter::write(OutputFile& out) const {
  std::vector<const Source*> order;
  for (const Source& source : sources_) order.push_back(&source);
  std::ranges::sort(order, {}, [](const Source* s) {
    return std::pair<int64_t, std::string_view>(-size_of(s->entry.dtype), s->entry.name);
  });
  std::vector<TensorEntry> entries;
  int64_t offset = 0;
  for (const Source* source : order) {
    TensorEntry entry = source->entry;
    entry.begin = std::exchange(offset, offset + source->entry.nbytes());
    entry.end = offset;
    entries.push_back(std::move(entry));
  }
  const std::string start = safetensors_start(entries, metadata_);
  const auto start_bytes = std::as_bytes(std::span(start));
  try {  // what the reader would refuse is not written
    parse_safetensors(start_bytes, static_cast<int64_t>(start.size()) + offset, "safetensors");
  } catch (const IoError& error) {
    throw InvalidArgument(error.what());
  }

  out.write(start_bytes);
  std::vector<std::byte> scratch;
  for (const Source* source : order) {
    out.write(source->tensor.defined() ? exported_bytes(source->tensor, source->layout, scratch)
                                       : source->bytes);
  }
}

}  // namespace crucible::models
