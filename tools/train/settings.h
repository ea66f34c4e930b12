/// Every setting of a run, with the defaults filled in.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/gpt.h"
#include "optim/schedule.h"
#include "tools/train/data_source.h"
#include "tools/train/options.h"
#include "tools/train/sample.h"
#include "tools/train/trainer.h"

namespace crucible::train {

struct Settings {
  std::string model;  ///< Never "resnet" or "gpt" alone.
  std::vector<int64_t> hidden;
  models::GptConfig gpt;

  int64_t batch_size = 0;  ///< Of a micro-batch, per GPU.
  int workers = 0;
  bool skip_bad = false;
  uint64_t seed = 0;

  std::string precision;  ///< "fp32", "fp16" or "bf16"; 16 bits mean mixed precision.

  std::optional<int64_t> epochs;  ///< Absent if the length is given in steps.
  int64_t total_steps = 0;
  int64_t steps_per_epoch = 0;
  std::optional<double> target_accuracy;
  int64_t stop_after = 0;  ///< 0: do not.

  std::string opt;
  double momentum = 0, weight_decay = 0, beta1 = 0, beta2 = 0;
  bool nesterov = false;
  optim::Schedule schedule;
  TrainerOptions trainer;

  int64_t eval_interval = 0, eval_batches = 0, log_interval = 0;
  int64_t checkpoint_interval = 0;
  int checkpoint_hist = 0;
  bool deterministic = false;
  SampleOptions sample;

  int64_t global_batch_size() const { return batch_size * trainer.accumulation; }
};

/// The shape of the GPT that the flags name; its vocabulary is what --vocab or the preset says.
/// Throws    InvalidArgument if sizes do not fit each other.
models::GptConfig gpt_config(const Options& options);
/// Tokens of a sample: --seq-len, else the context.
int64_t sequence_length(const Options& options);

/// Throws    InvalidArgument for values that contradict each other or the data.
Settings resolve(const Options& options, const DataSource& data);

}  // namespace crucible::train
