/// One update at a time: micro-batches in, one step of the optimizer out.
#pragma once

#include <cstdint>

#include "models/module.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "tools/train/throughput.h"

namespace crucible::train {

struct TrainerOptions {
  int64_t accumulation = 1;  ///< Micro-batches of an update; an epoch's last one may have fewer.
  double clip_grad = 0.0;    ///< 0: off.
  double label_smoothing = 0.0;
  bool classify = true;  ///< Count right answers; batches are samples, not sequences of tokens.
};

/// What an update did.  All means are over the targets that counted.
struct Update {
  double loss = 0.0;
  int64_t targets = 0;
  int64_t correct = 0;  ///< 0 unless `classify`.
  double lr = 0.0;
  double grad_norm = -1.0;  ///< Before clipping; negative if it was not measured.
  Counted counted;
  int64_t micro_batches = 0;
};

/// Sums losses and gradients over micro-batches and divides by the number of targets of them all,
/// so that it does not matter how a batch was cut.  The schedule counts applied updates.
class Trainer {
 public:
  Trainer(models::Module& model, optim::Optimizer& optimizer, const optim::Schedule& schedule,
          const TrainerOptions& options);

  /// Forward and backward of one micro-batch.  Targets are on the host; inputs are moved to the
  /// model's device.
  void accumulate(const Tensor& inputs, const Tensor& targets);
  bool window_full() const { return pending_ == options_.accumulation; }
  int64_t pending() const { return pending_; }

  /// Applies what was accumulated.  Waits for the device.
  /// Throws    Error naming the step and the first parameter with a non-finite gradient if the loss
  ///           or the gradient is not finite; nothing is changed then.
  Update apply(bool measure_norm = false);

  /// Updates applied since the run began, resumed parts included.
  int64_t applied() const { return optimizer_.applied_steps(); }
  const TrainerOptions& options() const { return options_; }
  const optim::Schedule& schedule() const { return schedule_; }

 private:
  [[noreturn]] void stop_non_finite(double loss) const;

  models::Module& model_;
  optim::Optimizer& optimizer_;
  optim::Schedule schedule_;
  TrainerOptions options_;
  int64_t pending_ = 0;
  int64_t targets_ = 0;
  Counted counted_;
  Tensor loss_sum_, correct_sum_;
};

}  // namespace crucible::train
