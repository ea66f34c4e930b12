/// Optimizer updates of a flat range in one pass; one table a level.
#pragma once

#include <cstdint>

namespace crucible::cpu {

/// What becomes of the velocity v: not used; v = g; v = momentum * v + g.
enum class Velocity : int { none, first, later };

template <class A>
struct SgdSlice {
  const A* grad;
  A* velocity;
  A* param;
  int64_t n;
  A grad_scale, momentum, lr;
  A coupled_decay;  ///< Added to the gradient, times param.
  A keep;           ///< param is multiplied by this first.
};

template <class A>
struct AdamWSlice {
  const A* grad;
  A* m;
  A* v;
  A* param;
  int64_t n;
  A grad_scale, beta1, one_minus_beta1, beta2, one_minus_beta2, eps, keep;
  A step_size;     ///< lr / (1 - beta1^step)
  A v_correction;  ///< 1 / (1 - beta2^step)
};

template <class A>
struct OptimizerOf {
  void (*sgd)(const SgdSlice<A>& s, Velocity velocity, bool nesterov);
  void (*adamw)(const AdamWSlice<A>& s);
};

struct OptimizerKernels {
  OptimizerOf<double> f64;
  OptimizerOf<float> f32;
};

namespace v2 {
extern const OptimizerKernels optimizer;
}
namespace v3 {
extern const OptimizerKernels optimizer;
}
namespace v4 {
extern const OptimizerKernels optimizer;
}

}  // namespace crucible::cpu
