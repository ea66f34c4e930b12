#include "tools/train/settings.h"

#include <algorithm>

#include "core/check.h"

namespace crucible::train {
namespace {

/// Whether the model has the form made for ImageNet.
bool imagenet_form(const std::string& model) {
  return model == "resnet18" || model == "resnet34" || model == "resnet50" ||
         model == "resnet101" || model == "resnet152";
}

std::string full_model_name(const Options& o, const DataSource& data) {
  if (o.model == "gpt") return "gpt-nano";
  if (o.model != "resnet") return o.model;
  const Shape image = data.train->sample().input;
  return std::max(image[0], image[1]) <= 64 ? "resnet20" : "resnet50";
}

/// The values that people use for a model when they have no reason for others.
struct Defaults {
  int64_t batch_size;
  int64_t epochs;  ///< 0: steps
  int64_t steps;
  double sgd_lr;  ///< For a global batch of 128, and in proportion to it.
  double adamw_lr;
  double sgd_decay, adamw_decay;
  double clip;
};

Defaults defaults_of(const std::string& model) {
  if (is_mlp(model)) return {128, 5, 0, 0.05, 2e-3, 1e-4, 0.01, 0};
  if (imagenet_form(model)) return {32, 90, 0, 0.05, 1e-3, 1e-4, 0.05, 0};
  if (is_resnet(model)) return {128, 5, 0, 0.1, 1e-3, 5e-4, 0.05, 0};
  Defaults gpt{8, 0, 2000, 0.1, 1e-3, 0.0, 0.1, 1.0};
  // Rates of Brown et al. 2020, arXiv:2005.14165, table 2.1, for the sizes named there.
  if (model == "gpt2") gpt.adamw_lr = 6e-4;
  if (model == "gpt2-medium") gpt.adamw_lr = 3e-4;
  if (model == "gpt2-large") gpt.adamw_lr = 2.5e-4;
  if (model == "gpt2-xl") gpt.adamw_lr = 2e-4;
  return gpt;
}

void resolve_batch(const Options& o, const Defaults& defaults, Settings& s) {
  s.batch_size = o.batch_size.value_or(defaults.batch_size);
  s.trainer.accumulation = o.grad_accum_steps.value_or(1);
  if (!o.global_batch_size) return;
  const int64_t global = *o.global_batch_size;
  if (!o.batch_size) s.batch_size = std::min(s.batch_size, global);
  check(global % s.batch_size == 0,
        "train: --global-batch-size {} is not a multiple of --batch-size {}; change one of them.",
        global, s.batch_size);
  s.trainer.accumulation = global / s.batch_size;
  check(!o.grad_accum_steps || *o.grad_accum_steps == s.trainer.accumulation,
        "train: --grad-accum-steps {} contradicts --global-batch-size {} with --batch-size {} "
        "(which need {}); leave one of them out.",
        o.grad_accum_steps.value_or(0), global, s.batch_size, s.trainer.accumulation);
}

void resolve_length(const Options& o, const DataSource& data, const Defaults& defaults,
                    Settings& s) {
  const auto pieces = [](int64_t n, int64_t size) { return (n + size - 1) / size; };
  s.steps_per_epoch = pieces(pieces(data.train->size(), s.batch_size), s.trainer.accumulation);
  if (o.steps || (!o.epochs && defaults.epochs == 0)) {
    s.total_steps = o.steps.value_or(defaults.steps);
  } else {
    s.epochs = o.epochs.value_or(defaults.epochs);
    s.total_steps = *s.epochs * s.steps_per_epoch;
  }
  s.target_accuracy = o.target_accuracy;
  s.stop_after = o.stop_after.value_or(0);
  check(!s.target_accuracy || data.test,
        "train: --target-accuracy {} cannot be judged: the data have no test split; leave it out.",
        s.target_accuracy.value_or(0));
}

void resolve_optimizer(const Options& o, const Defaults& defaults, Settings& s) {
  s.opt = o.opt.value_or(is_resnet(s.model) ? "sgd" : "adamw");
  const bool sgd = s.opt == "sgd";
  s.momentum = o.momentum.value_or(0.9);
  s.nesterov = o.nesterov;
  s.weight_decay = o.weight_decay.value_or(sgd ? defaults.sgd_decay : defaults.adamw_decay);
  s.beta1 = o.beta1.value_or(0.9);
  s.beta2 = o.beta2.value_or(is_gpt(s.model) ? 0.95 : 0.999);
  s.trainer.clip_grad = o.clip_grad.value_or(defaults.clip);
  s.trainer.label_smoothing = o.label_smoothing.value_or(0.0);

  optim::Schedule& schedule = s.schedule;
  schedule.kind = optim::parse_schedule(o.sched.value_or("cosine"));
  const double scale = static_cast<double>(s.global_batch_size()) / 128.0;
  schedule.lr = o.lr.value_or(sgd ? defaults.sgd_lr * scale : defaults.adamw_lr);
  schedule.min_lr = o.min_lr.value_or(is_gpt(s.model) ? schedule.lr / 10 : 0.0);
  schedule.total_steps = s.total_steps;
  schedule.warmup_steps = o.lr_warmup_steps.value_or(std::min<int64_t>(s.total_steps / 20, 1000));
  schedule.step_size = o.lr_decay_steps.value_or(std::max<int64_t>(s.total_steps / 3, 1));
  schedule.gamma = o.lr_decay_rate.value_or(0.1);
  schedule.validate();
}

void resolve_gpt(const Options& o, const DataSource& data, Settings& s) {
  s.gpt = gpt_config(o);
  const int64_t needed = data.train->classes();
  if (o.vocab) {
    check(*o.vocab >= needed, "train: --vocab {} is below the {} tokens of the data; raise it.",
          *o.vocab, needed);
  } else {
    s.gpt.vocabulary = std::max(needed, o.model.starts_with("gpt2") ? s.gpt.vocabulary : 0);
  }
  s.sample.tokens = data.tokenizer ? o.sample_tokens.value_or(256) : 0;
  s.sample.temperature = o.temperature.value_or(0.8);
  s.sample.top_k = o.top_k.value_or(40);
  s.sample.prompt = o.prompt.value_or("\n");
  check(data.tokenizer || !o.sample_tokens || *o.sample_tokens == 0,
        "train: --sample-tokens {} needs text: the data have no tokenizer; leave it out.",
        o.sample_tokens.value_or(0));
}

}  // namespace

models::GptConfig gpt_config(const Options& o) {
  models::GptConfig config = models::GptConfig::named(o.model == "gpt" ? "gpt-nano" : o.model);
  if (o.layers) config.layers = *o.layers;
  if (o.heads) config.heads = *o.heads;
  if (o.width) config.width = *o.width;
  if (o.context) config.context = *o.context;
  if (o.vocab) config.vocabulary = *o.vocab;
  if (o.dropout) config.dropout = *o.dropout;
  check(config.width % config.heads == 0,
        "train: --width {} is not a multiple of --heads {}; change one of them.", config.width,
        config.heads);
  return config;
}

int64_t sequence_length(const Options& o) {
  const int64_t context = gpt_config(o).context;
  const int64_t length = o.seq_len.value_or(context);
  check(length <= context,
        "train: --seq-len {} is above the context {}; lower it or raise --context.", length,
        context);
  return length;
}

Settings resolve(const Options& o, const DataSource& data) {
  Settings s;
  s.model = full_model_name(o, data);
  const Defaults defaults = defaults_of(s.model);
  if (is_mlp(s.model)) s.hidden = o.hidden.value_or(std::vector<int64_t>{512, 512});
  if (is_gpt(s.model)) resolve_gpt(o, data, s);
  s.seed = static_cast<uint64_t>(o.seed.value_or(42));
  s.workers = static_cast<int>(o.workers.value_or(data.kind == "image_folder" ? 2 : 1));
  s.skip_bad = o.skip_bad;
  resolve_batch(o, defaults, s);
  resolve_length(o, data, defaults, s);
  resolve_optimizer(o, defaults, s);
  s.trainer.classify = !is_gpt(s.model);
  s.precision = o.precision.value_or("fp32");
  if (s.precision == "bf16") s.trainer.autocast = DType::bf16;
  if (s.precision == "fp16") s.trainer.autocast = DType::f16;
  s.eval_interval = o.eval_interval.value_or(0);
  s.eval_batches = o.eval_batches.value_or(0);
  s.log_interval = o.log_interval.value_or(50);
  s.checkpoint_interval = o.checkpoint_interval.value_or(0);
  s.checkpoint_hist = static_cast<int>(o.checkpoint_hist.value_or(3));
  s.deterministic = o.deterministic;
  return s;
}

}  // namespace crucible::train
