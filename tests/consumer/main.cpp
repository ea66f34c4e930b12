// Trains a multilayer perceptron on made-up images and checks that it learned.
#include <crucible/crucible.h>

#include <cstdio>

#include "core/tensor.h"          // ours
#include "crucible/core/shape.h"  // ours

using namespace crucible;

int main() {
  const Device device = Device::cpu();
  const auto images = std::make_shared<data::SyntheticImages>(
      data::SyntheticImageOptions{.count = 2048, .height = 8, .width = 8, .channels = 1});
  data::Loader train(images, {.batch_size = 128, .seed = 1});
  models::Mlp model({64, 32, 10}, {.device = device, .seed = 1});
  optim::AdamW adam(model.parameters(), {.lr = 3e-3, .weight_decay = 0.01});

  float loss_first = 0, loss_last = 0;
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (const auto& [inputs, labels] : train.epoch(epoch, device)) {
      const Tensor loss = cross_entropy(model.forward(inputs), labels);
      loss.backward();
      adam.step();
      adam.zero_grad();
      loss_last = loss.item<float>();
      if (loss_first == 0) loss_first = loss_last;
    }
    std::printf("epoch %d  loss %.4f\n", epoch, loss_last);
  }
  const bool ours = consumer::rank_of({CONSUMER_SHAPE}) == 4;
  return ours && loss_last < 0.5F * loss_first ? 0 : 1;
}
