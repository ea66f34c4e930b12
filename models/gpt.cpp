#include "models/gpt.h"

#include <cmath>
#include <map>

#include "core/check.h"
#include "ops/attention.h"
#include "ops/elementwise.h"
#include "ops/view.h"

namespace crucible::models {
namespace {

GptConfig checked(const GptConfig& c) {
  check(c.layers >= 1 && c.heads >= 1 && c.width >= 1 && c.context >= 1 && c.vocabulary >= 1,
        "gpt: layers {}, heads {}, width {}, context {}, vocabulary {} must all be at least 1.",
        c.layers, c.heads, c.width, c.context, c.vocabulary);
  check(c.width % c.heads == 0, "gpt: width {} is not a multiple of {} heads.", c.width, c.heads);
  check(c.dropout >= 0.0 && c.dropout < 1.0, "gpt: dropout {} is outside [0, 1).", c.dropout);
  return c;
}

// GPT-2 keeps its projections as [in, out] and starts them at normal 0.02, biases at 0.
LinearOptions projection(double deviation = 0.02) {
  return {.weight_init = Init::normal(0.0, deviation),
          .bias_init = Init::constant(0.0),
          .layout = ExportLayout::in_out};
}

LinearOptions branch_output(const GptConfig& c) {
  return projection(0.02 / std::sqrt(2.0 * static_cast<double>(c.layers)));
}

}  // namespace

GptConfig GptConfig::named(std::string_view name) {
  static const std::map<std::string_view, GptConfig> presets = {
      {"gpt-nano", {4, 8, 256, 256, 256}},         {"gpt-micro", {6, 6, 384, 256, 256}},
      {"gpt2", {12, 12, 768, 1024, 50257}},        {"gpt2-medium", {24, 16, 1024, 1024, 50257}},
      {"gpt2-large", {36, 20, 1280, 1024, 50257}}, {"gpt2-xl", {48, 25, 1600, 1024, 50257}}};
  const auto it = presets.find(name);
  check(it != presets.end(),
        "gpt: '{}' is not known; choose gpt-nano, gpt-micro, gpt2, gpt2-medium, gpt2-large or "
        "gpt2-xl.",
        name);
  return it->second;
}

GptBlock::GptBlock(const Scope& s, const GptConfig& c)
    : heads(c.heads),
      ln_1(s / "ln_1", c.width),
      c_attn(s / "attn" / "c_attn", c.width, 3 * c.width, projection()),
      attn_proj(s / "attn" / "c_proj", c.width, c.width, branch_output(c)),
      ln_2(s / "ln_2", c.width),
      c_fc(s / "mlp" / "c_fc", c.width, 4 * c.width, projection()),
      mlp_proj(s / "mlp" / "c_proj", 4 * c.width, c.width, branch_output(c)),
      dropout(s, c.dropout) {}

Tensor GptBlock::operator()(const Tensor& x) const {
  const Tensor mixed = attention_packed(c_attn(ln_1(x)), heads, {.causal = true});
  const Tensor h = x + dropout(attn_proj(mixed));
  return h + dropout(mlp_proj(c_fc(ln_2(h), Activation::gelu_tanh)));
}

Gpt::Gpt(const GptConfig& config, const ModelOptions& options)
    : Module(options),
      config_(checked(config)),
      wte_(root() / "wte", config_.vocabulary, config_.width, Init::normal(0.0, 0.02)),
      wpe_(root() / "wpe", config_.context, config_.width, Init::normal(0.0, 0.02)),
      dropout_(root(), config_.dropout) {
  for (int64_t i = 0; i < config_.layers; ++i) blocks_.emplace_back(root() / "h" / i, config_);
  ln_f_.emplace(root() / "ln_f", config_.width);
  parameters().pack();
}

Tensor Gpt::forward(const Tensor& tokens) {
  check(tokens.rank() == 2 && tokens.size(1) <= config_.context,
        "gpt: tokens are {}; they must be [B, T] with T at most the context {}.",
        to_string(tokens.shape()), config_.context);
  Tensor x = wte_(tokens) + slice(wpe_.weight, 0, 0, tokens.size(1));
  x = dropout_(x);
  for (const GptBlock& block : blocks_) x = block(x);
  return linear((*ln_f_)(x), wte_.weight, Tensor());
}

}  // namespace crucible::models
