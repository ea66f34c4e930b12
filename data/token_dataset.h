/// Long sequences of tokens, served as windows with next-token targets.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace crucible::data {

/// A sequence of tokens, wherever it lies.
class TokenSource {
 public:
  virtual ~TokenSource() = default;
  virtual int64_t size() const = 0;
  virtual int64_t vocabulary() const = 0;  ///< Tokens are in [0, vocabulary()).
  virtual std::string description() const = 0;
  /// Writes tokens [first, first + into.size()), which must exist.  Safe to call from several
  /// threads. Throws    IoError if the file behind it fails or holds a token outside the
  /// vocabulary.
  virtual void read(int64_t first, std::span<int64_t> into) const = 0;
};

using TokenSourcePtr = std::shared_ptr<const TokenSource>;

/// Tokens in memory; T is the narrowest type that holds them.
template <class T>
class MemoryTokens : public TokenSource {
 public:
  MemoryTokens(std::vector<T> tokens, int64_t vocabulary, std::string origin)
      : tokens_(std::move(tokens)), vocabulary_(vocabulary), origin_(std::move(origin)) {}

  int64_t size() const override { return static_cast<int64_t>(tokens_.size()); }
  int64_t vocabulary() const override { return vocabulary_; }
  std::string description() const override { return origin_; }
  void read(int64_t first, std::span<int64_t> into) const override {
    for (size_t i = 0; i < into.size(); ++i) into[i] = tokens_[static_cast<size_t>(first) + i];
  }

 private:
  std::vector<T> tokens_;
  int64_t vocabulary_;
  std::string origin_;
};

struct TokenWindowOptions {
  int64_t seq_len = 256;
  int64_t begin = 0;           ///< First token used.
  int64_t end = -1;            ///< One past the last token used; -1: all.
  bool random_offset = false;  ///< Start each window up to seq_len - 1 tokens later, at random.
};

/// The data set over a sequence: inputs i64 [T], targets i64 [T], the same one token later.
/// Window i starts at begin + i * T; tokens after the last whole window are left out.
class TokenWindows : public Dataset {
 public:
  /// Throws    InvalidArgument if the range is outside the source or shorter than T + 1 tokens.
  TokenWindows(TokenSourcePtr source, const TokenWindowOptions& options);

  int64_t size() const override { return windows_; }
  SampleSpec sample() const override {
    return {Shape{options_.seq_len}, DType::i64, Shape{options_.seq_len}, DType::i64};
  }
  int64_t classes() const override { return source_->vocabulary(); }
  std::string description() const override;
  void read(int64_t index, Rng& rng, std::span<std::byte> input,
            std::span<std::byte> target) const override;

 private:
  TokenSourcePtr source_;
  TokenWindowOptions options_;
  int64_t windows_;
};

}  // namespace crucible::data
