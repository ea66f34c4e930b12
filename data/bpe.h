/// GPT-2's byte-pair encoding, from the vocab.json and merges.txt that belong together.
///
/// Source    Radford et al. 2019, "Language models are unsupervised multitask learners"; Sennrich,
///           Haddow, Birch 2016, arXiv:1508.07909.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/tokenizer.h"

namespace crucible::data {

/// Cuts text where GPT-2 does, before any merging.  The pieces joined are the text.  In its words:
/// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
std::vector<std::string_view> split_like_gpt2(std::string_view text);

class BpeTokenizer : public Tokenizer {
 public:
  /// From the contents of the two files; `vocab_file` and `merges_file` are their names in errors.
  /// Throws    IoError if they are malformed or do not fit each other.
  BpeTokenizer(std::string_view vocab_json, std::string_view merges_txt,
               std::string_view vocab_file = "vocab.json",
               std::string_view merges_file = "merges.txt");

  int64_t vocabulary() const override { return static_cast<int64_t>(bytes_of_.size()); }
  std::string name() const override { return "GPT-2 BPE"; }
  std::vector<uint32_t> encode(std::string_view text) const override;
  std::string decode(std::span<const int64_t> tokens) const override;

 private:
  struct Merge {
    uint32_t rank;
    uint32_t token;
  };

  void read_merges(std::string_view merges_txt, std::string_view file);
  void append_piece(std::string_view piece, std::vector<uint32_t>& tokens) const;
  const Merge* find_merge(uint32_t left, uint32_t right) const;

  std::vector<std::string> bytes_of_;                   ///< What each token stands for.
  std::unordered_map<std::string, uint32_t> token_of_;  ///< Its inverse.
  std::unordered_map<uint64_t, Merge> merges_;          ///< By left << 32 | right.
  std::array<uint32_t, 256> byte_token_{};
};

/// Reads the two files.
/// Throws    IoError.
TokenizerPtr load_gpt2_bpe(const std::filesystem::path& vocab_json,
                           const std::filesystem::path& merges_txt);

}  // namespace crucible::data
