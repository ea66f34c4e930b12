/// Files of ready-made tokens: nanoGPT's raw uint16 and llm.c's versions with a header.
///
/// Layout    raw: little-endian uint16 tokens from byte 0.  llm.c: 256 little-endian int32, of
/// which
///           the first three are magic, version and token count, then the tokens: magic 20240520
///           version 1 uint16 (GPT-2), magic 20240801 version 7 uint32 (Llama 3).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

#include "core/file.h"
#include "data/token_dataset.h"

namespace crucible::data {

struct TokenLayout {
  int64_t first_byte;   ///< Where tokens begin.
  int64_t token_bytes;  ///< 2 or 4.
  int64_t count;
};

/// Bytes at the start of a file that parse_token_layout wants to see, if there are that many.
constexpr int64_t token_header_bytes = 1024;

/// Judges a file by its first bytes (`head`, up to token_header_bytes) and its size.
/// Throws    IoError if it holds no token, part of one, or not as many as its header says.
TokenLayout parse_token_layout(std::span<const std::byte> head, int64_t file_bytes,
                               std::string_view file);

/// Widens little-endian tokens of `token_bytes` each; `bytes` holds exactly into.size() of them.
void widen_tokens(std::span<const std::byte> bytes, int64_t token_bytes, std::span<int64_t> into);

/// A token file of any size, read where it is needed.
class TokenFile : public TokenSource {
 public:
  /// `vocabulary` 0: 50257 (GPT-2) for 16-bit files, 128256 (Llama 3) for 32-bit ones.
  /// Throws    IoError.
  explicit TokenFile(const std::filesystem::path& path, int64_t vocabulary = 0);

  int64_t size() const override { return layout_.count; }
  int64_t vocabulary() const override { return vocabulary_; }
  std::string description() const override;
  void read(int64_t first, std::span<int64_t> into) const override;

 private:
  InputFile file_;
  TokenLayout layout_;
  int64_t vocabulary_;
};

}  // namespace crucible::data
