#include "data/bpe.h"

#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <queue>
#include <tuple>

#include "core/check.h"
#include "core/file.h"
#include "data/unicode.h"

namespace crucible::data {
namespace {

/// Length of an English contraction at `at` ('s, 't, 're, ...), or 0.
size_t contraction_length(std::string_view text, size_t at) {
  if (text[at] != '\'') return 0;
  for (const std::string_view tail : {"s", "t", "re", "ve", "m", "ll", "d"}) {
    if (text.substr(at + 1).starts_with(tail)) return 1 + tail.size();
  }
  return 0;
}

/// One past the last character of class `kind` from `at` on.
size_t run_end(std::string_view text, size_t at, CharacterClass kind) {
  while (at < text.size()) {
    const Character c = character_at(text, at);
    if (c.kind != kind) break;
    at += static_cast<size_t>(c.bytes);
  }
  return at;
}

/// End of a run of white space at `at`: the last character is left for the word that follows, if
/// there is one and the run has another.
size_t space_end(std::string_view text, size_t at) {
  size_t last = at, end = at;
  while (end < text.size()) {
    const Character c = character_at(text, end);
    if (c.kind != CharacterClass::space) break;
    last = end;
    end += static_cast<size_t>(c.bytes);
  }
  return end == text.size() || last == at ? end : last;
}

size_t piece_end(std::string_view text, size_t at) {
  if (const size_t length = contraction_length(text, at)) return at + length;
  const Character first = character_at(text, at);
  if (first.kind != CharacterClass::space) return run_end(text, at, first.kind);
  if (first.code_point == ' ' && at + 1 < text.size()) {
    const CharacterClass next = character_at(text, at + 1).kind;
    if (next != CharacterClass::space) return run_end(text, at + 1, next);
  }
  return space_end(text, at);
}

/// GPT-2 writes each byte as a printable character: itself where it is one in Latin-1, else the
/// next free one from U+0100 on.
std::array<uint32_t, 256> byte_characters() {
  std::array<uint32_t, 256> characters{};
  uint32_t next = 0x100;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte != 0xad);
    characters[byte] = printable ? byte : next++;
  }
  return characters;
}

/// The bytes that a token's printable form stands for; false if it has a character that is none.
bool bytes_from_printable(std::string_view printable, std::string& bytes) {
  static const auto byte_of = [] {
    std::unordered_map<uint32_t, char> map;
    const auto characters = byte_characters();
    for (size_t byte = 0; byte < 256; ++byte) map[characters[byte]] = static_cast<char>(byte);
    return map;
  }();
  bytes.clear();
  for (size_t at = 0; at < printable.size();) {
    const Character c = character_at(printable, at);
    const auto found = byte_of.find(c.code_point);
    if (found == byte_of.end()) return false;
    bytes.push_back(found->second);
    at += static_cast<size_t>(c.bytes);
  }
  return true;
}

/// Tokens by number, as the JSON object gives them.
std::vector<std::string> parse_vocabulary(std::string_view json_text, std::string_view file) {
  using nlohmann::json;
  // Nothing below the first level is kept, so nesting costs no memory.
  const json vocabulary = json::parse(
      json_text, [](int depth, json::parse_event_t, json&) { return depth <= 1; }, false);
  check<IoError>(vocabulary.is_object() && !vocabulary.empty(),
                 "{}: is not a JSON object of tokens; give GPT-2's vocab.json.", file);
  std::vector<std::string> tokens(vocabulary.size());
  std::vector<bool> seen(vocabulary.size());
  for (const auto& [printable, number] : vocabulary.items()) {
    const uint64_t id =
        number.is_number_unsigned() ? number.get<uint64_t>() : std::numeric_limits<uint64_t>::max();
    check<IoError>(id < tokens.size() && !seen[id],
                   "{}: token \"{}\" has number {}, expected each of [0, {}) once; the file is "
                   "damaged.",
                   file, printable, number.dump(), tokens.size());
    seen[id] = true;
    std::string bytes;
    tokens[id] = bytes_from_printable(printable, bytes) ? bytes : printable;
  }
  return tokens;
}

}  // namespace

std::vector<std::string_view> split_like_gpt2(std::string_view text) {
  std::vector<std::string_view> pieces;
  for (size_t at = 0; at < text.size();) {
    const size_t end = piece_end(text, at);
    pieces.push_back(text.substr(at, end - at));
    at = end;
  }
  return pieces;
}

BpeTokenizer::BpeTokenizer(std::string_view vocab_json, std::string_view merges_txt,
                           std::string_view vocab_file, std::string_view merges_file)
    : bytes_of_(parse_vocabulary(vocab_json, vocab_file)) {
  for (size_t id = 0; id < bytes_of_.size(); ++id) {
    const bool fresh = token_of_.emplace(bytes_of_[id], static_cast<uint32_t>(id)).second;
    check<IoError>(fresh,
                   "{}: two tokens stand for the same bytes, one is number {}; the file is "
                   "damaged.",
                   vocab_file, id);
  }
  for (size_t byte = 0; byte < 256; ++byte) {
    const auto found = token_of_.find(std::string(1, static_cast<char>(byte)));
    check<IoError>(found != token_of_.end(),
                   "{}: has no token for byte {}; give the vocabulary of a byte-level BPE.",
                   vocab_file, byte);
    byte_token_[byte] = found->second;
  }
  read_merges(merges_txt, merges_file);
}

void BpeTokenizer::read_merges(std::string_view merges_txt, std::string_view file) {
  uint32_t rank = 0;
  int64_t line_number = 0;
  while (!merges_txt.empty()) {
    const size_t length = std::min(merges_txt.find('\n'), merges_txt.size());
    std::string_view line = merges_txt.substr(0, length);
    merges_txt.remove_prefix(std::min(length + 1, merges_txt.size()));
    ++line_number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || (line_number == 1 && line.starts_with("#version"))) continue;
    const size_t space = line.find(' ');
    std::string left, right;
    const bool good = space != std::string_view::npos &&
                      bytes_from_printable(line.substr(0, space), left) &&
                      bytes_from_printable(line.substr(space + 1), right);
    check<IoError>(good, "{}: line {} is \"{}\", expected two tokens; give GPT-2's merges.txt.",
                   file, line_number, line.substr(0, 80));
    const auto a = token_of_.find(left), b = token_of_.find(right),
               ab = token_of_.find(left + right);
    check<IoError>(
        a != token_of_.end() && b != token_of_.end() && ab != token_of_.end(),
        "{}: line {} is \"{}\", but the vocabulary lacks a part or the whole; the two files "
        "do not belong together.",
        file, line_number, line.substr(0, 80));
    merges_.try_emplace(uint64_t{a->second} << 32 | b->second, Merge{rank++, ab->second});
  }
}

const BpeTokenizer::Merge* BpeTokenizer::find_merge(uint32_t left, uint32_t right) const {
  const auto found = merges_.find(uint64_t{left} << 32 | right);
  return found == merges_.end() ? nullptr : &found->second;
}

// Merges the best-ranked pair, leftmost first, until none is left.  A heap of candidates over a
// linked list keeps a piece of n bytes at n log n; entries whose pair has changed meanwhile are
// skipped.
void BpeTokenizer::append_piece(std::string_view piece, std::vector<uint32_t>& tokens) const {
  struct Symbol {
    uint32_t token;
    int64_t previous;
    int64_t next;
  };
  const auto count = static_cast<int64_t>(piece.size());
  std::vector<Symbol> symbols(piece.size());
  for (int64_t i = 0; i < count; ++i) {
    const auto byte = static_cast<uint8_t>(piece[static_cast<size_t>(i)]);
    symbols[static_cast<size_t>(i)] = {byte_token_[byte], i - 1, i + 1 < count ? i + 1 : -1};
  }
  const auto at = [&](int64_t i) -> Symbol& { return symbols[static_cast<size_t>(i)]; };

  using Candidate =
      std::tuple<uint32_t, int64_t, int64_t, uint32_t, uint32_t>;  // rank, i, j, tokens
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> candidates;
  const auto offer = [&](int64_t i, int64_t j) {
    if (i < 0 || j < 0) return;
    if (const Merge* merge = find_merge(at(i).token, at(j).token)) {
      candidates.emplace(merge->rank, i, j, at(i).token, at(j).token);
    }
  };
  for (int64_t i = 0; i + 1 < count; ++i) offer(i, i + 1);
  while (!candidates.empty()) {
    const auto [rank, i, j, left, right] = candidates.top();
    candidates.pop();
    const bool current = at(i).next == j && at(i).token == left && at(j).token == right;
    if (!current) continue;
    at(i).token = find_merge(left, right)->token;
    at(i).next = at(j).next;
    at(j).previous = at(j).next = -2;  // gone
    if (at(i).next >= 0) at(at(i).next).previous = i;
    offer(at(i).previous, i);
    offer(i, at(i).next);
  }
  for (int64_t i = count > 0 ? 0 : -1; i >= 0; i = at(i).next) tokens.push_back(at(i).token);
}

std::vector<uint32_t> BpeTokenizer::encode(std::string_view text) const {
  constexpr size_t most_cached = 1 << 18;
  std::unordered_map<std::string_view, std::pair<size_t, size_t>>
      cache;  // piece -> range of tokens
  std::vector<uint32_t> tokens;
  for (size_t at = 0; at < text.size();) {
    const size_t end = piece_end(text, at);
    const std::string_view piece = text.substr(at, end - at);
    at = end;
    if (const auto known = cache.find(piece); known != cache.end()) {
      const auto [begin, count] = known->second;
      for (size_t i = 0; i < count; ++i) tokens.push_back(tokens[begin + i]);
      continue;
    }
    const size_t begin = tokens.size();
    append_piece(piece, tokens);
    if (cache.size() < most_cached) cache.emplace(piece, std::pair(begin, tokens.size() - begin));
  }
  return tokens;
}

std::string BpeTokenizer::decode(std::span<const int64_t> tokens) const {
  std::string text;
  for (const int64_t token : tokens) {
    check(token >= 0 && token < vocabulary(),
          "bpe: token {} is outside [0, {}); pass tokens of this vocabulary.", token, vocabulary());
    text += bytes_of_[static_cast<size_t>(token)];
  }
  return text;
}

TokenizerPtr load_gpt2_bpe(const std::filesystem::path& vocab_json,
                           const std::filesystem::path& merges_txt) {
  constexpr int64_t largest_file_bytes = int64_t{256} << 20;
  const auto vocab = read_file(vocab_json, largest_file_bytes);
  const auto merges = read_file(merges_txt, largest_file_bytes);
  const auto text = [](const std::vector<std::byte>& bytes) {
    return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  return std::make_shared<BpeTokenizer>(text(vocab), text(merges), vocab_json.string(),
                                        merges_txt.string());
}

}  // namespace crucible::data
