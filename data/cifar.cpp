#include "data/cifar.h"

#include <string>
#include <vector>

#include "core/check.h"
#include "core/file.h"

namespace crucible::data {
namespace {

constexpr int64_t side = 32;
constexpr int64_t plane = side * side;

std::vector<std::string> files_of(CifarKind kind, std::string_view split) {
  check(split == "train" || split == "test",
        "cifar: split \"{}\" is not known; use \"train\" or \"test\".", split);
  if (kind == CifarKind::cifar100) return {split == "train" ? "train.bin" : "test.bin"};
  if (split == "test") return {"test_batch.bin"};
  std::vector<std::string> files;
  for (int i = 1; i <= 5; ++i) files.push_back(fmt::format("data_batch_{}.bin", i));
  return files;
}

}  // namespace

void parse_cifar(std::span<const std::byte> bytes, CifarKind kind, std::string_view file,
                 LabelledImages& into) {
  const int64_t label_bytes = kind == CifarKind::cifar10 ? 1 : 2;
  const int64_t classes = kind == CifarKind::cifar10 ? 10 : 100;
  const int64_t record = label_bytes + 3 * plane;
  const auto size = static_cast<int64_t>(bytes.size());
  check<IoError>(size > 0 && size % record == 0,
                 "{}: holds {} bytes, expected a positive multiple of {} (one CIFAR-{} record); "
                 "download it again.",
                 file, size, record, classes);
  const int64_t count = size / record;
  const size_t start = into.pixels.size();
  into.pixels.resize(start + static_cast<size_t>(count * 3 * plane));
  uint8_t* out = into.pixels.data() + start;
  for (int64_t i = 0; i < count; ++i) {
    const auto* in = reinterpret_cast<const uint8_t*>(bytes.data()) + i * record;
    const int64_t label = in[label_bytes - 1];
    check<IoError>(
        label < classes,
        "{}: label of record {} is {}, expected [0, {}); the file is damaged or of another "
        "data set.",
        file, i, label, classes);
    into.labels.push_back(label);
    in += label_bytes;
    for (int64_t p = 0; p < plane; ++p, out += 3) {
      out[0] = in[p];
      out[1] = in[p + plane];
      out[2] = in[p + 2 * plane];
    }
  }
  into.count += count;
  into.height = into.width = side;
  into.channels = 3;
  into.classes = classes;
}

std::optional<CifarKind> find_cifar(const std::filesystem::path& directory) {
  std::error_code ignored;
  const auto has = [&](const char* name) {
    return std::filesystem::exists(directory / name, ignored);
  };
  if (has("data_batch_1.bin") || has("test_batch.bin")) return CifarKind::cifar10;
  if (has("train.bin") && has("test.bin")) return CifarKind::cifar100;
  return std::nullopt;
}

std::shared_ptr<const LabelledImages> load_cifar(const std::filesystem::path& directory,
                                                 CifarKind kind, std::string_view split) {
  constexpr int64_t largest_file_bytes = int64_t{1} << 30;
  auto images = std::make_shared<LabelledImages>();
  images->origin = fmt::format("{} (CIFAR-{} {})", directory.string(),
                               kind == CifarKind::cifar10 ? 10 : 100, split);
  for (const std::string& name : files_of(kind, split)) {
    const auto path = directory / name;
    parse_cifar(read_file(path, largest_file_bytes), kind, path.string(), *images);
  }
  return images;
}

}  // namespace crucible::data
