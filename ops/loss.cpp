#include "ops/loss.h"

#include <atomic>
#include <limits>

#include "core/log.h"
#include "ops/elementwise.h"
#include "ops/op.h"
#include "ops/reduce.h"

namespace crucible {
namespace {

const OpInfo cross_entropy_op{"cross_entropy"};
const OpInfo count_correct_op{"count_correct"};

// Logits [..., C] as [R, C], after checking the labels' shape.
Tensor check_rows(const OpInfo& op, const Tensor& logits, const Tensor& labels) {
  check_defined(op, labels, "labels");
  check(logits.rank() >= 1 && labels.shape() == logits.shape().without(logits.rank() - 1),
        "{}: logits are {}, labels {}; labels must have the shape of the logits without the last "
        "axis.",
        op.name, to_string(logits.shape()), to_string(labels.shape()));
  check(labels.dtype() == DType::i64, "{}: labels hold {}; they must be i64.", op.name,
        name_of(labels.dtype()));
  check(labels.device() == logits.device(), "{}: logits are on {}, labels on {}; copy one of them.",
        op.name, to_string(logits.device()), to_string(labels.device()));
  const int64_t classes = logits.size(-1);
  check(classes > 0, "{}: logits {} have no classes.", op.name, to_string(logits.shape()));
  return reshape_data(logits, {labels.numel(), classes});
}

// One warning a process, and only on the host, where reading the count waits for nothing.
void warn_if_nothing_counts(const Tensor& count, int64_t rows, int64_t ignore_index) {
  static std::atomic<bool> warned = false;
  const bool host = count.device().type == DeviceType::cpu;
  if (!host || rows == 0 || count.item<double>() > 0.0 || warned.exchange(true)) return;
  log().warn(
      "cross_entropy: all {} labels are the ignore_index {}: the loss is 0 and teaches nothing; "
      "check the labels (said once).",
      rows, ignore_index);
}

}  // namespace

Tensor cross_entropy(const Tensor& input, const Tensor& labels,
                     const CrossEntropyOptions& options) {
  const Tensor logits = prepare(cross_entropy_op, input, "logits");
  const Tensor rows = check_rows(cross_entropy_op, logits, labels);
  check(options.label_smoothing >= 0.0 && options.label_smoothing <= 1.0,
        "cross_entropy: label_smoothing {} is outside [0, 1].", options.label_smoothing);
  const Tensor targets = reshape_data(contiguous_data(labels), {labels.numel()});
  const DType statistics = statistics_dtype(logits.dtype());
  const Tensor lse = Tensor::empty({rows.size(0)}, statistics, logits.device());
  const Tensor count = Tensor::empty({}, statistics, logits.device());
  const Tensor total = Tensor::empty({}, statistics, logits.device());
  run(prim::CrossEntropy{.logits = rows,
                         .labels = targets,
                         .ignore_index = options.ignore_index,
                         .smoothing = options.label_smoothing,
                         .lse = lse,
                         .count = count,
                         .loss = total});
  warn_if_nothing_counts(count, rows.size(0), options.ignore_index);
  const bool mean = options.reduction == Reduction::mean;
  Tensor loss = total, divisor;
  if (mean) {  // max(count, 1): a batch of ignored rows gives 0, not 0 / 0
    NoGrad off;
    divisor = clamp(count, 1.0, std::numeric_limits<double>::infinity());
    loss = div(total, divisor);
  }
  return record(cross_entropy_op, loss, {logits},
                [options, shape = logits.shape(), logits = save(rows), labels = save(targets),
                 lse = save(lse), divisor = save(divisor)](const Tensor& dy) -> Gradients {
                  const Tensor scale = divisor.defined() ? div(dy, divisor.get()) : dy;
                  const Tensor d = empty_like(logits.get());
                  run(prim::CrossEntropyBackward{.logits = logits.get(),
                                                 .labels = labels.get(),
                                                 .ignore_index = options.ignore_index,
                                                 .smoothing = options.label_smoothing,
                                                 .lse = lse.get(),
                                                 .scale = scale,
                                                 .dlogits = d});
                  return {reshape_data(d, shape)};
                });
}

Tensor mse_loss(const Tensor& a, const Tensor& b, Reduction reduction) {
  const Tensor squares = square(sub(a, b));
  return reduction == Reduction::mean ? mean(squares) : sum(squares);
}

Tensor count_correct(const Tensor& input, const Tensor& labels, int64_t ignore_index) {
  const Tensor logits = prepare(count_correct_op, input.detach(), "logits");
  const Tensor rows = check_rows(count_correct_op, logits, labels);
  const Tensor correct = Tensor::empty({}, DType::i64, logits.device());
  run(prim::CountCorrect{.logits = rows,
                         .labels = reshape_data(contiguous_data(labels), {labels.numel()}),
                         .ignore_index = ignore_index,
                         .correct = correct});
  return no_gradient(count_correct_op, correct, {input});
}

}  // namespace crucible
