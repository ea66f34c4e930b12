#include "data/unicode.h"

#include <algorithm>
#include <iterator>

namespace crucible::data {
namespace {

struct Range {
  uint32_t first;
  uint32_t last;
};

#include "data/unicode_tables.inc"

template <size_t n>
bool contains(const Range (&ranges)[n], uint32_t code_point) {
  const auto* after =
      std::upper_bound(std::begin(ranges), std::end(ranges), code_point,
                       [](uint32_t code, const Range& range) { return code < range.first; });
  return after != std::begin(ranges) && code_point <= std::prev(after)->last;
}

bool is_space(uint32_t c) {
  return (c >= 9 && c <= 13) || c == 0x20 || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
         c == 0x3000;
}

uint8_t byte_at(std::string_view text, size_t at) {
  return static_cast<uint8_t>(text[at]);
}

/// Bytes of the well-formed sequence at `at`, or 1; `code_point` is set if it is well-formed.
int decode(std::string_view text, size_t at, uint32_t& code_point) {
  const uint8_t lead = byte_at(text, at);
  int bytes = 0;
  uint8_t low = 0x80, high = 0xbf;  // allowed values of the second byte
  if (lead >= 0xc2 && lead <= 0xdf) {
    bytes = 2;
    code_point = lead & 0x1fu;
  } else if (lead >= 0xe0 && lead <= 0xef) {
    bytes = 3;
    code_point = lead & 0x0fu;
    if (lead == 0xe0) low = 0xa0;
    if (lead == 0xed) high = 0x9f;
  } else if (lead >= 0xf0 && lead <= 0xf4) {
    bytes = 4;
    code_point = lead & 0x07u;
    if (lead == 0xf0) low = 0x90;
    if (lead == 0xf4) high = 0x8f;
  }
  constexpr uint32_t invalid = 0xffffffff;
  if (bytes == 0 || at + static_cast<size_t>(bytes) > text.size()) {
    code_point = invalid;
    return 1;
  }
  for (int i = 1; i < bytes; ++i) {
    const uint8_t next = byte_at(text, at + static_cast<size_t>(i));
    if (next < low || next > high) {
      code_point = invalid;
      return 1;
    }
    low = 0x80;
    high = 0xbf;
    code_point = code_point << 6 | (next & 0x3fu);
  }
  return bytes;
}

}  // namespace

CharacterClass classify(uint32_t c) {
  if (c < 0x80) {
    if ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') return CharacterClass::letter;
    if (c >= '0' && c <= '9') return CharacterClass::number;
    return is_space(c) ? CharacterClass::space : CharacterClass::other;
  }
  if (contains(letters, c)) return CharacterClass::letter;
  if (contains(numbers, c)) return CharacterClass::number;
  return is_space(c) ? CharacterClass::space : CharacterClass::other;
}

Character character_at(std::string_view text, size_t at) {
  const uint8_t lead = byte_at(text, at);
  if (lead < 0x80) return {lead, 1, classify(lead)};
  uint32_t code_point = 0;
  const int bytes = decode(text, at, code_point);
  return {code_point, bytes, classify(code_point)};
}

}  // namespace crucible::data
