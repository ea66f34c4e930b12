#include "optim/adamw.h"

#include <cmath>

#include "core/backend.h"
#include "core/check.h"

namespace crucible::optim {

AdamW::AdamW(ParameterSet& parameters, const AdamWOptions& options)
    : Optimizer(parameters), options_(options) {
  set_lr(options.lr);
  check(options.beta1 >= 0.0 && options.beta1 < 1.0, "adamw: beta1 {} is outside [0, 1).",
        options.beta1);
  check(options.beta2 >= 0.0 && options.beta2 < 1.0, "adamw: beta2 {} is outside [0, 1).",
        options.beta2);
  check(std::isfinite(options.eps) && options.eps > 0.0, "adamw: eps {} is not above 0.",
        options.eps);
  check(std::isfinite(options.weight_decay) && options.weight_decay >= 0.0,
        "adamw: weight_decay {} is not a finite number of at least 0.", options.weight_decay);
  m_ = add_state("exp_avg");
  v_ = add_state("exp_avg_sq");
}

void AdamW::update(const Range& range, const Tensor& grad_scale) {
  run(prim::AdamWStep{.lr = lr(),
                      .beta1 = options_.beta1,
                      .beta2 = options_.beta2,
                      .eps = options_.eps,
                      .weight_decay = range.decay ? options_.weight_decay : 0.0,
                      .step = applied_steps() + 1,
                      .grad_scale = grad_scale,
                      .grad = range.grad,
                      .m = part(m_, range),
                      .v = part(v_, range),
                      .param = range.param});
}

}  // namespace crucible::optim
