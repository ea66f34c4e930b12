/// Checkpoints: all that a training run needs to go on, committed as one.
///
/// A checkpoint is a folder `step-00000123` with
///
///     model.safetensors      weights and buffers, with the names of torchvision and Hugging Face
///     optimizer.safetensors  momenta, second moments, master weights
///     state.json             counters, random numbers, settings; size and CRC-32 of the others
///
/// It is written as `step-00000123.tmp-<pid>` and renamed when all of it is on the disk.  So a
/// folder of that name is whole, and state.json tells if a file was damaged or exchanged later.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/named_tensor.h"
#include "core/rng.h"
#include "models/safetensors.h"

namespace crucible::models {

/// What is not a tensor.  The maps hold what a schedule, a sampler or a loss scaler must remember,
/// by names of the owner's choice ("schedule.applied", "sampler.seed", "scaler.scale").
struct TrainingState {
  int64_t step = 0;            ///< Optimizer steps attempted; names the checkpoint.
  int64_t epoch = 0;           ///< Epochs completed.
  int64_t batch_in_epoch = 0;  ///< Batches of the present epoch already trained on.
  std::map<std::string, int64_t> counters;
  std::map<std::string, double>
      values;  ///< Restored bit for bit, infinities included; any NaN as one.
  std::map<std::string, std::string> texts;
  std::map<std::string, RngState> random;
  std::string settings_hash;  ///< Of the settings that must not change when a run is resumed.
};

struct CheckpointContents {
  TrainingState state;
  std::vector<NamedTensor> model;
  std::vector<NamedTensor> optimizer;
};

/// A checkpoint that was committed.
struct SavedCheckpoint {
  std::filesystem::path folder;
  std::vector<std::string> warnings;  ///< Older ones or temporaries that could not be removed.
};

/// Writes and commits `<root>/step-<state.step>`, replacing a checkpoint of the same step.  Then
/// keeps this one and the `keep_last - 1` before it; later steps, left by a run that was wound
/// back, stay. Temporaries of runs that died are removed first, so one process at a time may save
/// to `root`.
///
/// Memory    one tensor at a time, if it has to be copied from a device or permuted.
/// Throws    InvalidArgument, IoError; whatever was committed before is then as it was.
SavedCheckpoint save_checkpoint(const std::filesystem::path& root,
                                const CheckpointContents& contents, int keep_last = 3);

/// A checkpoint that was found whole.  Read its tensors with `load_tensors`.
struct Checkpoint {
  std::filesystem::path folder;
  TrainingState state;
  SafetensorsFile model;
  SafetensorsFile optimizer;
  std::vector<std::string> warnings;  ///< Newer checkpoints that were passed over, and why.
};

/// Opens one checkpoint and compares its files with the sizes and checksums in state.json.
/// Throws    IoError naming the file that is missing, damaged or of another checkpoint.
Checkpoint open_checkpoint(const std::filesystem::path& folder);

/// Opens the newest checkpoint under `root` that is whole.  Empty if none was ever committed there.
/// Throws    IoError if there are checkpoints but none is whole.
std::optional<Checkpoint> open_newest_checkpoint(const std::filesystem::path& root);

}  // namespace crucible::models
