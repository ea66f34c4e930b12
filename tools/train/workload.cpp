#include "tools/train/workload.h"

#include <omp.h>

#include <cstdio>

#include "core/backend.h"
#include "core/check.h"
#include "models/mlp.h"
#include "models/resnet.h"
#include "models/weights.h"
#include "optim/adamw.h"
#include "optim/sgd.h"

namespace crucible::train {
namespace {

Device chosen_device(const Options& o) {
  if (o.gpu) {
    check(o.gpu->find(',') == std::string::npos,
          "train: --gpu {}: several GPUs in one run are not available yet; name one.", *o.gpu);
    check(o.gpu->find_first_not_of("0123456789") == std::string::npos && o.gpu->size() <= 4,
          "train: --gpu: '{}' is not a number; give one as in --gpu 0.", *o.gpu);
    return Device::parse("cuda:" + *o.gpu);
  }
  return o.device ? Device::parse(*o.device) : Device::best();
}

/// Masks that old GPT-2 files carry, and the output layer, which is the embedding.
bool needless_gpt_tensor(std::string_view name) {
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") ||
         name == "lm_head.weight";
}

}  // namespace

Device prepare_device(const Options& o) {
  const Device device = chosen_device(o);
  Backend& backend = crucible::backend(device);
  const std::string precision = o.precision.value_or("fp32");
  check(precision != "tf32",
        "train: --precision tf32 is not available on {} yet; use fp32, bf16 or fp16.",
        to_string(device));
  if (o.threads) omp_set_num_threads(static_cast<int>(*o.threads));
  if (o.mem_limit) backend.allocator().set_limit(*o.mem_limit);
  return device;
}

std::unique_ptr<models::Module> make_model(const Settings& s, const DataSource& data,
                                           Device device) {
  const models::ModelOptions options{.device = device, .seed = s.seed};
  const data::SampleSpec sample = data.train->sample();
  if (is_gpt(s.model)) return std::make_unique<models::Gpt>(s.gpt, options);
  if (is_mlp(s.model)) {
    std::vector<int64_t> sizes{sample.input.numel()};
    sizes.insert(sizes.end(), s.hidden.begin(), s.hidden.end());
    sizes.push_back(data.train->classes());
    auto model = std::make_unique<models::Mlp>(sizes, options);
    model->parameters().pack();
    return model;
  }
  models::ResNetConfig config = models::ResNetConfig::named(s.model);
  config.channels = sample.input[2];
  config.classes = data.train->classes();
  return std::make_unique<models::ResNet>(config, options);
}

std::unique_ptr<optim::Optimizer> make_optimizer(const Settings& s, ParameterSet& parameters) {
  if (s.opt == "sgd") {
    return std::make_unique<optim::Sgd>(parameters,
                                        optim::SgdOptions{.lr = s.schedule.lr,
                                                          .momentum = s.momentum,
                                                          .weight_decay = s.weight_decay,
                                                          .nesterov = s.nesterov});
  }
  return std::make_unique<optim::AdamW>(
      parameters,
      optim::AdamWOptions{
          .lr = s.schedule.lr, .beta1 = s.beta1, .beta2 = s.beta2, .weight_decay = s.weight_decay});
}

data::Loader make_train_loader(const Settings& s, const DataSource& data,
                               std::shared_ptr<std::FILE> log_ids) {
  data::LoaderOptions options{
      .batch_size = s.batch_size, .seed = s.seed, .workers = s.workers, .skip_bad = s.skip_bad};
  if (log_ids) {
    options.on_batch = [log_ids](int64_t epoch, int64_t batch, std::span<const int64_t> samples) {
      std::string line = fmt::format("{} {}", epoch, batch);
      for (const int64_t sample : samples) line += fmt::format(" {}", sample);
      std::fprintf(log_ids.get(), "%s\n", line.c_str());
      std::fflush(log_ids.get());
    };
  }
  return data::Loader(data.train, std::move(options));
}

data::Loader make_test_loader(const Settings& s, const DataSource& data) {
  return data::Loader(data.test, {.batch_size = s.batch_size,
                                  .seed = s.seed,
                                  .shuffle = false,
                                  .workers = s.workers,
                                  .skip_bad = s.skip_bad});
}

std::vector<std::string> load_weights_file(const std::string& path, bool partial,
                                           models::Module& model) {
  const models::SafetensorsFile file(path);
  models::LoadOptions options{.partial = partial, .convert_dtype = true};
  if (dynamic_cast<models::Gpt*>(&model)) {
    options.may_skip = [](std::string_view name) { return needless_gpt_tensor(name); };
    if (file.find("transformer.wte.weight")) options.file_prefix = "transformer.";
  } else {
    options.may_skip = [](std::string_view name) { return name.ends_with(".num_batches_tracked"); };
  }
  const std::vector<NamedTensor> targets = model.parameters().state();
  return models::load_tensors(file, targets, options).untouched;
}

double weight_decay_of(const optim::Optimizer& optimizer) {
  if (const auto* sgd = dynamic_cast<const optim::Sgd*>(&optimizer)) {
    return sgd->options().weight_decay;
  }
  return dynamic_cast<const optim::AdamW&>(optimizer).options().weight_decay;
}

std::string parameter_table(const ParameterSet& parameters, const optim::Optimizer& optimizer) {
  const double decay = weight_decay_of(optimizer);
  std::string table =
      fmt::format("{:<40} {:>20} {:>12} {:>12}\n", "parameter", "shape", "numbers", "weight decay");
  for (const Parameter& p : parameters.parameters()) {
    table += fmt::format("{:<40} {:>20} {:>12} {:>12g}\n", p.name, to_string(p.tensor.shape()),
                         p.tensor.numel(), p.decay ? decay : 0.0);
  }
  return table;
}

int cpu_threads() {
  return omp_get_max_threads();
}

}  // namespace crucible::train
