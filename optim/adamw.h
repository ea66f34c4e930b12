/// Adam with decoupled weight decay.
#pragma once

#include "optim/optimizer.h"

namespace crucible::optim {

struct AdamWOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.01;  ///< Not on biases and norm gains.
};

/// Source    Loshchilov and Hutter 2019, arXiv:1711.05101; bias correction counts applied steps.
class AdamW final : public Optimizer {
 public:
  /// Throws    InvalidArgument for a value out of range.
  AdamW(ParameterSet& parameters, const AdamWOptions& options);
  std::string_view name() const override { return "adamw"; }
  const AdamWOptions& options() const { return options_; }

 private:
  void update(const Range& range, const Tensor& grad_scale) override;

  AdamWOptions options_;
  Tensor m_, v_;
};

}  // namespace crucible::optim
