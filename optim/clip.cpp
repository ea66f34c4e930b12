#include "optim/clip.h"

#include <cmath>

#include "core/autograd.h"
#include "core/backend.h"
#include "core/check.h"
#include "ops/cast.h"
#include "ops/elementwise.h"

namespace crucible::optim {

ClipScale clip_scale(ParameterSet& parameters, double max_norm, double multiplier) {
  check(max_norm > 0.0, "clip: max_norm {} is not above 0.", max_norm);
  NoGrad off;
  parameters.complete_gradients();
  const Tensor squares = Tensor::empty({}, DType::f64, parameters.device());
  run(prim::SumSquares{.x = parameters.gradients(), .y = squares});
  ClipScale result;
  result.norm = mul(sqrt(squares), std::abs(multiplier));
  Tensor factor = Tensor::full({}, 1.0, DType::f64, parameters.device());
  if (std::isfinite(max_norm)) {
    const Tensor limit = Tensor::full({}, max_norm, DType::f64, parameters.device());
    factor = minimum(div(limit, add(result.norm, 1e-6)), factor);
  }
  result.scale = cast(mul(factor, multiplier), parameters.dtype());
  return result;
}

std::string first_non_finite_gradient(ParameterSet& parameters) {
  for (const Parameter& p : parameters.parameters()) {
    const Tensor& grad = p.tensor.grad();
    if (!grad.defined() || grad.numel() == 0) continue;
    const Tensor squares = Tensor::empty({}, DType::f64, parameters.device());
    run(prim::SumSquares{.x = grad, .y = squares});
    if (!std::isfinite(squares.item<double>())) return p.name;
  }
  return "";
}

}  // namespace crucible::optim
