/// Ctrl-C and its relatives: the first asks the run to save and stop, the second ends it at once.
#pragma once

#include <string>

namespace crucible::train {

/// While alive, SIGINT, SIGTERM, SIGHUP and SIGPIPE (the reader of the output is gone) are noted
/// instead of ending the process.  One at a time.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// Whether one has come.
  static bool requested();
  /// "SIGINT", ...; empty if none has come.
  static std::string name();
  /// Whether the terminal's cursor must be shown again if a second signal ends the process.
  static void set_cursor_hidden(bool hidden);
};

}  // namespace crucible::train
