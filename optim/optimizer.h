/// What all optimizers share.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/parameters.h"

namespace crucible::optim {

/// Updates every parameter of a set from its gradient, over the flat arena: one pass for the
/// parameters with weight decay, one for the others.
class Optimizer {
 public:
  /// Packs the set if it is not packed; the set must outlive the optimizer.
  explicit Optimizer(ParameterSet& parameters);
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// One update.  Gradients are read, never changed; parameters that backward has not reached count
  /// as gradient 0.  `grad_scale`: optional, 0-d of the parameters' dtype, multiplies every
  /// gradient (clipping, averaging over accumulated batches); see clip_scale().
  void step(const Tensor& grad_scale = {});
  void zero_grad() { parameters_.zero_grad(); }

  double lr() const { return lr_; }
  void set_lr(double lr);
  /// Updates applied so far.
  int64_t applied_steps() const { return applied_steps_; }

  /// The state by name, one tensor a parameter ("momentum.fc.weight"), as views of this optimizer's
  /// memory: write them to a file, or copy into them to restore.  Then set_applied_steps().
  std::vector<NamedTensor> state() const;
  void set_applied_steps(int64_t steps) { applied_steps_ = steps; }

  virtual std::string_view name() const = 0;
  ParameterSet& parameters() const { return parameters_; }

 protected:
  /// A contiguous part of the arenas.
  struct Range {
    Tensor grad;
    Tensor param;
    bool decay;
    int64_t begin, end;
  };
  /// Updates one range; `applied_steps()` counts the updates before this one.
  virtual void update(const Range& range, const Tensor& grad_scale) = 0;
  /// The part of a state tensor that belongs to a range.
  static Tensor part(const Tensor& flat, const Range& range);
  /// Adds a flat state tensor of zeros under a name.
  Tensor add_state(std::string name);

 private:
  double lr_ = 0.0;
  ParameterSet& parameters_;
  int64_t applied_steps_ = 0;
  std::vector<std::pair<std::string, Tensor>> state_;
};

}  // namespace crucible::optim
