/// Loss scaling, which keeps small gradients representable in f16.
#pragma once

#include <cstdint>

namespace crucible::optim {

struct GradScalerOptions {
  double initial_scale = 65536.0;
  double growth = 2.0;             ///< After `growth_interval` finite updates in a row.
  double backoff = 0.5;            ///< After an update whose gradients were not finite.
  int64_t growth_interval = 2000;  ///< Updates.
  double floor = 1.0;              ///< The scale never falls below.
  double ceiling = 16777216.0;     ///< Nor rises above.
  int64_t max_consecutive_skips = 30;
};

/// Decides, after each update, by what the next loss is multiplied before backward.  An update
/// whose gradients overflow is skipped and halves the scale; a long run of good ones doubles it.
///
/// Source    Micikevicius et al. 2018, arXiv:1710.03740, section 3.2.
class GradScaler {
 public:
  struct State {
    double scale = 1.0;
    int64_t good_updates = 0;  ///< Since the scale last changed.
    int64_t consecutive_skips = 0;
    int64_t skipped = 0;  ///< In all.

    friend bool operator==(const State&, const State&) = default;
  };

  /// Throws    InvalidArgument naming the option that makes no sense.
  explicit GradScaler(const GradScalerOptions& options = {});

  double scale() const { return state_.scale; }
  /// Notes whether the gradients of an update were finite.
  void update(bool finite);
  /// Whether so many updates in a row were skipped that the fault is not the scale's.
  bool exhausted() const { return state_.consecutive_skips >= options_.max_consecutive_skips; }

  const State& state() const { return state_; }
  /// Throws    InvalidArgument if the scale is not finite and positive or a count is negative.
  void restore(const State& state);
  const GradScalerOptions& options() const { return options_; }

 private:
  GradScalerOptions options_;
  State state_;
};

}  // namespace crucible::optim
