#include "optim/sgd.h"

#include <cmath>

#include "core/backend.h"
#include "core/check.h"

namespace crucible::optim {

Sgd::Sgd(ParameterSet& parameters, const SgdOptions& options)
    : Optimizer(parameters), options_(options) {
  set_lr(options.lr);
  check(options.momentum >= 0.0 && options.momentum < 1.0, "sgd: momentum {} is outside [0, 1).",
        options.momentum);
  check(std::isfinite(options.weight_decay) && options.weight_decay >= 0.0,
        "sgd: weight_decay {} is not a finite number of at least 0.", options.weight_decay);
  check(!options.nesterov || options.momentum > 0.0,
        "sgd: nesterov needs a momentum above 0; it is {}.", options.momentum);
  if (options.momentum > 0.0) velocity_ = add_state("momentum");
}

void Sgd::update(const Range& range, const Tensor& grad_scale) {
  run(prim::SgdStep{.lr = lr(),
                    .momentum = options_.momentum,
                    .weight_decay = range.decay ? options_.weight_decay : 0.0,
                    .nesterov = options_.nesterov,
                    .decoupled = options_.decoupled,
                    .first_step = applied_steps() == 0,
                    .grad_scale = grad_scale,
                    .grad = range.grad,
                    .velocity = velocity_.defined() ? part(velocity_, range) : prim::none,
                    .param = range.param});
}

}  // namespace crucible::optim
