/// A run between its first line and its last: what happens after each update besides learning.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/train/progress.h"
#include "tools/train/record.h"
#include "tools/train/resume.h"
#include "tools/train/run_folder.h"
#include "tools/train/workload.h"

namespace crucible::train {

class Session {
 public:
  /// Makes model, optimizer and loaders, loads weights or the checkpoint, writes settings.json and
  /// says what will be done.
  Session(const Options& options, Device device, DataSource data, RunFolder& folder,
          ResumePoint resume, Progress& progress);

  const data::Loader& loader() const { return loader_; }
  Trainer& trainer() { return trainer_; }
  int64_t epoch() const { return position_.epoch; }
  int64_t next_batch() const { return position_.next_batch; }

  /// A batch is there: the time since the last one was spent waiting for it.
  void batch_arrived();
  /// Updates the weights with what was accumulated, then logs, evaluates and saves as is due.
  void update(int64_t next_batch);
  /// Whether to leave the epoch before its end.
  bool stopping() const;
  /// Whether nothing is left to train.
  bool done() const;
  void end_epoch();
  /// Last evaluation, sample and checkpoint, and the record.
  void finish();
  /// The record of a run that an error ended.  Never throws.
  void record_failure(const std::string& status, const std::string& error);
  bool trained() const { return trainer_.applied() > first_step_; }

 private:
  RunObjects objects() const;
  std::shared_ptr<std::FILE> open_id_log() const;
  void resume_from(const models::Checkpoint& checkpoint);
  void announce() const;
  void note_skip();
  void log_step(const Update& update);
  void evaluate();
  void save();
  void print_sample();
  std::string stop_reason() const;
  ProgressState progress_state(const Update& update) const;

  const Options& options_;
  DataSource data_;
  RunFolder& folder_;
  Progress& progress_;
  std::string run_path_;
  Settings settings_;
  std::unique_ptr<models::Module> model_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  Trainer trainer_;
  data::Loader loader_;
  std::optional<data::Loader> test_loader_;
  std::string settings_text_;

  Throughput throughput_;
  Position position_;
  Outcome outcome_;
  Rate lap_;
  int64_t first_step_ = 0;
  double waiting_since_ = 0, lap_data_seconds_ = 0;
  int64_t evaluated_at_ = -1;
  std::optional<Position> saved_at_;
  bool reached_target_ = false;
};

}  // namespace crucible::train
