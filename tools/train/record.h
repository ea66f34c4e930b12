/// The run in words that other programs read: settings, metrics lines, the result record.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "data/loader.h"
#include "models/module.h"
#include "optim/optimizer.h"
#include "tools/train/evaluate.h"
#include "tools/train/settings.h"
#include "tools/train/throughput.h"
#include "tools/train/trainer.h"

namespace crucible::train {

/// The objects that a run uses.
struct RunObjects {
  const Settings& settings;
  const DataSource& data;
  const models::Module& model;
  const optim::Optimizer& optimizer;
  const Trainer& trainer;
  const data::Loader& loader;
  const std::string& run;  ///< The run folder.
};

/// settings.json: what is in force, read back from the objects, not from the flags.
std::string effective_settings(const RunObjects& run);

/// What a run came to.
struct Outcome {
  std::string status = "ok";  ///< ok, oom or error.
  std::string error;
  std::string stopped_by;  ///< "steps", "epochs", "target-accuracy", "stop-after", "SIGINT", ...
  std::optional<Evaluation> evaluation;  ///< The last one.
  std::optional<double> best_accuracy;
  std::vector<double> first_losses;  ///< Of the first updates of this process.
  int64_t first_step = 0;            ///< The update that the first of them belongs to.
  std::optional<double> last_loss;
  std::vector<std::string> fresh_parameters;  ///< Not found by --load --partial.
  std::string resumed_from;
};

/// summary.json.
std::string summary_record(const RunObjects& run, const Outcome& outcome,
                           const Throughput& throughput, const std::string& command);

/// Lines of metrics.jsonl.  `scaler` is null unless the loss is scaled.
std::string step_record(const Update& update, int64_t step, int64_t epoch, const Rate& lap,
                        double data_ms, const optim::GradScaler* scaler);
std::string evaluation_record(const Evaluation& evaluation, int64_t step, int64_t epoch,
                              double seconds);
std::string checkpoint_record(const std::string& folder, int64_t step, double seconds);
std::string epoch_record(int64_t epoch, int64_t step, double mean_loss,
                         std::optional<double> accuracy);

}  // namespace crucible::train
