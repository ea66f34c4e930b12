/// A GPT-2 style transformer.
#pragma once

#include <string_view>
#include <vector>

#include "models/layers.h"
#include "models/module.h"

namespace crucible::models {

struct GptConfig {
  int64_t layers = 4;
  int64_t heads = 8;
  int64_t width = 256;
  int64_t context = 256;  ///< Longest sequence.
  int64_t vocabulary = 256;
  double dropout = 0.0;  ///< On the embeddings and on what each branch adds; not inside attention.

  /// gpt-nano (4 layers, width 256), gpt-micro (6, 384), gpt2 (12, 768: 124M), gpt2-medium (24,
  /// 1024), gpt2-large (36, 1280), gpt2-xl (48, 1600).  The vocabulary stays 256 for nano and
  /// micro, and is 50257 for gpt2. Throws    InvalidArgument for another name.
  static GptConfig named(std::string_view name);
};

/// x + attention(norm(x)), then x + mlp(norm(x)).
struct GptBlock {
  GptBlock(const Scope& s, const GptConfig& config);
  Tensor operator()(const Tensor& x) const;
  int64_t heads;
  LayerNorm ln_1;
  Linear c_attn, attn_proj;
  LayerNorm ln_2;
  Linear c_fc, mlp_proj;
  Dropout dropout;
};

/// Parameter names equal Hugging Face GPT-2's: "wte.weight", "h.0.attn.c_attn.weight", …; the
/// output layer is wte. Source    Radford et al. 2019; initialised as there: normal 0.02, what a
/// branch adds scaled by
///           1 / sqrt(2 layers).
class Gpt final : public Module {
 public:
  /// Throws    InvalidArgument for sizes below 1 or a width that heads do not divide.
  explicit Gpt(const GptConfig& config, const ModelOptions& options = {});
  /// Token ids [B, T], i64 -> logits [B, T, vocabulary].
  /// Throws    InvalidArgument if T is above the context.
  Tensor forward(const Tensor& tokens) override;
  const GptConfig& config() const { return config_; }

 private:
  GptConfig config_;
  Embedding wte_, wpe_;
  Dropout dropout_;
  std::vector<GptBlock> blocks_;
  std::optional<LayerNorm> ln_f_;
};

}  // namespace crucible::models
