#include "tools/train/trainer.h"

#include <cmath>
#include <limits>

#include "core/autograd.h"
#include "core/check.h"
#include "core/log.h"
#include "ops/autocast.h"
#include "ops/cast.h"
#include "ops/elementwise.h"
#include "ops/loss.h"
#include "optim/clip.h"

namespace crucible::train {
namespace {

int64_t count_targets(const Tensor& targets, int64_t ignore_index) {
  const int64_t* values = targets.data<int64_t>();
  int64_t count = 0;
  for (int64_t i = 0; i < targets.numel(); ++i) count += values[i] != ignore_index;
  return count;
}

}  // namespace

Trainer::Trainer(models::Module& model, optim::Optimizer& optimizer,
                 const optim::Schedule& schedule, const TrainerOptions& options)
    : model_(model), optimizer_(optimizer), schedule_(schedule), options_(options) {
  check(options.accumulation >= 1, "trainer: accumulation {} is below 1; give at least 1.",
        options.accumulation);
  schedule_.validate();
  if (!options_.autocast) return;
  model_.parameters().keep_narrow_copy(*options_.autocast);
  if (*options_.autocast == DType::f16) scaler_.emplace();
}

// A sum over many targets would overflow f16 long before its mean does, so the scale is divided by
// about as many targets as the window will have; apply() divides by the exact number.
void Trainer::choose_upstream(int64_t targets) {
  if (!scaler_ || pending_ > 0) return;
  upstream_ =
      scaler_->scale() / static_cast<double>(std::max<int64_t>(targets, 1) * options_.accumulation);
}

void Trainer::accumulate(const Tensor& inputs, const Tensor& targets) {
  const CrossEntropyOptions loss_options{.label_smoothing = options_.label_smoothing,
                                         .reduction = Reduction::sum};
  const Device device = model_.parameters().device();
  choose_upstream(targets.numel());
  targets_ += count_targets(targets, loss_options.ignore_index);
  counted_.samples += inputs.size(0);
  if (!options_.classify) counted_.tokens += targets.numel();
  ++pending_;

  const Tensor labels = to_device(targets, device);
  Tensor logits, loss;
  {
    const AutocastScope precision(options_.autocast);
    logits = model_(to_device(inputs, device));
    loss = cross_entropy(logits, labels, loss_options);
  }
  loss.backward(Tensor::full({}, upstream_, loss.dtype(), device));

  const NoGrad off;
  // Doubles hold the sum of a long window exactly enough.
  const Tensor sum = cast(loss.detach(), DType::f64);
  loss_sum_ = loss_sum_.defined() ? add(loss_sum_, sum) : sum;
  if (options_.classify) {
    const Tensor correct = count_correct(logits.detach(), labels, loss_options.ignore_index);
    correct_sum_ = correct_sum_.defined() ? add(correct_sum_, correct) : correct;
  }
}

Update Trainer::apply(bool measure_norm) {
  check(pending_ > 0, "trainer: apply() without a micro-batch; call accumulate() first.");
  Update update{.targets = targets_, .counted = counted_, .micro_batches = pending_};
  // A window without any target has gradient 0, and so has its mean.
  const double share = targets_ > 0 ? 1.0 / static_cast<double>(targets_) : 0.0;
  const double multiplier = share / upstream_;
  if (targets_ == 0) {
    log().warn("train: no target of the batch of step {} counts; its gradient is 0.",
               applied() + 1);
  }
  update.loss = loss_sum_.item<double>() * share;
  update.correct = correct_sum_.defined() ? correct_sum_.item<int64_t>() : 0;
  if (!std::isfinite(update.loss)) {
    if (!scaler_) stop_non_finite(update.loss);
    skip(update);
    return update;
  }

  Tensor scale;
  if (options_.clip_grad > 0 || measure_norm || scaler_) {
    const double limit =
        options_.clip_grad > 0 ? options_.clip_grad : std::numeric_limits<double>::infinity();
    const optim::ClipScale clip = optim::clip_scale(optimizer_.parameters(), limit, multiplier);
    update.grad_norm = clip.norm.item<double>();
    if (!std::isfinite(update.grad_norm)) {
      if (!scaler_) stop_non_finite(update.loss);
      skip(update);
      return update;
    }
    scale = clip.scale;
  } else {
    const ParameterSet& set = optimizer_.parameters();
    scale = Tensor::full({}, multiplier, set.dtype(), set.device());
  }
  update.lr = schedule_.at(applied());
  optimizer_.set_lr(update.lr);
  optimizer_.step(scale);
  if (scaler_) scaler_->update(true);
  begin_window();
  return update;
}

void Trainer::skip(Update& update) {
  scaler_->update(false);
  if (scaler_->exhausted()) stop_non_finite(update.loss);
  update.lr = schedule_.at(applied());
  update.skipped = true;
  begin_window();
}

void Trainer::begin_window() {
  optimizer_.zero_grad();
  pending_ = targets_ = 0;
  counted_ = {};
  loss_sum_ = correct_sum_ = Tensor();
}

void Trainer::stop_non_finite(double loss) const {
  const std::string name = optim::first_non_finite_gradient(optimizer_.parameters());
  if (scaler_) {
    fail<Error>(
        "train: step {} was skipped {} times in a row, at last with loss {} at loss scale {:g}; "
        "{}; "
        "lower --lr, raise --lr-warmup-steps, set --clip-grad or use --precision bf16.",
        applied() + 1, scaler_->state().consecutive_skips, loss, scaler_->scale(),
        name.empty() ? "the gradients are finite" : "first non-finite gradient: parameter " + name);
  }
  fail<Error>(
      "train: step {} has loss {} and {}; lower --lr, raise --lr-warmup-steps or set "
      "--clip-grad, and go on from a checkpoint before it.",
      applied() + 1, loss,
      name.empty() ? "finite gradients" : "a non-finite gradient, first in parameter " + name);
}

}  // namespace crucible::train
