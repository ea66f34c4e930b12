/// A multilayer perceptron.
#pragma once

#include <vector>

#include "models/layers.h"
#include "models/module.h"

namespace crucible::models {

/// Linear layers with ReLU between them.  Parameters "layers.0.weight", "layers.0.bias", …
class Mlp final : public Module {
 public:
  /// `sizes`: input, hidden ones, output.
  /// Throws    InvalidArgument for fewer than two sizes or a size below 1.
  explicit Mlp(const std::vector<int64_t>& sizes, const ModelOptions& options = {});
  /// x [N, ...], flattened to [N, sizes.front()] -> logits [N, sizes.back()].
  Tensor forward(const Tensor& x) override;

 private:
  std::vector<Linear> layers_;
};

}  // namespace crucible::models
