/// Residual networks for images.
#pragma once

#include <string_view>
#include <variant>
#include <vector>

#include "models/layers.h"
#include "models/module.h"

namespace crucible::models {

struct ResNetConfig {
  enum class Stem : uint8_t {
    imagenet,  ///< 7x7 convolution of stride 2, then 3x3 max pooling of stride 2.
    cifar,     ///< 3x3 convolution.
  };
  std::vector<int64_t> blocks;  ///< Per stage.
  std::vector<int64_t> widths;  ///< Per stage; a bottleneck's output is four times as wide.
  bool bottleneck = false;
  Stem stem = Stem::imagenet;
  int64_t channels = 3;  ///< Of the images.
  int64_t classes = 10;

  /// resnet18, 34, 50, 101, 152 (ImageNet form) and resnet20, 32, 44, 56 (CIFAR form).
  /// Throws    InvalidArgument for another name.
  static ResNetConfig named(std::string_view name);
};

/// 1x1 convolution and norm on the shortcut: "downsample.0", "downsample.1".
struct Downsample {
  Downsample(const Scope& s, int64_t in, int64_t out, int64_t stride);
  Tensor operator()(const Tensor& x) const { return norm(conv(x)); }
  Conv2d conv;
  BatchNorm norm;
};

/// Two 3x3 convolutions and a shortcut.
struct BasicBlock {
  BasicBlock(const Scope& s, int64_t in, int64_t width, int64_t stride);
  Tensor operator()(const Tensor& x) const;
  Conv2d conv1;
  BatchNorm bn1;
  Conv2d conv2;
  BatchNorm bn2;
  std::optional<Downsample> downsample;
};

/// 1x1, 3x3 (with the stride), 1x1 to four times the width, and a shortcut.
struct Bottleneck {
  Bottleneck(const Scope& s, int64_t in, int64_t width, int64_t stride);
  Tensor operator()(const Tensor& x) const;
  Conv2d conv1;
  BatchNorm bn1;
  Conv2d conv2;
  BatchNorm bn2;
  Conv2d conv3;
  BatchNorm bn3;
  std::optional<Downsample> downsample;
};

/// Parameter names equal torchvision's: "conv1.weight", "layer1.0.bn1.running_mean", "fc.bias", …
/// Source    He et al. 2015, arXiv:1512.03385; stride on the 3x3 as in torchvision ("v1.5").
class ResNet final : public Module {
 public:
  /// Throws    InvalidArgument for sizes below 1 or unequal numbers of blocks and widths.
  explicit ResNet(const ResNetConfig& config, const ModelOptions& options = {});
  /// x [N, H, W, channels] -> logits [N, classes].
  Tensor forward(const Tensor& x) override;
  const ResNetConfig& config() const { return config_; }

 private:
  ResNetConfig config_;
  Conv2d conv1_;
  BatchNorm bn1_;
  std::vector<std::variant<BasicBlock, Bottleneck>> blocks_;
  std::optional<Linear> fc_;
};

}  // namespace crucible::models
