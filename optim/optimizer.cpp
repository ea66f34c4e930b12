#include "optim/optimizer.h"

#include <cmath>
#include <tuple>

#include "core/allocator.h"
#include "core/check.h"
#include "core/storage.h"

namespace crucible::optim {

Optimizer::Optimizer(ParameterSet& parameters) : parameters_(parameters) {
  parameters_.pack();
}

void Optimizer::set_lr(double lr) {
  check(std::isfinite(lr) && lr >= 0.0, "optimizer: lr {} is not a finite number of at least 0.",
        lr);
  lr_ = lr;
}

void Optimizer::step(const Tensor& grad_scale) {
  const Tensor& values = parameters_.values();
  check(!grad_scale.defined() || (grad_scale.rank() == 0 && grad_scale.dtype() == values.dtype()),
        "optimizer: grad_scale is {}; it must be a 0-d {}.",
        grad_scale.defined() ? to_string(grad_scale.shape()) : "", name_of(values.dtype()));
  parameters_.complete_gradients();
  const int64_t decayed = parameters_.decayed_elements(), total = values.numel();
  for (const auto& [begin, end, decay] :
       {std::tuple{int64_t{0}, decayed, true}, std::tuple{decayed, total, false}}) {
    if (begin == end) continue;
    Range range{{}, {}, decay, begin, end};
    range.grad = part(parameters_.gradients(), range);
    range.param = part(values, range);
    update(range, grad_scale);
  }
  values.storage()->bump_version();
  ++applied_steps_;
}

Tensor Optimizer::part(const Tensor& flat, const Range& range) {
  return flat.as_strided({range.end - range.begin}, row_major({1}), range.begin);
}

Tensor Optimizer::add_state(std::string name) {
  const MemoryTagScope tag(MemoryTag::optimizer);
  const Tensor& values = parameters_.values();
  state_.emplace_back(std::move(name),
                      Tensor::zeros(values.shape(), values.dtype(), values.device()));
  return state_.back().second;
}

std::vector<NamedTensor> Optimizer::state() const {
  std::vector<NamedTensor> named;
  for (const auto& [prefix, flat] : state_) {
    for (const Parameter& p : parameters_.parameters()) {
      named.push_back(
          {prefix + "." + p.name,
           flat.as_strided(p.tensor.shape(), row_major(p.tensor.shape()), p.arena_offset),
           p.layout});
    }
  }
  return named;
}

}  // namespace crucible::optim
