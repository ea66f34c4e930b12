/// Stochastic gradient descent with momentum.
#pragma once

#include "optim/optimizer.h"

namespace crucible::optim {

struct SgdOptions {
  double lr = 0.1;
  double momentum = 0.0;
  double weight_decay = 0.0;
  bool nesterov = false;
  /// false: weight_decay * parameter is added to the gradient (L2).  true: the parameter is
  /// multiplied by 1 - lr * weight_decay, apart from the gradient.
  bool decoupled = false;
};

/// v = momentum * v + g; p -= lr * v (Nesterov: p -= lr * (g + momentum * v)).
/// Source    Sutskever et al. 2013, with lr applied to the velocity as in PyTorch.
class Sgd final : public Optimizer {
 public:
  /// Throws    InvalidArgument for a value out of range, or Nesterov without momentum.
  Sgd(ParameterSet& parameters, const SgdOptions& options);
  std::string_view name() const override { return "sgd"; }
  const SgdOptions& options() const { return options_; }

 private:
  void update(const Range& range, const Tensor& grad_scale) override;

  SgdOptions options_;
  Tensor velocity_;  // undefined without momentum
};

}  // namespace crucible::optim
