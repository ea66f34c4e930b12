/// Counter-based random numbers: the same seed gives the same numbers on every device.
///
/// Source    Salmon, Moraes, Dror, Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3"
///           (Philox4x32-10).
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

namespace crucible {

/// Four random words for a 64-bit key and a 128-bit counter.
struct Philox {
  using Words = std::array<uint32_t, 4>;

  /// Words of block `block` in stream `stream` under `seed`.
  [[gnu::always_inline]] static Words block(uint64_t seed, uint64_t stream, uint64_t block) {
    uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
    uint32_t c0 = static_cast<uint32_t>(block), c1 = static_cast<uint32_t>(block >> 32);
    uint32_t c2 = static_cast<uint32_t>(stream), c3 = static_cast<uint32_t>(stream >> 32);
    for (int round = 0; round < 10; ++round) {
      const uint64_t p0 = uint64_t{0xD2511F53u} * c0;
      const uint64_t p1 = uint64_t{0xCD9E8D57u} * c2;
      c0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0;
      c2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
      c1 = static_cast<uint32_t>(p1);
      c3 = static_cast<uint32_t>(p0);
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    return {c0, c1, c2, c3};
  }

  /// Word `index` of the stream: word index % 4 of block index / 4.
  static uint32_t word(uint64_t seed, uint64_t stream, uint64_t index) {
    return block(seed, stream, index / 4)[index % 4];
  }
};

/// A uniform float in [0, 1) from the upper 24 bits of a word; exact.
[[gnu::always_inline]] inline float to_uniform(uint32_t word) {
  return static_cast<float>(word >> 8) * 0x1p-24f;
}

/// Where a consumer of random numbers stands: seed, stream and the next unread block.
/// A primitive that reads n numbers is given the state and then advances `offset` by ceil(n / 4).
struct RngState {
  uint64_t seed = 0;
  uint64_t stream = 0;
  uint64_t offset = 0;

  friend bool operator==(const RngState&, const RngState&) = default;
};

/// A sequence of numbers on the host, for shuffles, crops and tests.
class Rng {
 public:
  explicit Rng(uint64_t seed, uint64_t stream = 0) : state_{seed, stream, 0} {}
  explicit Rng(RngState state) : state_(state) {}

  uint32_t next_word() {
    if (used_ == 4) {
      words_ = Philox::block(state_.seed, state_.stream, state_.offset++);
      used_ = 0;
    }
    return words_[used_++];
  }
  /// Uniform in [0, 1), 24 bits.
  float uniform() { return to_uniform(next_word()); }
  float uniform(float low, float high) { return low + (high - low) * uniform(); }
  /// Uniform integer in [0, n), n in [1, 2^63); the bias is below n / 2^64.
  int64_t below(int64_t n) {
    const uint64_t high = next_word();
    const uint64_t word = (high << 32) | next_word();
    return static_cast<int64_t>((static_cast<unsigned __int128>(word) * n) >> 64);
  }
  /// Standard normal (Box and Muller 1958).
  float normal() {
    const float u = static_cast<float>((next_word() >> 8) + 1) * 0x1p-24f;  // (0, 1]
    const float v = uniform();
    return std::sqrt(-2.0f * std::log(u)) * std::cos(6.28318530717958648f * v);
  }

 private:
  RngState state_;
  Philox::Words words_{};
  int used_ = 4;
};

}  // namespace crucible
