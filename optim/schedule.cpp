#include "optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/check.h"

namespace crucible::optim {
namespace {

constexpr std::string_view names[] = {"constant", "step", "cosine", "linear"};

}  // namespace

double Schedule::at(int64_t applied) const {
  if (applied < warmup_steps) return lr * static_cast<double>(applied + 1) / warmup_steps;
  const int64_t after = applied - warmup_steps;
  const int64_t length = std::max<int64_t>(total_steps - warmup_steps, 1);
  const double progress = std::min(1.0, static_cast<double>(after) / length);
  const int64_t decays = after / step_size;
  switch (kind) {
    case Kind::constant:
      return lr;
    case Kind::step:
      return lr * std::pow(gamma, decays);
    case Kind::cosine:
      return min_lr + 0.5 * (lr - min_lr) * (1.0 + std::cos(std::numbers::pi * progress));
    case Kind::linear:
      return min_lr + (lr - min_lr) * (1.0 - progress);
  }
  return lr;
}

void Schedule::validate() const {
  check(std::isfinite(lr) && lr >= 0.0, "schedule: lr {} is not a finite number of at least 0.",
        lr);
  check(min_lr >= 0.0 && min_lr <= lr, "schedule: min_lr {} is outside [0, lr = {}].", min_lr, lr);
  check(warmup_steps >= 0, "schedule: warmup_steps {} is negative.", warmup_steps);
  check(total_steps >= 1, "schedule: total_steps {} is below 1.", total_steps);
  check(step_size >= 1, "schedule: step_size {} is below 1.", step_size);
  check(gamma > 0.0 && gamma <= 1.0, "schedule: gamma {} is outside (0, 1].", gamma);
}

std::string_view name_of(Schedule::Kind kind) {
  return names[static_cast<int>(kind)];
}

Schedule::Kind parse_schedule(std::string_view name) {
  for (int i = 0; i < 4; ++i) {
    if (name == names[i]) return static_cast<Schedule::Kind>(i);
  }
  fail("schedule: '{}' is not known; choose constant, step, cosine or linear.", name);
}

}  // namespace crucible::optim
