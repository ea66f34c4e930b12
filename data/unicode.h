/// Private: the little of Unicode that a tokenizer needs.
#pragma once

#include <cstdint>
#include <string_view>

namespace crucible::data {

/// Letters (general category L), numbers (N), white space (property White_Space), and the rest.
enum class CharacterClass : uint8_t { letter, number, space, other };

CharacterClass classify(uint32_t code_point);

/// One character of a text.
struct Character {
  uint32_t code_point;
  int bytes;
  CharacterClass kind;
};

/// The character at byte `at` < text.size().  A byte that is not part of well-formed UTF-8 counts
/// as one character of class `other`.  Source: Unicode 14.0, table 3-7.
Character character_at(std::string_view text, size_t at);

}  // namespace crucible::data
