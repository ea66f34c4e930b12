#include "models/resnet.h"

#include <map>
#include <string>

#include "core/check.h"
#include "ops/pool.h"

namespace crucible::models {
namespace {

constexpr int64_t expansion = 4;  // of a bottleneck

ResNetConfig checked(const ResNetConfig& config) {
  check(!config.blocks.empty() && config.blocks.size() == config.widths.size(),
        "resnet: {} stages of blocks and {} widths are given; they must be equal and not 0.",
        config.blocks.size(), config.widths.size());
  for (size_t i = 0; i < config.blocks.size(); ++i) {
    check(config.blocks[i] >= 1 && config.widths[i] >= 1,
          "resnet: stage {} has {} blocks of width {}; both must be at least 1.", i,
          config.blocks[i], config.widths[i]);
  }
  check(config.channels >= 1 && config.classes >= 1,
        "resnet: {} channels and {} classes are given; both must be at least 1.", config.channels,
        config.classes);
  return config;
}

Conv2dOptions stem_options(const ResNetConfig& config) {
  return config.stem == ResNetConfig::Stem::imagenet
             ? Conv2dOptions{.kernel = 7, .stride = 2, .padding = 3, .bias = false}
             : Conv2dOptions{.kernel = 3, .padding = 1, .bias = false};
}

}  // namespace

ResNetConfig ResNetConfig::named(std::string_view name) {
  using Blocks = std::vector<int64_t>;
  static const std::map<std::string_view, Blocks> imagenet = {{"resnet18", {2, 2, 2, 2}},
                                                              {"resnet34", {3, 4, 6, 3}},
                                                              {"resnet50", {3, 4, 6, 3}},
                                                              {"resnet101", {3, 4, 23, 3}},
                                                              {"resnet152", {3, 8, 36, 3}}};
  static const std::map<std::string_view, Blocks> cifar = {{"resnet20", {3, 3, 3}},
                                                           {"resnet32", {5, 5, 5}},
                                                           {"resnet44", {7, 7, 7}},
                                                           {"resnet56", {9, 9, 9}}};
  if (const auto it = imagenet.find(name); it != imagenet.end()) {
    const bool bottleneck = name != "resnet18" && name != "resnet34";
    return {.blocks = it->second, .widths = {64, 128, 256, 512}, .bottleneck = bottleneck};
  }
  const auto it = cifar.find(name);
  check(it != cifar.end(),
        "resnet: '{}' is not known; choose resnet18, 34, 50, 101, 152 or resnet20, 32, 44, 56.",
        name);
  return {.blocks = it->second, .widths = {16, 32, 64}, .stem = Stem::cifar};
}

Downsample::Downsample(const Scope& s, int64_t in, int64_t out, int64_t stride)
    : conv(s / "0", in, out, {.stride = stride, .bias = false}), norm(s / "1", out) {}

BasicBlock::BasicBlock(const Scope& s, int64_t in, int64_t width, int64_t stride)
    : conv1(s / "conv1", in, width, {.kernel = 3, .stride = stride, .padding = 1, .bias = false}),
      bn1(s / "bn1", width),
      conv2(s / "conv2", width, width, {.kernel = 3, .padding = 1, .bias = false}),
      bn2(s / "bn2", width) {
  if (stride != 1 || in != width) downsample.emplace(s / "downsample", in, width, stride);
}

Tensor BasicBlock::operator()(const Tensor& x) const {
  const Tensor y = bn1.relu(conv1(x));
  return bn2.add_relu(conv2(y), downsample ? (*downsample)(x) : x);
}

Bottleneck::Bottleneck(const Scope& s, int64_t in, int64_t width, int64_t stride)
    : conv1(s / "conv1", in, width, {.bias = false}),
      bn1(s / "bn1", width),
      conv2(s / "conv2", width, width,
            {.kernel = 3, .stride = stride, .padding = 1, .bias = false}),
      bn2(s / "bn2", width),
      conv3(s / "conv3", width, width * expansion, {.bias = false}),
      bn3(s / "bn3", width * expansion) {
  const int64_t out = width * expansion;
  if (stride != 1 || in != out) downsample.emplace(s / "downsample", in, out, stride);
}

Tensor Bottleneck::operator()(const Tensor& x) const {
  const Tensor y = bn2.relu(conv2(bn1.relu(conv1(x))));
  return bn3.add_relu(conv3(y), downsample ? (*downsample)(x) : x);
}

ResNet::ResNet(const ResNetConfig& config, const ModelOptions& options)
    : Module(options),
      config_(checked(config)),
      conv1_(root() / "conv1", config_.channels, config_.widths[0], stem_options(config_)),
      bn1_(root() / "bn1", config_.widths[0]) {
  int64_t in = config_.widths[0];
  for (size_t stage = 0; stage < config_.blocks.size(); ++stage) {
    const Scope layer = root() / ("layer" + std::to_string(stage + 1));
    const int64_t width = config_.widths[stage];
    for (int64_t i = 0; i < config_.blocks[stage]; ++i) {
      const int64_t stride = stage > 0 && i == 0 ? 2 : 1;
      if (config_.bottleneck) {
        blocks_.emplace_back(std::in_place_type<Bottleneck>, layer / i, in, width, stride);
      } else {
        blocks_.emplace_back(std::in_place_type<BasicBlock>, layer / i, in, width, stride);
      }
      in = config_.bottleneck ? width * expansion : width;
    }
  }
  fc_.emplace(root() / "fc", in, config_.classes);
  parameters().pack();
}

Tensor ResNet::forward(const Tensor& x) {
  Tensor h = bn1_.relu(conv1_(x));
  if (config_.stem == ResNetConfig::Stem::imagenet) {
    h = max_pool2d(h, {.kernel = 3, .stride = 2, .padding = 1});
  }
  for (const auto& block : blocks_) {
    h = std::visit([&](const auto& b) { return b(h); }, block);
  }
  return (*fc_)(global_avg_pool2d(h));
}

}  // namespace crucible::models
