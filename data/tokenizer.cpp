#include "data/tokenizer.h"

#include "core/check.h"

namespace crucible::data {

std::vector<uint32_t> ByteTokenizer::encode(std::string_view text) const {
  std::vector<uint32_t> tokens;
  tokens.reserve(text.size());
  for (const char c : text) tokens.push_back(static_cast<uint8_t>(c));
  return tokens;
}

std::string ByteTokenizer::decode(std::span<const int64_t> tokens) const {
  std::string text;
  text.reserve(tokens.size());
  for (const int64_t token : tokens) {
    check(token >= 0 && token < 256, "bytes: token {} is outside [0, 256); pass bytes.", token);
    text.push_back(static_cast<char>(token));
  }
  return text;
}

}  // namespace crucible::data
