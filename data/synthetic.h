/// Made-up data that can be learned, for trying and timing without files.
#pragma once

#include <cstdint>
#include <vector>

#include "data/dataset.h"
#include "data/token_dataset.h"

namespace crucible::data {

struct SyntheticImageOptions {
  int64_t count = 50000;
  int64_t height = 32;
  int64_t width = 32;
  int64_t channels = 3;
  int64_t classes = 10;
  uint64_t seed = 0;   ///< Of the patterns that classes have in common.
  uint64_t split = 0;  ///< Samples of another split are other samples of the same classes.
};

/// Images of a coarse pattern that belongs to the class, plus noise: f32 [H, W, C], mean about 0,
/// deviation about 1.  Sample i is a function of (seed, split, i); no two are the same.
class SyntheticImages : public Dataset {
 public:
  /// Throws    InvalidArgument for a size or count that is not positive or is absurd.
  explicit SyntheticImages(const SyntheticImageOptions& options);

  int64_t size() const override { return options_.count; }
  SampleSpec sample() const override;
  int64_t classes() const override { return options_.classes; }
  std::string description() const override;
  void read(int64_t index, Rng& rng, std::span<std::byte> input,
            std::span<std::byte> target) const override;

 private:
  SyntheticImageOptions options_;
  std::vector<float> patterns_;  ///< [classes, grid, grid, channels]
};

struct SyntheticTokenOptions {
  int64_t count = 10'000;  ///< Windows.
  int64_t seq_len = 256;
  int64_t vocabulary = 50257;
  uint64_t seed = 0;
  uint64_t split = 0;
};

/// Windows of a noisy chain: three times in four the next token follows from the last by a fixed
/// rule, else it is any token.  Inputs i64 [T], targets i64 [T].
class SyntheticTokens : public Dataset {
 public:
  /// Throws    InvalidArgument for a size or count that is not positive or is absurd.
  explicit SyntheticTokens(const SyntheticTokenOptions& options);

  int64_t size() const override { return options_.count; }
  SampleSpec sample() const override {
    return {Shape{options_.seq_len}, DType::i64, Shape{options_.seq_len}, DType::i64};
  }
  int64_t classes() const override { return options_.vocabulary; }
  std::string description() const override;
  void read(int64_t index, Rng& rng, std::span<std::byte> input,
            std::span<std::byte> target) const override;

 private:
  SyntheticTokenOptions options_;
};

}  // namespace crucible::data
