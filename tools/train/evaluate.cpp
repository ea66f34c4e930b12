#include "tools/train/evaluate.h"

#include <cmath>
#include <numbers>

#include "core/autograd.h"
#include "ops/cast.h"
#include "ops/loss.h"

namespace crucible::train {
namespace {

/// Evaluation mode while alive.
class EvaluationMode {
 public:
  explicit EvaluationMode(ParameterSet& set) : set_(set), previous_(set.training()) {
    set.set_training(false);
  }
  ~EvaluationMode() { set_.set_training(previous_); }
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

 private:
  ParameterSet& set_;
  bool previous_;
};

int64_t bytes_of(const data::Tokenizer& tokenizer, const Tensor& tokens) {
  const std::vector<int64_t> ids = tokens.to_vector<int64_t>();
  return static_cast<int64_t>(tokenizer.decode(ids).size());
}

}  // namespace

Evaluation evaluate(models::Module& model, const data::Loader& loader,
                    const EvaluateOptions& options) {
  const EvaluationMode mode(model.parameters());
  const NoGrad off;
  const Device device = model.parameters().device();
  Evaluation result;
  double loss = 0.0;
  int64_t correct = 0, bytes = 0, batches = 0;
  auto pass = loader.epoch(0, Device::cpu());
  result.complete = true;
  for (const auto& [inputs, targets] : pass) {
    const Tensor labels = to_device(targets, device);
    const Tensor logits = model(to_device(inputs, device));
    loss += cross_entropy(logits, labels, {.reduction = Reduction::sum}).item<double>();
    if (options.classify) correct += count_correct(logits, labels).item<int64_t>();
    if (options.tokenizer) bytes += bytes_of(*options.tokenizer, targets);
    result.targets += targets.numel();
    if (++batches == options.max_batches) break;
    if (options.stop()) {
      result.complete = false;
      break;
    }
  }
  const double count = static_cast<double>(std::max<int64_t>(result.targets, 1));
  result.loss = loss / count;
  if (options.classify) result.accuracy = static_cast<double>(correct) / count;
  if (bytes > 0) result.bits_per_byte = loss / std::numbers::ln2 / static_cast<double>(bytes);
  return result;
}

}  // namespace crucible::train
