#include "data/token_bin.h"

#include <algorithm>
#include <array>
#include <vector>

#include "core/check.h"

namespace crucible::data {
namespace {

uint32_t little_endian(std::span<const std::byte> bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 4; i-- > 0;) value = value << 8 | std::to_integer<uint32_t>(bytes[at + i]);
  return value;
}

struct Format {
  uint32_t magic;
  uint32_t version;
  int64_t token_bytes;
};
constexpr std::array<Format, 2> formats{{{20240520, 1, 2}, {20240801, 7, 4}}};

TokenLayout read_layout(const InputFile& file) {
  std::vector<std::byte> head(static_cast<size_t>(std::min(file.size(), token_header_bytes)));
  file.read_at(0, head);
  return parse_token_layout(head, file.size(), file.path().string());
}

}  // namespace

TokenLayout parse_token_layout(std::span<const std::byte> head, int64_t file_bytes,
                               std::string_view file) {
  const uint32_t magic = head.size() >= 4 ? little_endian(head, 0) : 0;
  for (const Format& format : formats) {
    if (magic != format.magic) continue;
    check<IoError>(static_cast<int64_t>(head.size()) >= token_header_bytes,
                   "{}: holds {} bytes, a token file with magic {} has a header of {}; it is cut.",
                   file, file_bytes, magic, token_header_bytes);
    const uint32_t version = little_endian(head, 4);
    check<IoError>(version == format.version,
                   "{}: token file version is {}, expected {} for magic {}; write it again.", file,
                   version, format.version, magic);
    const int64_t count = little_endian(head, 8);
    const int64_t present = file_bytes - token_header_bytes;
    check<IoError>(count > 0 && present == count * format.token_bytes,
                   "{}: the header stands for {} tokens of {} bytes, {} bytes of tokens are there; "
                   "the file is cut or damaged.",
                   file, count, format.token_bytes, present);
    return {token_header_bytes, format.token_bytes, count};
  }
  check<IoError>(file_bytes > 0 && file_bytes % 2 == 0,
                 "{}: holds {} bytes, expected a positive even number for raw 16-bit tokens; it is "
                 "cut or no token file.",
                 file, file_bytes);
  return {0, 2, file_bytes / 2};
}

void widen_tokens(std::span<const std::byte> bytes, int64_t token_bytes, std::span<int64_t> into) {
  check(bytes.size() == into.size() * static_cast<size_t>(token_bytes),
        "widen_tokens: {} bytes are not {} tokens of {}; pass whole tokens.", bytes.size(),
        into.size(), token_bytes);
  const auto* in = reinterpret_cast<const uint8_t*>(bytes.data());
  if (token_bytes == 2) {
    for (int64_t& token : into) {
      token = in[0] | in[1] << 8;
      in += 2;
    }
  } else {
    for (size_t i = 0; i < into.size(); ++i) into[i] = little_endian(bytes, i * 4);
  }
}

TokenFile::TokenFile(const std::filesystem::path& path, int64_t vocabulary)
    : file_(path), layout_(read_layout(file_)), vocabulary_(vocabulary) {
  check(vocabulary >= 0, "{}: vocabulary {} is negative; give its size, or 0 for the usual one.",
        file_.path().string(), vocabulary);
  if (vocabulary_ == 0) vocabulary_ = layout_.token_bytes == 2 ? 50257 : 128256;
}

std::string TokenFile::description() const {
  return fmt::format("{} ({} tokens of {} bits)", file_.path().string(), layout_.count,
                     layout_.token_bytes * 8);
}

void TokenFile::read(int64_t first, std::span<int64_t> into) const {
  const auto count = static_cast<int64_t>(into.size());
  check(first >= 0 && count <= layout_.count && first <= layout_.count - count,
        "{}: tokens [{}, {}) are not inside [0, {}); ask for tokens it has.", file_.path().string(),
        first, first + count, layout_.count);
  std::vector<std::byte> bytes(into.size() * static_cast<size_t>(layout_.token_bytes));
  file_.read_at(layout_.first_byte + first * layout_.token_bytes, bytes);
  widen_tokens(bytes, layout_.token_bytes, into);
  for (size_t i = 0; i < into.size(); ++i) {
    check<IoError>(into[i] < vocabulary_,
                   "{}: token {} at position {} is outside the vocabulary of {}; give the right "
                   "vocabulary or file.",
                   file_.path().string(), into[i], first + static_cast<int64_t>(i), vocabulary_);
  }
}

}  // namespace crucible::data
