#include "optim/grad_scaler.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"

namespace crucible::optim {

GradScaler::GradScaler(const GradScalerOptions& options) : options_(options) {
  check(std::isfinite(options.floor) && options.floor > 0.0 && options.ceiling >= options.floor,
        "grad_scaler: floor {} and ceiling {} are no range of positive numbers.", options.floor,
        options.ceiling);
  check(options.initial_scale >= options.floor && options.initial_scale <= options.ceiling,
        "grad_scaler: initial_scale {} is outside [{}, {}].", options.initial_scale, options.floor,
        options.ceiling);
  check(std::isfinite(options.growth) && options.growth >= 1.0,
        "grad_scaler: growth {} is below 1.", options.growth);
  check(options.backoff > 0.0 && options.backoff < 1.0,
        "grad_scaler: backoff {} is outside (0, 1).", options.backoff);
  check(options.growth_interval >= 1 && options.max_consecutive_skips >= 1,
        "grad_scaler: growth_interval {} and max_consecutive_skips {} must be at least 1.",
        options.growth_interval, options.max_consecutive_skips);
  state_.scale = options.initial_scale;
}

void GradScaler::update(bool finite) {
  if (!finite) {
    state_.scale = std::max(state_.scale * options_.backoff, options_.floor);
    state_.good_updates = 0;
    ++state_.consecutive_skips;
    ++state_.skipped;
    return;
  }
  state_.consecutive_skips = 0;
  if (++state_.good_updates == options_.growth_interval) {
    state_.scale = std::min(state_.scale * options_.growth, options_.ceiling);
    state_.good_updates = 0;
  }
}

void GradScaler::restore(const State& state) {
  check(std::isfinite(state.scale) && state.scale > 0.0,
        "grad_scaler: scale {} is not finite and above 0.", state.scale);
  check(state.good_updates >= 0 && state.consecutive_skips >= 0 && state.skipped >= 0,
        "grad_scaler: the counts {}, {} and {} must not be negative.", state.good_updates,
        state.consecutive_skips, state.skipped);
  state_ = state;
}

}  // namespace crucible::optim
