// GPT-2 BPE: a vocabulary and merges from the input, then a text.  Parts are divided by zero bytes.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "data/bpe.h"

namespace {

std::string_view next_part(std::string_view& rest) {
  const std::string_view part = rest.substr(0, rest.find('\0'));
  rest.remove_prefix(std::min(part.size() + 1, rest.size()));
  return part;
}

/// A vocabulary of all bytes, and of the pairs "aa", "aaaa", " a".
std::string base_vocabulary() {
  std::string json = "{";
  int next_free = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte != 0xad);
    char text[32];
    std::snprintf(text, sizeof text, "\"\\u%04x\":%d,", printable ? byte : next_free++, byte);
    json += text;
  }
  return json + R"("aa":256,"aaaa":257,"\u0120a":258})";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using crucible::data::BpeTokenizer;
  static const std::string vocabulary = base_vocabulary();
  static const BpeTokenizer good(vocabulary, "a a\naa aa\n\u0120 a\n");
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  const std::string_view vocab = next_part(rest), merges = next_part(rest);
  try {
    BpeTokenizer(vocab.empty() ? std::string_view(vocabulary) : vocab, merges);
  } catch (const crucible::IoError&) {
  }
  const auto tokens = good.encode(rest);
  if (good.decode(std::vector<int64_t>(tokens.begin(), tokens.end())) != rest) __builtin_trap();
  return 0;
}
