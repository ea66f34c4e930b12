/// The objects of a run, made from its settings.
#pragma once

#include <memory>

#include "core/device.h"
#include "data/loader.h"
#include "models/module.h"
#include "optim/optimizer.h"
#include "tools/train/settings.h"

namespace crucible::train {

/// The device that the flags name: GPU 0 if there is one, else the CPU, if they name none.  Applies
/// --threads and --mem-limit.
/// Throws    DeviceError if it is not there, InvalidArgument if it lacks --precision.
Device prepare_device(const Options& options);

std::unique_ptr<models::Module> make_model(const Settings& settings, const DataSource& data,
                                           Device device);
std::unique_ptr<optim::Optimizer> make_optimizer(const Settings& settings,
                                                 ParameterSet& parameters);
/// `log_ids`: a file to append to, or null.
data::Loader make_train_loader(const Settings& settings, const DataSource& data,
                               std::shared_ptr<std::FILE> log_ids);
/// In the order of the data.
data::Loader make_test_loader(const Settings& settings, const DataSource& data);

/// Loads --load, names of torchvision or Hugging Face; a "transformer." before them is taken off.
/// Returns   with `partial`, the names of the tensors that keep their first values.
std::vector<std::string> load_weights_file(const std::string& path, bool partial,
                                           models::Module& model);

/// The table of --dump-groups: each parameter once, with the weight decay it gets.
std::string parameter_table(const ParameterSet& parameters, const optim::Optimizer& optimizer);
/// What an optimizer was made with.
double weight_decay_of(const optim::Optimizer& optimizer);

/// Threads that CPU work may use.
int cpu_threads();

}  // namespace crucible::train
