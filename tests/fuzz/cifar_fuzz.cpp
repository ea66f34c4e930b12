// CIFAR binary files: the first byte chooses 10 or 100 classes, the rest is the file.
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/error.h"
#include "data/cifar.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace crucible::data;
  if (size == 0) return 0;
  const std::span<const std::byte> file(reinterpret_cast<const std::byte*>(data + 1), size - 1);
  LabelledImages images;
  try {
    parse_cifar(file, data[0] & 1 ? CifarKind::cifar100 : CifarKind::cifar10, "input", images);
    const auto count = static_cast<size_t>(images.count);
    if (images.labels.size() != count || images.pixels.size() != count * 3072) __builtin_trap();
    for (const int64_t label : images.labels) {
      if (label < 0 || label >= images.classes) __builtin_trap();
    }
  } catch (const crucible::IoError&) {
  }
  return 0;
}
