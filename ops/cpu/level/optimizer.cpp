// SGD reads 3 and writes 2 values a parameter, AdamW 4 and 3.
#include "ops/cpu/level/optimizer.h"

#include <cmath>

namespace crucible::cpu::CRUCIBLE_LEVEL {
namespace {

template <class A, Velocity velocity, bool nesterov>
void sgd_of(const SgdSlice<A>& s) {
  const A* grad = s.grad;
  A* v = s.velocity;
  A* param = s.param;
  const A scale = s.grad_scale, momentum = s.momentum, lr = s.lr, decay = s.coupled_decay,
          keep = s.keep;
#pragma omp simd
  for (int64_t i = 0; i < s.n; ++i) {
    const A g = grad[i] * scale + decay * param[i];
    A u = g;
    if constexpr (velocity != Velocity::none) {
      A next = g;
      if constexpr (velocity == Velocity::later) next = momentum * v[i] + g;
      v[i] = next;
      u = nesterov ? g + momentum * next : next;
    }
    param[i] = param[i] * keep - lr * u;
  }
}

template <class A>
void sgd(const SgdSlice<A>& s, Velocity velocity, bool nesterov) {
  switch (velocity) {
    case Velocity::none:
      return sgd_of<A, Velocity::none, false>(s);
    case Velocity::first:
      return nesterov ? sgd_of<A, Velocity::first, true>(s) : sgd_of<A, Velocity::first, false>(s);
    case Velocity::later:
      return nesterov ? sgd_of<A, Velocity::later, true>(s) : sgd_of<A, Velocity::later, false>(s);
  }
}

template <class A>
void adamw(const AdamWSlice<A>& slice) {
  const AdamWSlice<A> s = slice;
  const A* grad = s.grad;
  A *m = s.m, *v = s.v, *param = s.param;
#pragma omp simd
  for (int64_t i = 0; i < s.n; ++i) {
    const A g = grad[i] * s.grad_scale;
    m[i] = s.beta1 * m[i] + s.one_minus_beta1 * g;
    v[i] = s.beta2 * v[i] + s.one_minus_beta2 * g * g;
    param[i] = param[i] * s.keep - s.step_size * m[i] / (std::sqrt(v[i] * s.v_correction) + s.eps);
  }
}

}  // namespace

extern const OptimizerKernels optimizer{{sgd<double>, adamw<double>}, {sgd<float>, adamw<float>}};

}  // namespace crucible::cpu::CRUCIBLE_LEVEL
