/// The command line of `train`: what the user asked for, checked flag by flag, defaults not yet
/// filled in.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace crucible::train {

/// An absent value means that the flag was not given; settings.h chooses what it is then.
struct Options {
  std::string command;  ///< The whole command line, for the record.

  std::string model;
  std::optional<int64_t> layers, heads, width, context, vocab;  // gpt
  std::optional<std::vector<int64_t>> hidden;                   // mlp
  std::optional<double> dropout;                                // gpt
  std::optional<std::string> load;
  bool partial = false;

  std::optional<std::string> device;
  std::optional<std::string> gpu;
  std::optional<int64_t> threads;
  std::optional<std::string> precision;
  bool amp = false;
  std::optional<std::string> amp_dtype;
  std::optional<int64_t> mem_limit;  ///< Bytes.
  bool deterministic = false;

  std::optional<std::string> data_dir, dataset, tokenizer, augment;
  std::optional<int64_t> image_size, synthetic_samples, workers, seq_len;
  bool skip_bad = false;

  std::optional<int64_t> batch_size, global_batch_size, grad_accum_steps, epochs, steps;
  std::optional<double> target_accuracy;
  std::optional<int64_t> stop_after;
  std::optional<int64_t> seed;

  std::optional<std::string> opt, sched;
  std::optional<double> lr, min_lr, momentum, weight_decay, beta1, beta2, clip_grad,
      label_smoothing, lr_decay_rate;
  std::optional<int64_t> lr_warmup_steps, lr_decay_steps;
  bool nesterov = false;

  std::optional<int64_t> eval_interval, eval_batches, log_interval;
  std::optional<std::string> output, resume, log_sample_ids;
  bool overwrite = false;
  std::optional<int64_t> checkpoint_interval, checkpoint_hist;
  bool quiet = false;
  bool dump_groups = false;

  std::optional<int64_t> sample_tokens, top_k;
  std::optional<double> temperature;
  std::optional<std::string> prompt;
};

/// What to do after reading the command line: go on, or print a text and leave.
struct Parsed {
  Options options;
  std::string text_to_print;  ///< --help or --version; empty: go on.
};

/// Reads the command line.  Underscores in flag names count as dashes.
/// Throws    InvalidArgument, one line, for an unknown or repeated flag, a value out of range, and
///           flags that contradict each other or do not apply to the model.
Parsed parse_options(const std::vector<std::string>& arguments);

/// The model names that --model takes, in families.
bool is_mlp(const std::string& model);
bool is_resnet(const std::string& model);
bool is_gpt(const std::string& model);

}  // namespace crucible::train
