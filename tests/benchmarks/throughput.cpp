// Whole training steps of the reference models, each as a share of the f32 multiply-add peak that
// is measured right beside it.  Prints a table; --trace adds where the time of a step goes.
#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/trace.h"
#include "crucible.h"
#include "tests/benchmarks/peak.h"

namespace crucible::benchmarks {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

Tensor random_images(const Shape& shape) {
  Tensor x = Tensor::empty(shape, DType::f32);
  run(prim::Random{
      .kind = prim::Random::Kind::normal, .a = 0.0, .b = 1.0, .rng = {7, 1, 0}, .y = x});
  return x;
}

Tensor random_labels(const Shape& shape, int64_t classes) {
  Rng rng(7, 2);
  std::vector<int64_t> values(shape.numel());
  for (int64_t& v : values) v = rng.below(classes);
  return Tensor::from(values, shape);
}

/// One model with its batch and optimizer.
struct Case {
  std::string name;
  std::string unit;  // what a step processes
  int64_t per_step;  // of those
  std::unique_ptr<models::Module> model;
  std::unique_ptr<optim::Optimizer> optimizer;
  Tensor x, labels;

  Tensor forward() { return cross_entropy((*model)(x), labels); }
  void step() {
    forward().backward();
    optimizer->step();
    optimizer->zero_grad();
  }
  /// By formula: three times the forward pass.
  double flops() {
    Trace trace;
    NoGrad off;
    forward();
    return 3.0 * trace.matrix_flops();
  }
};

Case image_case(std::string name, std::unique_ptr<models::Module> model, const Shape& shape,
                int64_t classes) {
  auto sgd = std::make_unique<optim::Sgd>(
      model->parameters(), optim::SgdOptions{.lr = 0.01, .momentum = 0.9, .weight_decay = 5e-4});
  const int64_t batch = shape[0];
  return {std::move(name),
          "samples/s",
          batch,
          std::move(model),
          std::move(sgd),
          random_images(shape),
          random_labels({batch}, classes)};
}

Case resnet_case(std::string name, std::string_view arch, models::ResNetConfig::Stem stem,
                 const Shape& shape, int64_t classes) {
  models::ResNetConfig config = models::ResNetConfig::named(arch);
  config.stem = stem;
  config.channels = shape[3];
  config.classes = classes;
  return image_case(std::move(name), std::make_unique<models::ResNet>(config), shape, classes);
}

Case gpt_case() {
  const models::GptConfig config = models::GptConfig::named("gpt-nano");
  auto model = std::make_unique<models::Gpt>(config);
  auto adam = std::make_unique<optim::AdamW>(model->parameters(), optim::AdamWOptions{});
  constexpr int64_t batch = 8;
  const Shape shape{batch, config.context};
  return {"gpt 4x256, context 256, batch 8",
          "tokens/s",
          batch * config.context,
          std::move(model),
          std::move(adam),
          random_labels(shape, config.vocabulary),
          random_labels(shape, config.vocabulary)};
}

struct Entry {
  const char* key;
  std::function<Case()> make;
};

const std::vector<Entry>& entries() {
  using Stem = models::ResNetConfig::Stem;
  static const std::vector<Entry> all = {
      {"resnet18",
       [] {
         return resnet_case("resnet18, 3x32x32, batch 64", "resnet18", Stem::cifar, {64, 32, 32, 3},
                            10);
       }},
      {"resnet50",
       [] {
         return resnet_case("resnet50, 3x224x224, batch 8", "resnet50", Stem::imagenet,
                            {8, 224, 224, 3}, 1000);
       }},
      {"resnet20",
       [] {
         return resnet_case("resnet20, 1x28x28, batch 128", "resnet20", Stem::cifar,
                            {128, 28, 28, 1}, 10);
       }},
      {"mlp1024",
       [] {
         return image_case("mlp 784-512-512-10, batch 1024",
                           std::make_unique<models::Mlp>(std::vector<int64_t>{784, 512, 512, 10}),
                           {1024, 784}, 10);
       }},
      {"mlp64",
       [] {
         return image_case("mlp 784-512-512-10, batch 64",
                           std::make_unique<models::Mlp>(std::vector<int64_t>{784, 512, 512, 10}),
                           {64, 784}, 10);
       }},
      {"gpt", gpt_case}};
  return all;
}

void measure(Case c, bool trace) {
  const double flops = c.flops();
  for (const double end = now() + 1.0; now() < end;) c.step();
  const double probe = now();
  c.step();
  const int steps = std::max(1, static_cast<int>(0.25 / (now() - probe)));
  std::vector<double> seconds, shares;
  for (int window = 0; window < 9; ++window) {
    const double peak_before = peak_flops();
    const double start = now();
    for (int i = 0; i < steps; ++i) c.step();
    const double each = (now() - start) / steps;
    const double peak = 0.5 * (peak_before + peak_flops());
    seconds.push_back(each);
    shares.push_back(flops / each / peak);
  }
  const double each = median(seconds), share = median(shares);
  const auto [low, high] = std::ranges::minmax(seconds);
  fmt::print("{:<34}{:>10.1f} {:<10}{:>9.2f} ms{:>9.1f}{:>9.1f}{:>8.1f}%  {:>4.1f}%\n", c.name,
             static_cast<double>(c.per_step) / each, c.unit, each * 1e3, flops / each / 1e9,
             flops / each / share / 1e9, 100.0 * share, 100.0 * (high - low) / each);
  if (trace) {
    Trace rows;
    for (int i = 0; i < 3; ++i) c.step();
    fmt::print("\n{}\n", rows.table());
  }
  std::fflush(stdout);
}

constexpr const char* usage =
    "Times whole f32 training steps on the CPU against the machine's f32 peak (all measured).\n"
    "usage: throughput [--trace] [case...]\n"
    "cases: resnet18 resnet50 resnet20 mlp1024 mlp64 gpt; all of them by default\n"
    "FLOPs are counted by formula: 3 x the forward pass's products and convolutions.\n";

}  // namespace
}  // namespace crucible::benchmarks

int main(int argc, char** argv) {
  using namespace crucible::benchmarks;
  bool trace = false;
  std::vector<std::string> chosen;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--help") == 0) {
      fmt::print("{}", usage);
      return 0;
    }
    const bool known = std::ranges::any_of(
        entries(), [&](const Entry& e) { return argv[i] == std::string(e.key); });
    if (std::strcmp(argv[i], "--trace") == 0) {
      trace = true;
    } else if (known) {
      chosen.emplace_back(argv[i]);
    } else {
      fmt::print(stderr, "throughput: '{}' is neither a flag nor a case.\n{}", argv[i], usage);
      return 2;
    }
  }
  peak_flops(0.5);
  fmt::print("threads {}, copy bandwidth {:.1f} GB/s\n", omp_get_max_threads(),
             copy_bandwidth() / 1e9);
  fmt::print("{:<34}{:>10} {:<10}{:>9}   {:>9}{:>9}{:>9}  {:>5}\n", "training step, f32", "rate",
             "", "median", "GFLOP/s", "peak", "share", "spread");
  for (const Entry& e : entries()) {
    if (chosen.empty() || std::ranges::count(chosen, e.key)) measure(e.make(), trace);
  }
}
