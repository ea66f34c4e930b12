#include <cmath>

#include "tests/reference/reference_backend.h"
#include "tests/reference/values.h"

namespace crucible::reference {

void ReferenceBackend::kernel(const prim::SgdStep& p) {
  const std::vector<Real> grad = read(p.grad);
  std::vector<Real> velocity = read(p.velocity), param = read(p.param);
  const Real scale = read_scalar(p.grad_scale, 1.0);
  const Real lr = p.lr, momentum = p.momentum, decay = p.weight_decay;
  for (size_t i = 0; i < param.size(); ++i) {
    Real g = grad[i] * scale;
    if (!p.decoupled) g = g + decay * param[i];
    Real step = g;
    if (!velocity.empty()) {
      velocity[i] = p.first_step ? g : momentum * velocity[i] + g;
      step = p.nesterov ? g + momentum * velocity[i] : velocity[i];
    }
    const Real kept = p.decoupled ? param[i] * (Real(1.0) - lr * decay) : param[i];
    param[i] = kept - lr * step;
  }
  write(p.velocity, velocity);
  write(p.param, param);
}

void ReferenceBackend::kernel(const prim::AdamWStep& p) {
  const std::vector<Real> grad = read(p.grad);
  std::vector<Real> m = read(p.m), v = read(p.v), param = read(p.param);
  const Real scale = read_scalar(p.grad_scale, 1.0);
  const Real beta1 = p.beta1, beta2 = p.beta2, rest1 = 1.0 - p.beta1, rest2 = 1.0 - p.beta2;
  const Real correction1 = 1.0 - std::pow(p.beta1, static_cast<double>(p.step));
  const Real correction2 = 1.0 - std::pow(p.beta2, static_cast<double>(p.step));
  for (size_t i = 0; i < param.size(); ++i) {
    const Real g = grad[i] * scale;
    m[i] = beta1 * m[i] + rest1 * g;
    v[i] = beta2 * v[i] + rest2 * g * g;
    const Real direction = (m[i] / correction1) / (sqrt(v[i] / correction2) + Real(p.eps));
    param[i] = param[i] * Real(1.0 - p.lr * p.weight_decay) - Real(p.lr) * direction;
  }
  write(p.m, m);
  write(p.v, v);
  write(p.param, param);
}

}  // namespace crucible::reference
