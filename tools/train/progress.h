/// What the user sees while a run goes on: a bar in place on a terminal, plain lines elsewhere.
#pragma once

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

namespace crucible::train {

/// "1.5 GiB", "312 MiB": binary units, labelled.
std::string format_bytes(int64_t bytes);
/// "42s", "3m05s", "2h10m", "3d04h".
std::string format_duration(double seconds);

struct ProgressState {
  int64_t epoch = 0;              ///< The present one, counted from 1.
  std::optional<int64_t> epochs;  ///< Unknown if the run is measured in steps.
  int64_t step = 0, total_steps = 1;
  double loss = 0.0;
  std::optional<double> accuracy;     ///< Of the training batches of late.
  double rate = 0.0;                  ///< Per second, over all GPUs.
  std::string_view unit = "samples";  ///< Or "tokens".
  int64_t memory_bytes = 0;           ///< Peak of live memory on the device.
  std::optional<double> eta_seconds;
};

/// One line of at most `columns` characters; the bar takes what the numbers leave, and the last
/// numbers go first if there is no room.
std::string render_bar(const ProgressState& state, int columns);
/// One line for a log.
std::string render_line(const ProgressState& state);

class Progress {
 public:
  enum class Mode : uint8_t { quiet, lines, bar };
  /// bar if `out` is a terminal that can move its cursor, else lines.
  static Mode mode_for(std::FILE* out, bool quiet);

  Progress(Mode mode, std::FILE* out) : mode_(mode), out_(out) {}
  /// Leaves the terminal as it was.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  Mode mode() const { return mode_; }
  /// A line that stays, above the bar.
  void say(std::string_view text);
  /// Redraws the bar if the last time was more than a tenth of a second ago.
  void show(const ProgressState& state, double now);
  /// Takes the bar away.
  void clear();

 private:
  int columns() const;

  Mode mode_;
  std::FILE* out_;
  bool drawn_ = false;
  double last_drawn_ = -1e9;
  std::string bar_;
};

}  // namespace crucible::train
