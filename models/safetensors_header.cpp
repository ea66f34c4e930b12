#include "models/safetensors_header.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "models/shown.h"

namespace crucible::models {

namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

constexpr int64_t length_bytes = 8;
constexpr int64_t max_header_bytes = 100'000'000;
constexpr size_t max_tensors = 100'000;
constexpr size_t max_metadata = 10'000;
constexpr size_t max_text_bytes = size_t{8} << 20;
constexpr std::string_view metadata_key = "__metadata__";
constexpr std::string_view damaged = "the file is damaged or not safetensors, get it anew";

struct DTypeName {
  DType dtype;
  std::string_view name;
};
constexpr DTypeName dtype_names[] = {
    {DType::f64, "F64"}, {DType::f32, "F32"}, {DType::f16, "F16"}, {DType::bf16, "BF16"},
    {DType::i64, "I64"}, {DType::i32, "I32"}, {DType::u8, "U8"},   {DType::boolean, "BOOL"}};

// Takes the events of the JSON parser.  The grammar has three levels: tensor names, their fields,
// numbers; whatever does not fit it is refused at once, so nothing grows beyond the header's size.
class HeaderReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  HeaderReader(SafetensorsHeader& header, std::string_view who) : header_(header), who_(who) {}

  bool start_object(size_t) override {
    if (level_ == Level::outside) {
      level_ = Level::top;
    } else if (level_ == Level::top && name_ == metadata_key) {
      check<IoError>(!seen_metadata_, "{}: {} occurs twice in the header; {}.", who_, metadata_key,
                     damaged);
      seen_metadata_ = true;
      level_ = Level::metadata;
    } else if (level_ == Level::top) {
      check<IoError>(header_.tensors.size() < max_tensors,
                     "{}: the header lists more than {} tensors; split the file.", who_,
                     max_tensors);
      level_ = Level::tensor;
      entry_ = {.name = std::move(name_)};
      seen_dtype_ = seen_shape_ = seen_offsets_ = false;
    } else {
      wrong_value("an object");
    }
    return true;
  }

  bool key(string_t& text) override {
    if (level_ == Level::top) {
      name_ = std::move(text);
    } else {
      field_ = std::move(text);
    }
    return true;
  }

  bool end_object() override {
    if (level_ == Level::tensor) finish_tensor();
    level_ = level_ == Level::top ? Level::outside : Level::top;
    return true;
  }

  bool start_array(size_t) override {
    if (level_ == Level::tensor && field_ == "shape") {
      once(seen_shape_);
    } else if (level_ == Level::tensor && field_ == "data_offsets") {
      once(seen_offsets_);
    } else {
      wrong_value("an array");
    }
    level_ = Level::numbers;
    count_ = 0;
    return true;
  }

  bool end_array() override {
    level_ = Level::tensor;
    if (field_ == "shape") {
      entry_.shape = checked_shape();
    } else {
      check<IoError>(count_ == 2, "{}: tensor {}: data_offsets holds {} numbers, not 2; {}.", who_,
                     Shown{entry_.name}, count_, damaged);
      entry_.begin = numbers_[0];
      entry_.end = numbers_[1];
    }
    return true;
  }

  bool number_unsigned(number_unsigned_t value) override {
    if (level_ != Level::numbers) wrong_value(std::to_string(value));
    check<IoError>(value <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max()),
                   "{}: tensor {}: {} holds {}, which passes 2^63 - 1; {}.", who_,
                   Shown{entry_.name}, field_, value, damaged);
    const size_t limit = field_ == "shape" ? Shape::max_rank : 2;
    check<IoError>(count_ < limit, "{}: tensor {}: {} holds more than {} numbers; {}.", who_,
                   Shown{entry_.name}, field_, limit,
                   field_ == "shape" ? "tensors of more axes are not supported" : damaged);
    numbers_[count_++] = static_cast<int64_t>(value);
    return true;
  }

  bool string(string_t& text) override {
    if (level_ == Level::metadata) {
      check<IoError>(header_.metadata.size() < max_metadata,
                     "{}: {} lists more than {} texts; remove some.", who_, metadata_key,
                     max_metadata);
      const bool added = header_.metadata.emplace(std::move(field_), std::move(text)).second;
      check<IoError>(added, "{}: a key of {} occurs twice; {}.", who_, metadata_key, damaged);
    } else if (level_ == Level::tensor && field_ == "dtype") {
      once(seen_dtype_);
      const auto* known = std::ranges::find(dtype_names, std::string_view(text), &DTypeName::name);
      check<IoError>(
          known != std::end(dtype_names),
          "{}: tensor {}: dtype {} is not supported; convert it to one of F64, F32, F16, "
          "BF16, I64, I32, U8, BOOL.",
          who_, Shown{entry_.name}, Shown{text});
      entry_.dtype = known->dtype;
    } else {
      wrong_value(fmt::format("{}", Shown{text}));
    }
    return true;
  }

  bool null() override { wrong_value("null"); }
  bool boolean(bool value) override { wrong_value(value ? "true" : "false"); }
  bool number_integer(number_integer_t value) override { wrong_value(std::to_string(value)); }
  bool number_float(number_float_t, const string_t& text) override {
    wrong_value(fmt::format("{}", Shown{text}));
  }
  bool binary(binary_t&) override { wrong_value("binary data"); }
  bool parse_error(size_t position, const std::string&,
                   const nlohmann::json::exception& error) override {
    const bool utf8 = std::string_view(error.what()).find("UTF-8") != std::string_view::npos;
    fail<IoError>("{}: the header is not {}: byte {} of its text; {}.", who_,
                  utf8 ? "UTF-8" : "JSON", position, damaged);
  }

 private:
  enum class Level { outside, top, metadata, tensor, numbers };

  [[noreturn]] void wrong_value(std::string_view value) {
    switch (level_) {
      case Level::outside:
        fail<IoError>("{}: the header is {}, not an object; {}.", who_, value, damaged);
      case Level::top:
        fail<IoError>("{}: tensor {} is {}, not an object; {}.", who_, Shown{name_}, value,
                      damaged);
      case Level::metadata:
        fail<IoError>("{}: {} of {} is {}, not a text; {}.", who_, Shown{field_}, metadata_key,
                      value, damaged);
      default:
        fail<IoError>("{}: tensor {}: {} holds {}, which does not belong there; {}.", who_,
                      Shown{entry_.name}, Shown{field_}, value, damaged);
    }
  }

  void once(bool& seen) {
    check<IoError>(!seen, "{}: tensor {}: {} occurs twice; {}.", who_, Shown{entry_.name}, field_,
                   damaged);
    seen = true;
  }

  Shape checked_shape() const {
    const std::span<const int64_t> sizes(numbers_.data(), count_);
    try {
      return Shape(sizes);
    } catch (const InvalidArgument&) {
      fail<IoError>("{}: tensor {}: the element count of [{}] passes 2^63 - 1; {}.", who_,
                    Shown{entry_.name}, fmt::join(sizes, ", "), damaged);
    }
  }

  void finish_tensor() {
    const std::string_view missing = !seen_dtype_     ? "dtype"
                                     : !seen_shape_   ? "shape"
                                     : !seen_offsets_ ? "data_offsets"
                                                      : "";
    check<IoError>(missing.empty(), "{}: tensor {} lacks {}; {}.", who_, Shown{entry_.name},
                   missing, damaged);
    int64_t needed = 0;
    const bool fits = !__builtin_mul_overflow(entry_.shape.numel(), size_of(entry_.dtype), &needed);
    if (!fits || entry_.begin > entry_.end || entry_.end - entry_.begin != needed) {
      fail<IoError>("{}: tensor {}: data_offsets [{}, {}] do not match {} {}; {}.", who_,
                    Shown{entry_.name}, entry_.begin, entry_.end, safetensors_name(entry_.dtype),
                    to_string(entry_.shape), damaged);
    }
    header_.tensors.push_back(std::move(entry_));
  }

  SafetensorsHeader& header_;
  std::string_view who_;
  Level level_ = Level::outside;
  std::string name_, field_;
  TensorEntry entry_;
  std::array<int64_t, Shape::max_rank> numbers_{};
  size_t count_ = 0;
  bool seen_metadata_ = false, seen_dtype_ = false, seen_shape_ = false, seen_offsets_ = false;
};

// What the JSON parser would let pass or would copy before anyone can object: a zero byte ends its
// input, a byte order mark is skipped, a long text (also of blanks) is held three times.
void check_text(std::string_view json, std::string_view who) {
  check<IoError>(json.front() == '{', "{}: the header does not start with '{{'; {}.", who, damaged);
  const size_t zero = json.find('\0');
  check<IoError>(zero == json.npos, "{}: byte {} of the header's text is zero; {}.", who, zero,
                 damaged);
  bool inside = false;
  size_t start = 0;  // of the present text, number or run of blanks
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (c == '"') inside = !inside;
    if (c == '"' || (!inside && std::string_view("{}[]:,").find(c) != std::string_view::npos)) {
      start = i;
    }
    if (c == '\\' && inside) ++i;
    check<IoError>(i - start <= max_text_bytes,
                   "{}: the header has more than {} bytes between two of its marks; {}.", who,
                   max_text_bytes, damaged);
  }
}

// The tensors must cover the data from its first byte to its last, each byte once.
void check_coverage(const SafetensorsHeader& header, int64_t data_bytes, std::string_view who) {
  std::vector<const TensorEntry*> order;
  order.reserve(header.tensors.size());
  for (const TensorEntry& entry : header.tensors) order.push_back(&entry);
  std::ranges::sort(order, {}, [](const TensorEntry* e) { return std::pair(e->begin, e->end); });
  int64_t covered = 0;
  for (const TensorEntry* entry : order) {
    check<IoError>(entry->begin == covered,
                   "{}: tensor {} begins at byte {} of the data, {} {}; {}.", who,
                   Shown{entry->name}, entry->begin,
                   entry->begin > covered ? "a hole after byte" : "inside another that ends at",
                   covered, damaged);
    covered = entry->end;
  }
  check<IoError>(covered == data_bytes, "{}: the tensors hold {} bytes, the file has {}; {}.", who,
                 covered, data_bytes, damaged);
}

// A JSON text.
std::string escaped(const std::string& value) {
  try {
    return nlohmann::json(value).dump();
  } catch (const nlohmann::json::exception&) {
    fail("safetensors: {} is not UTF-8; rename it.", Shown{value});
  }
}

}  // namespace

std::string_view safetensors_name(DType dtype) {
  return std::ranges::find(dtype_names, dtype, &DTypeName::dtype)->name;
}

const TensorEntry* SafetensorsHeader::find(std::string_view name) const {
  const auto it = std::ranges::lower_bound(
      tensors, name, {}, [](const TensorEntry& e) -> std::string_view { return e.name; });
  return it != tensors.end() && it->name == name ? &*it : nullptr;
}

int64_t safetensors_header_bytes(std::span<const std::byte> first_eight, int64_t file_bytes,
                                 std::string_view who) {
  check<IoError>(first_eight.size() >= length_bytes && file_bytes >= length_bytes,
                 "{}: the file has {} bytes, too few for safetensors; {}.", who, file_bytes,
                 damaged);
  uint64_t n = 0;
  std::memcpy(&n, first_eight.data(), length_bytes);
  check<IoError>(
      n >= 2 && n <= max_header_bytes && n <= static_cast<uint64_t>(file_bytes - length_bytes),
      "{}: header length {} is outside [2, {}] for a file of {} bytes; {}.", who, n,
      max_header_bytes, file_bytes, damaged);
  return static_cast<int64_t>(n);
}

SafetensorsHeader parse_safetensors(std::span<const std::byte> start, int64_t file_bytes,
                                    std::string_view who) {
  const int64_t n = safetensors_header_bytes(start, file_bytes, who);
  check<IoError>(static_cast<int64_t>(start.size()) >= length_bytes + n,
                 "{}: {} bytes of the header are at hand, {} are needed; {}.", who,
                 start.size() - length_bytes, n, damaged);
  const std::string_view json(reinterpret_cast<const char*>(start.data()) + length_bytes,
                              static_cast<size_t>(n));
  check_text(json, who);
  SafetensorsHeader header;
  header.data_begin = length_bytes + n;
  HeaderReader reader(header, who);
  nlohmann::json::sax_parse(json.begin(), json.end(), &reader);

  std::ranges::sort(header.tensors, {}, &TensorEntry::name);
  const auto twice = std::ranges::adjacent_find(header.tensors, {}, &TensorEntry::name);
  if (twice != header.tensors.end()) {
    fail<IoError>("{}: tensor {} occurs twice in the header; {}.", who, Shown{twice->name},
                  damaged);
  }
  check_coverage(header, file_bytes - header.data_begin, who);
  return header;
}

// The order of keys is that of `entries`, which a JSON library would not keep, so the object is put
// together by hand.
std::string safetensors_start(std::span<const TensorEntry> entries, const Metadata& metadata) {
  std::vector<std::string> items, texts;
  for (const auto& [key, value] : metadata) {
    texts.push_back(fmt::format("{}:{}", escaped(key), escaped(value)));
  }
  if (!texts.empty()) {
    items.push_back(fmt::format(R"("{}":{{{}}})", metadata_key, fmt::join(texts, ",")));
  }
  for (const TensorEntry& e : entries) {
    items.push_back(fmt::format(R"({}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                                escaped(e.name), safetensors_name(e.dtype),
                                fmt::join(e.shape.sizes(), ","), e.begin, e.end));
  }
  std::string json = fmt::format("{{{}}}", fmt::join(items, ","));
  json.resize((json.size() + 7) / 8 * 8, ' ');  // so that the data starts at a multiple of 8
  const uint64_t n = json.size();
  std::string start(length_bytes, '\0');
  std::memcpy(start.data(), &n, length_bytes);
  return start.append(json);
}

}  // namespace crucible::models
