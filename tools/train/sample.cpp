#include "tools/train/sample.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/autograd.h"
#include "core/check.h"
#include "core/rng.h"
#include "ops/cast.h"
#include "ops/view.h"

namespace crucible::train {
namespace {

constexpr uint64_t sample_stream = 0x53414d50;  // "SAMP"

/// Logits of the token that follows `tokens`.
std::vector<float> next_logits(models::Gpt& model, const std::vector<int64_t>& tokens) {
  const int64_t context = model.config().context;
  const auto length = std::min<int64_t>(static_cast<int64_t>(tokens.size()), context);
  // Attention looks back only, so padding behind the last token changes nothing; lengths in steps
  // of 32 spare the device a new set of kernels for each.
  const int64_t padded = std::min((length + 31) / 32 * 32, context);
  std::vector<int64_t> window(static_cast<size_t>(padded), 0);
  std::copy(tokens.end() - length, tokens.end(), window.begin());
  const Tensor input = Tensor::from(window, {1, padded}, model.parameters().device());
  const Tensor logits = model(input);
  const Tensor last = contiguous(select(select(logits, 0, 0), 0, length - 1));
  return cast(last, DType::f32).to_vector<float>();
}

}  // namespace

int64_t draw_token(std::span<const float> logits, double temperature, int64_t top_k,
                   double uniform) {
  std::vector<int64_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::erase_if(order, [&](int64_t i) { return !std::isfinite(logits[static_cast<size_t>(i)]); });
  check(!order.empty(), "sample: none of {} logits is finite; train with a lower --lr.",
        logits.size());
  const auto larger = [&](int64_t a, int64_t b) {
    const float x = logits[static_cast<size_t>(a)], y = logits[static_cast<size_t>(b)];
    return x != y ? x > y : a < b;
  };
  const auto size = static_cast<int64_t>(order.size());
  const int64_t kept = temperature == 0 ? 1 : top_k == 0 ? size : std::min(top_k, size);
  std::partial_sort(order.begin(), order.begin() + kept, order.end(), larger);
  if (kept == 1) return order.front();
  order.resize(static_cast<size_t>(kept));

  const double top = logits[static_cast<size_t>(order.front())];
  std::vector<double> weights;
  for (const int64_t i : order) {
    weights.push_back(std::exp((logits[static_cast<size_t>(i)] - top) / temperature));
  }
  double left = uniform * std::accumulate(weights.begin(), weights.end(), 0.0);
  for (size_t i = 0; i < order.size(); ++i) {
    left -= weights[i];
    if (left < 0) return order[i];
  }
  return order.back();
}

std::string sample_text(models::Gpt& model, const data::Tokenizer& tokenizer,
                        const SampleOptions& options, const std::function<bool()>& stop) {
  const NoGrad off;
  const bool training = model.parameters().training();
  model.parameters().set_training(false);
  Rng rng(options.seed, sample_stream);
  const std::vector<uint32_t> prompt = tokenizer.encode(options.prompt);
  std::vector<int64_t> tokens(prompt.begin(), prompt.end());
  for (int64_t i = 0; i < options.tokens && !stop(); ++i) {
    std::vector<float> logits = next_logits(model, tokens);
    // A model may know more tokens than the tokenizer.
    logits.resize(std::min(logits.size(), static_cast<size_t>(tokenizer.vocabulary())));
    tokens.push_back(draw_token(logits, options.temperature, options.top_k, rng.uniform()));
  }
  model.parameters().set_training(training);
  return tokenizer.decode(tokens);
}

}  // namespace crucible::train
