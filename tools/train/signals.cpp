#include "tools/train/signals.h"

#include <signal.h>
#include <unistd.h>

namespace crucible::train {
namespace {

constexpr int handled[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
constexpr int count = 4;
struct sigaction previous[count];

volatile sig_atomic_t received = 0;
volatile sig_atomic_t cursor_hidden = 0;

// Only async-signal-safe calls are allowed here.
void on_signal(int signal) {
  if (received && signal == SIGPIPE) return;  // each further line raises it again
  if (received) {
    constexpr char show_cursor[] = "\x1b[?25h\n";
    if (cursor_hidden) {
      [[maybe_unused]] const auto n = write(STDOUT_FILENO, show_cursor, sizeof show_cursor - 1);
    }
    _exit(128 + signal);
  }
  received = signal;
}

}  // namespace

StopSignals::StopSignals() {
  received = 0;
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (int i = 0; i < count; ++i) {
    sigaction(handled[i], nullptr, &previous[i]);
    // A run started with nohup stays deaf to a hang-up.
    if (previous[i].sa_handler != SIG_IGN) sigaction(handled[i], &action, nullptr);
  }
}

StopSignals::~StopSignals() {
  for (int i = 0; i < count; ++i) sigaction(handled[i], &previous[i], nullptr);
}

bool StopSignals::requested() {
  return received != 0;
}

std::string StopSignals::name() {
  switch (received) {
    case SIGINT:
      return "SIGINT";
    case SIGTERM:
      return "SIGTERM";
    case SIGHUP:
      return "SIGHUP";
    case SIGPIPE:
      return "SIGPIPE";
  }
  return "";
}

void StopSignals::set_cursor_hidden(bool hidden) {
  cursor_hidden = hidden;
}

}  // namespace crucible::train
