#include "data/synthetic.h"

#include <algorithm>
#include <cstring>

#include "core/check.h"

namespace crucible::data {
namespace {

constexpr int64_t grid = 4;  // cells of a pattern along each side

/// Numbers of one sample: a stream for each index under a seed for each (seed, split).
Rng sample_rng(uint64_t seed, uint64_t split, int64_t index) {
  constexpr uint64_t purpose = 0x53594e5448;  // "SYNTH"
  const Philox::Words words = Philox::block(seed, purpose, split);
  return Rng(uint64_t{words[1]} << 32 | words[0], static_cast<uint64_t>(index));
}

}  // namespace

SyntheticImages::SyntheticImages(const SyntheticImageOptions& options) : options_(options) {
  constexpr int64_t most = 1 << 16;
  const SyntheticImageOptions& o = options_;
  check(
      o.count > 0 && o.height > 0 && o.width > 0 && o.channels > 0 && o.classes > 0 &&
          o.height <= most && o.width <= most && o.channels <= 1024 && o.classes <= 1 << 20,
      "synthetic: {} images of {}x{}x{} in {} classes are out of range; sizes must be positive and "
      "at most 65536.",
      o.count, o.height, o.width, o.channels, o.classes);
  patterns_.resize(static_cast<size_t>(o.classes * grid * grid * o.channels));
  Rng rng(o.seed, 1);
  for (float& value : patterns_) value = rng.uniform(-1.0f, 1.0f);
}

SampleSpec SyntheticImages::sample() const {
  return {Shape{options_.height, options_.width, options_.channels}, DType::f32, Shape{},
          DType::i64};
}

std::string SyntheticImages::description() const {
  const SyntheticImageOptions& o = options_;
  return fmt::format("synthetic: {} images of {}x{}x{}, {} classes", o.count, o.height, o.width,
                     o.channels, o.classes);
}

void SyntheticImages::read(int64_t index, Rng&, std::span<std::byte> input,
                           std::span<std::byte> target) const {
  const SyntheticImageOptions& o = options_;
  Rng rng = sample_rng(o.seed, o.split, index);
  const int64_t label = rng.below(o.classes);
  const float* pattern = patterns_.data() + label * grid * grid * o.channels;
  auto* out = reinterpret_cast<float*>(input.data());
  // Each word of the generator gives four bytes of noise in [-1.39, 1.39): deviation 0.8.
  uint32_t word = 0;
  int bytes_left = 0;
  for (int64_t y = 0; y < o.height; ++y) {
    const float* row = pattern + y * grid / o.height * grid * o.channels;
    for (int64_t x = 0; x < o.width; ++x) {
      const float* cell = row + x * grid / o.width * o.channels;
      for (int64_t c = 0; c < o.channels; ++c) {
        if (bytes_left == 0) {
          word = rng.next_word();
          bytes_left = 4;
        }
        const auto noise = static_cast<float>(static_cast<int>(word & 0xff) - 128) * (1.39f / 128);
        word >>= 8;
        --bytes_left;
        *out++ = cell[c] + noise;
      }
    }
  }
  std::memcpy(target.data(), &label, sizeof label);
}

SyntheticTokens::SyntheticTokens(const SyntheticTokenOptions& options) : options_(options) {
  const SyntheticTokenOptions& o = options_;
  check(
      o.count > 0 && o.seq_len > 0 && o.seq_len <= 1 << 24 && o.vocabulary > 1 &&
          o.vocabulary <= 1 << 28,
      "synthetic: {} windows of {} tokens from a vocabulary of {} are out of range; sizes must be "
      "positive, the vocabulary at least 2.",
      o.count, o.seq_len, o.vocabulary);
}

std::string SyntheticTokens::description() const {
  const SyntheticTokenOptions& o = options_;
  return fmt::format("synthetic: {} windows of {} tokens, vocabulary {}", o.count, o.seq_len,
                     o.vocabulary);
}

void SyntheticTokens::read(int64_t index, Rng&, std::span<std::byte> input,
                           std::span<std::byte> target) const {
  const SyntheticTokenOptions& o = options_;
  Rng rng = sample_rng(o.seed, o.split, index);
  auto* inputs = reinterpret_cast<int64_t*>(input.data());
  auto* targets = reinterpret_cast<int64_t*>(target.data());
  int64_t token = rng.below(o.vocabulary);
  for (int64_t t = 0; t < o.seq_len; ++t) {
    inputs[t] = token;
    token = rng.below(4) == 0 ? rng.below(o.vocabulary) : (token * 5 + 17) % o.vocabulary;
    targets[t] = token;
  }
}

}  // namespace crucible::data
