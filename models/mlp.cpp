#include "models/mlp.h"

#include "core/check.h"
#include "ops/view.h"

namespace crucible::models {

Mlp::Mlp(const std::vector<int64_t>& sizes, const ModelOptions& options) : Module(options) {
  check(sizes.size() >= 2, "mlp: {} sizes are given; at least input and output are needed.",
        sizes.size());
  for (const int64_t size : sizes) {
    check(size >= 1, "mlp: layer size {} is not positive.", size);
  }
  const Scope layers = root() / "layers";
  for (size_t i = 0; i + 1 < sizes.size(); ++i) {
    layers_.emplace_back(layers / static_cast<int64_t>(i), sizes[i], sizes[i + 1]);
  }
  parameters().pack();
}

Tensor Mlp::forward(const Tensor& x) {
  Tensor h = x.rank() == 2 ? x : reshape(x, {x.size(0), -1});
  for (size_t i = 0; i < layers_.size(); ++i) {
    h = layers_[i](h, i + 1 < layers_.size() ? Activation::relu : Activation::none);
  }
  return h;
}

}  // namespace crucible::models
