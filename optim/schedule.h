/// Learning-rate schedules as pure functions of the number of applied updates.
#pragma once

#include <cstdint>
#include <string_view>

namespace crucible::optim {

struct Schedule {
  enum class Kind : uint8_t { constant, step, cosine, linear };
  Kind kind = Kind::constant;
  double lr = 0.1;           ///< After warm-up.
  double min_lr = 0.0;       ///< Where cosine and linear end.
  int64_t warmup_steps = 0;  ///< lr * (s + 1) / warmup_steps for s below it.
  int64_t total_steps = 1;   ///< Updates of the whole run, warm-up included; min_lr from there on.
  int64_t step_size = 1;     ///< step: updates between decays, counted after warm-up.
  double gamma = 0.1;        ///< step: factor of a decay.

  /// The learning rate of the update that follows `applied` ones.
  double at(int64_t applied) const;
  /// Throws    InvalidArgument naming the field that is out of range.
  void validate() const;
};

std::string_view name_of(Schedule::Kind kind);
/// Throws    InvalidArgument for another name than constant, step, cosine, linear.
Schedule::Kind parse_schedule(std::string_view name);

}  // namespace crucible::optim
