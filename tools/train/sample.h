/// Text from a trained GPT.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "data/tokenizer.h"
#include "models/gpt.h"

namespace crucible::train {

struct SampleOptions {
  int64_t tokens = 256;
  double temperature = 0.8;  ///< 0: always the likeliest token.
  int64_t top_k = 40;        ///< 0: all.
  std::string prompt = "\n";
  uint64_t seed = 0;
};

/// Draws the index of one of `logits` among the first `top_k` of them (0: all), with probability
/// proportional to exp(logit / temperature); `uniform` in [0, 1) decides.  Ties: lower index first.
/// Throws    InvalidArgument if no logit is a finite number.
int64_t draw_token(std::span<const float> logits, double temperature, int64_t top_k,
                   double uniform);

/// Continues the prompt; the result begins with it.  Ends early if `stop` says so.
std::string sample_text(models::Gpt& model, const data::Tokenizer& tokenizer,
                        const SampleOptions& options, const std::function<bool()>& stop);

}  // namespace crucible::train
