/// One update at a time: micro-batches in, one step of the optimizer out.
#pragma once

#include <cstdint>
#include <optional>

#include "models/module.h"
#include "optim/grad_scaler.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "tools/train/throughput.h"

namespace crucible::train {

struct TrainerOptions {
  int64_t accumulation = 1;  ///< Micro-batches of an update; an epoch's last one may have fewer.
  double clip_grad = 0.0;    ///< 0: off.
  double label_smoothing = 0.0;
  std::optional<DType> autocast;  ///< Dtype of products in forward; f16 also scales the loss.
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
  bool skipped = false;  ///< The scaled gradients overflowed; nothing was changed.
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
  ///           or the gradient is not finite; nothing is changed then.  With a scaled loss the
  ///           update is skipped instead, and too many skips in a row are the error.
  Update apply(bool measure_norm = false);

  /// Updates applied since the run began, resumed parts included.
  int64_t applied() const { return optimizer_.applied_steps(); }
  const TrainerOptions& options() const { return options_; }
  const optim::Schedule& schedule() const { return schedule_; }
  /// Null unless the loss is scaled.
  optim::GradScaler* scaler() { return scaler_ ? &*scaler_ : nullptr; }
  const optim::GradScaler* scaler() const { return scaler_ ? &*scaler_ : nullptr; }

 private:
  [[noreturn]] void stop_non_finite(double loss) const;
  /// What the summed loss of the window is multiplied by before backward.
  void choose_upstream(int64_t targets);
  /// The update after its gradients turned out not to be finite.
  void skip(Update& update);
  void begin_window();

  models::Module& model_;
  optim::Optimizer& optimizer_;
  optim::Schedule schedule_;
  TrainerOptions options_;
  std::optional<optim::GradScaler> scaler_;
  double upstream_ = 1.0;
  int64_t pending_ = 0;
  int64_t targets_ = 0;
  Counted counted_;
  Tensor loss_sum_, correct_sum_;
};

}  // namespace crucible::train
