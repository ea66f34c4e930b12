#include "tools/train/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "tools/train/signals.h"

namespace crucible::train {
namespace {

std::string format_rate(double rate, std::string_view unit) {
  return rate >= 100 ? fmt::format("{:.0f} {}/s", rate, unit)
                     : fmt::format("{:.3g} {}/s", rate, unit);
}

/// The numbers in the order of their worth.
std::vector<std::string> parts_of(const ProgressState& s) {
  std::vector<std::string> parts;
  parts.push_back(s.epochs ? fmt::format("epoch {}/{}", s.epoch, *s.epochs)
                           : fmt::format("epoch {}", s.epoch));
  parts.push_back(fmt::format("step {}/{}", s.step, s.total_steps));
  parts.push_back(fmt::format("loss {:.4f}", s.loss));
  if (s.accuracy) parts.push_back(fmt::format("acc {:.1f} %", *s.accuracy * 100));
  parts.push_back(format_rate(s.rate, s.unit));
  if (s.eta_seconds) parts.push_back("ETA " + format_duration(*s.eta_seconds));
  parts.push_back(format_bytes(s.memory_bytes));
  return parts;
}

std::string join(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : "  ") + part;
  return text;
}

}  // namespace

std::string format_bytes(int64_t bytes) {
  const double b = static_cast<double>(bytes);
  if (b >= 0x1p30) return fmt::format("{:.2f} GiB", b * 0x1p-30);
  if (b >= 0x1p20) return fmt::format("{:.0f} MiB", b * 0x1p-20);
  return fmt::format("{:.0f} KiB", b * 0x1p-10);
}

std::string format_duration(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "?";
  const auto s = static_cast<int64_t>(std::min(seconds + 0.5, 1e15));
  if (s < 60) return fmt::format("{}s", s);
  if (s < 3600) return fmt::format("{}m{:02}s", s / 60, s % 60);
  if (s < 86400) return fmt::format("{}h{:02}m", s / 3600, s / 60 % 60);
  return fmt::format("{}d{:02}h", s / 86400, s / 3600 % 24);
}

std::string render_bar(const ProgressState& state, int columns) {
  std::vector<std::string> parts = parts_of(state);
  const auto room = static_cast<size_t>(std::max(columns, 0));
  while (parts.size() > 1 && join(parts).size() > room) parts.pop_back();
  std::string text = join(parts);
  if (text.size() > room) return text.substr(0, room);
  const size_t left = room - text.size();
  if (left < 12) return text;
  const size_t width = std::min<size_t>(left - 3, 30);  // brackets and a space
  const double share = std::clamp(static_cast<double>(state.step) /
                                      static_cast<double>(std::max<int64_t>(state.total_steps, 1)),
                                  0.0, 1.0);
  const auto full = static_cast<size_t>(share * static_cast<double>(width));
  return fmt::format("[{:#<{}}{:.<{}}] {}", "", full, "", width - full, text);
}

std::string render_line(const ProgressState& state) {
  return join(parts_of(state));
}

Progress::Mode Progress::mode_for(std::FILE* out, bool quiet) {
  if (quiet) return Mode::quiet;
  const char* term = std::getenv("TERM");
  const bool can_move = term && std::string_view(term) != "dumb" && *term;
  return isatty(fileno(out)) && can_move ? Mode::bar : Mode::lines;
}

Progress::~Progress() {
  clear();
}

int Progress::columns() const {
  winsize size{};
  if (ioctl(fileno(out_), TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

void Progress::say(std::string_view text) {
  if (mode_ == Mode::quiet) return;
  const bool redraw = drawn_;
  if (redraw) std::fputs("\r\x1b[K", out_);
  std::fwrite(text.data(), 1, text.size(), out_);
  std::fputc('\n', out_);
  if (redraw) std::fputs(bar_.c_str(), out_);
  std::fflush(out_);
}

void Progress::show(const ProgressState& state, double now) {
  if (mode_ != Mode::bar || now - last_drawn_ < 0.1) return;
  last_drawn_ = now;
  if (!drawn_) {
    StopSignals::set_cursor_hidden(true);
    std::fputs("\x1b[?25l", out_);
    drawn_ = true;
  }
  bar_ = render_bar(state, columns() - 1);  // a full line would wrap on some terminals
  std::fputs("\r", out_);
  std::fputs(bar_.c_str(), out_);
  std::fputs("\x1b[K", out_);
  std::fflush(out_);
}

void Progress::clear() {
  if (!drawn_) return;
  std::fputs("\r\x1b[K\x1b[?25h", out_);
  std::fflush(out_);
  StopSignals::set_cursor_hidden(false);
  drawn_ = false;
}

}  // namespace crucible::train
