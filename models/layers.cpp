#include "models/layers.h"

#include <cmath>

#include "ops/dropout.h"
#include "ops/embedding.h"
#include "ops/norm.h"

namespace crucible::models {

Linear::Linear(const Scope& s, int64_t in, int64_t out, const LinearOptions& options) {
  const double bound = in > 0 ? 1.0 / std::sqrt(static_cast<double>(in)) : 0.0;
  const Init fallback = Init::uniform(-bound, bound);
  weight = s.parameter("weight", {out, in}, options.weight_init.value_or(fallback),
                       {.layout = options.layout});
  if (options.bias) {
    bias = s.parameter("bias", {out}, options.bias_init.value_or(fallback), {.decay = false});
  }
}

Conv2d::Conv2d(const Scope& s, int64_t in, int64_t out, const Conv2dOptions& o)
    : options{
          .stride = o.stride, .padding = o.padding, .dilation = o.dilation, .groups = o.groups} {
  const double deviation = std::sqrt(2.0 / static_cast<double>(out * o.kernel * o.kernel));
  weight = s.parameter("weight", {out, o.kernel, o.kernel, in / o.groups},
                       Init::normal(0.0, deviation), {.layout = ExportLayout::oihw});
  if (o.bias) bias = s.parameter("bias", {out}, Init::constant(0.0), {.decay = false});
}

BatchNorm::BatchNorm(const Scope& s, int64_t channels)
    : set(&s.set()),
      weight(s.parameter("weight", {channels}, Init::constant(1.0), {.decay = false})),
      bias(s.parameter("bias", {channels}, Init::constant(0.0), {.decay = false})),
      running_mean(s.buffer("running_mean", {channels}, 0.0)),
      running_var(s.buffer("running_var", {channels}, 1.0)) {}

Tensor BatchNorm::operator()(const Tensor& x) const {
  return batch_norm(x, weight, bias, running_mean, running_var, {.training = set->training()});
}

Tensor BatchNorm::relu(const Tensor& x) const {
  return batch_norm(x, weight, bias, running_mean, running_var,
                    {.training = set->training(), .relu = true});
}

Tensor BatchNorm::add_relu(const Tensor& x, const Tensor& residual) const {
  return batch_norm(x, weight, bias, running_mean, running_var,
                    {.training = set->training(), .relu = true}, residual);
}

LayerNorm::LayerNorm(const Scope& s, int64_t width, double eps)
    : eps(eps),
      weight(s.parameter("weight", {width}, Init::constant(1.0), {.decay = false})),
      bias(s.parameter("bias", {width}, Init::constant(0.0), {.decay = false})) {}

Tensor LayerNorm::operator()(const Tensor& x) const {
  return layer_norm(x, weight, bias, eps);
}

Embedding::Embedding(const Scope& s, int64_t count, int64_t width, const Init& init)
    : weight(s.parameter("weight", {count, width}, init)) {}

Tensor Embedding::operator()(const Tensor& ids) const {
  return embedding(weight, ids);
}

Tensor Dropout::operator()(const Tensor& x) const {
  return set->training() ? dropout(x, p, set->rng()) : x;
}

}  // namespace crucible::models
