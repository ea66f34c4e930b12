/// From text to tokens and back.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace crucible::data {

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  virtual int64_t vocabulary() const = 0;
  virtual std::string name() const = 0;
  /// decode(encode(text)) == text for any bytes.
  virtual std::vector<uint32_t> encode(std::string_view text) const = 0;
  /// Throws    InvalidArgument for a token outside [0, vocabulary()).
  virtual std::string decode(std::span<const int64_t> tokens) const = 0;
};

using TokenizerPtr = std::shared_ptr<const Tokenizer>;

/// One token a byte, 256 in all.
class ByteTokenizer : public Tokenizer {
 public:
  int64_t vocabulary() const override { return 256; }
  std::string name() const override { return "bytes"; }
  std::vector<uint32_t> encode(std::string_view text) const override;
  std::string decode(std::span<const int64_t> tokens) const override;
};

}  // namespace crucible::data
