#include "data/token_dataset.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/check.h"

namespace crucible::data {

TokenWindows::TokenWindows(TokenSourcePtr source, const TokenWindowOptions& options)
    : source_(std::move(source)), options_(options) {
  if (options_.end < 0) options_.end = source_->size();
  const int64_t seq_len = options_.seq_len;
  check(seq_len > 0 && seq_len <= (int64_t{1} << 30),
        "token windows: sequence length {} is outside [1, 2^30]; set seq_len.", seq_len);
  check(options_.begin >= 0 && options_.begin <= options_.end && options_.end <= source_->size(),
        "token windows: range [{}, {}) is not inside [0, {}); give a range of the tokens.",
        options_.begin, options_.end, source_->size());
  const int64_t count = options_.end - options_.begin;
  check(count > seq_len,
        "token windows: {} tokens of {} do not make one window of {} and its next token; use a "
        "shorter seq_len or more text.",
        count, source_->description(), seq_len);
  windows_ = (count - 1) / seq_len;
}

std::string TokenWindows::description() const {
  return fmt::format("{}: tokens {} to {}, vocabulary {}, {} windows of {}", source_->description(),
                     options_.begin, options_.end, source_->vocabulary(), windows_,
                     options_.seq_len);
}

void TokenWindows::read(int64_t index, Rng& rng, std::span<std::byte> input,
                        std::span<std::byte> target) const {
  const int64_t seq_len = options_.seq_len;
  int64_t first = options_.begin + index * seq_len;
  if (options_.random_offset) {
    first = std::min(first + rng.below(seq_len), options_.end - seq_len - 1);
  }
  // The inputs are read, then moved on by one for the targets: only one token is read twice.
  auto* inputs = reinterpret_cast<int64_t*>(input.data());
  auto* targets = reinterpret_cast<int64_t*>(target.data());
  const auto count = static_cast<size_t>(seq_len);
  source_->read(first, {inputs, count});
  std::copy(inputs + 1, inputs + count, targets);
  source_->read(first + seq_len, {targets + count - 1, 1});
}

}  // namespace crucible::data
