/// Going on where a run stopped, bit for bit.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "data/loader.h"
#include "models/checkpoint.h"
#include "models/module.h"
#include "optim/grad_scaler.h"
#include "optim/optimizer.h"
#include "tools/train/options.h"

namespace crucible::train {

/// Sums over the present epoch.
struct EpochTotals {
  double loss_sum = 0.0;
  int64_t targets = 0;
  int64_t correct = 0;

  friend bool operator==(const EpochTotals&, const EpochTotals&) = default;
};

/// Where a run stands, between two updates.
struct Position {
  int64_t epoch = 0;       ///< Counted from 0.
  int64_t next_batch = 0;  ///< Of that epoch; all of them if only its end is left to do.
  EpochTotals totals;

  friend bool operator==(const Position&, const Position&) = default;
};

/// What --resume found.
struct ResumePoint {
  std::filesystem::path run;                     ///< The run folder it belongs to.
  std::optional<models::Checkpoint> checkpoint;  ///< Empty: --resume auto found none.
};

/// Looks for what --resume names.
/// Throws    IoError if a path is named and there is no checkpoint, or none is whole.
ResumePoint find_checkpoint(const Options& options);

/// Everything that has to be saved.  `scaler` may be null; `settings` is the text of settings.json.
models::CheckpointContents capture(const models::Module& model, const optim::Optimizer& optimizer,
                                   const optim::GradScaler* scaler, const data::Loader& loader,
                                   const Position& position, const std::string& settings,
                                   int64_t metrics_bytes);

struct Restored {
  Position position;
  int64_t metrics_bytes = 0;
  std::vector<std::string> changed;  ///< Settings that differ from the saved ones, in words.
};

/// Puts a checkpoint's contents into the objects of a run.
/// Throws    InvalidArgument naming the setting that may not differ and does; IoError.
Restored restore(const models::Checkpoint& checkpoint, const std::string& settings,
                 models::Module& model, optim::Optimizer& optimizer, optim::GradScaler* scaler,
                 const data::Loader& loader);

}  // namespace crucible::train
