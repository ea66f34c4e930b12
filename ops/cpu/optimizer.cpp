// Optimizer steps: constants are computed in double, the update runs in the dtype of the
// parameters.
#include "ops/cpu/level/optimizer.h"

#include <cmath>

#include "ops/cpu/cpu_backend.h"
#include "ops/cpu/level.h"
#include "ops/cpu/parallel.h"

namespace crucible::cpu {
namespace {

template <class A>
const OptimizerOf<A>& kernels() {
  const OptimizerKernels& all = at_level(v2::optimizer, v3::optimizer, v4::optimizer);
  if constexpr (std::is_same_v<A, double>) {
    return all.f64;
  } else {
    return all.f32;
  }
}

template <class A>
A value_or_one(const Tensor& scale) {
  return scale.defined() ? *scale.data<A>() : A(1);
}

}  // namespace

void CpuBackend::kernel(const prim::SgdStep& p) {
  visit_dtype(p.param.dtype(), DTypes<double, float>{}, [&]<class A>() {
    const A scale = value_or_one<A>(p.grad_scale);
    const Velocity velocity = !p.velocity.defined() ? Velocity::none
                              : p.first_step        ? Velocity::first
                                                    : Velocity::later;
    parallel_for(
        p.param.numel(), cheap_grain,
        [&](int64_t begin, int64_t end) {
          kernels<A>().sgd(
              {.grad = p.grad.data<A>() + begin,
               .velocity = p.velocity.defined() ? p.velocity.data<A>() + begin : nullptr,
               .param = p.param.data<A>() + begin,
               .n = end - begin,
               .grad_scale = scale,
               .momentum = static_cast<A>(p.momentum),
               .lr = static_cast<A>(p.lr),
               .coupled_decay = static_cast<A>(p.decoupled ? 0.0 : p.weight_decay),
               .keep = static_cast<A>(p.decoupled ? 1.0 - p.lr * p.weight_decay : 1.0)},
              velocity, p.nesterov);
        },
        16);
  });
}

void CpuBackend::kernel(const prim::AdamWStep& p) {
  visit_dtype(p.param.dtype(), DTypes<double, float>{}, [&]<class A>() {
    const A scale = value_or_one<A>(p.grad_scale);
    const double step = static_cast<double>(p.step);
    parallel_for(
        p.param.numel(), cheap_grain,
        [&](int64_t begin, int64_t end) {
          kernels<A>().adamw(
              {.grad = p.grad.data<A>() + begin,
               .m = p.m.data<A>() + begin,
               .v = p.v.data<A>() + begin,
               .param = p.param.data<A>() + begin,
               .n = end - begin,
               .grad_scale = scale,
               .beta1 = static_cast<A>(p.beta1),
               .one_minus_beta1 = static_cast<A>(1.0 - p.beta1),
               .beta2 = static_cast<A>(p.beta2),
               .one_minus_beta2 = static_cast<A>(1.0 - p.beta2),
               .eps = static_cast<A>(p.eps),
               .keep = static_cast<A>(1.0 - p.lr * p.weight_decay),
               .step_size = static_cast<A>(p.lr / (1.0 - std::pow(p.beta1, step))),
               .v_correction = static_cast<A>(1.0 / (1.0 - std::pow(p.beta2, step)))});
        },
        16);
  });
}

}  // namespace crucible::cpu
