#include "core/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "core/registry.h"

namespace crucible {

struct Trace::State {
  std::vector<TraceRow> rows;
  RunObserver observer;

  State() : observer([this](const Primitive& p, const RunObserver::Next& next) { run(p, next); }) {}

  void run(const Primitive& primitive, const RunObserver::Next& next) {
    using Clock = std::chrono::steady_clock;
    const Tensor& y =
        std::visit([](const auto& p) -> const Tensor& { return p.output(); }, primitive);
    Backend& device = backend(y.device());
    device.synchronize();
    const auto start = Clock::now();
    next(primitive);
    device.synchronize();
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    rows.push_back(
        {std::string(name_of(primitive)), y.shape(), y.dtype(), cost(primitive), seconds});
  }
};

Trace::Trace() : state_(std::make_unique<State>()) {}
Trace::~Trace() = default;

const std::vector<TraceRow>& Trace::rows() const {
  return state_->rows;
}

double Trace::matrix_flops() const {
  double total = 0.0;
  for (const TraceRow& row : rows()) total += row.cost.matrix ? row.cost.flops : 0.0;
  return total;
}

std::string Trace::table() const {
  struct Sum {
    int64_t calls = 0;
    double seconds = 0.0, flops = 0.0, bytes = 0.0;
  };
  std::map<std::string, Sum> sums;
  double all = 0.0;
  for (const TraceRow& row : rows()) {
    Sum& s = sums[row.name];
    ++s.calls;
    s.seconds += row.seconds;
    s.flops += row.cost.flops;
    s.bytes += static_cast<double>(row.cost.read_bytes + row.cost.written_bytes);
    all += row.seconds;
  }
  std::vector<std::pair<std::string, Sum>> order(sums.begin(), sums.end());
  std::ranges::sort(
      order, [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
  std::string text = fmt::format("{:<28}{:>7}{:>11}{:>8}{:>10}{:>9}\n", "primitive", "calls", "ms",
                                 "share", "GFLOP/s", "GB/s");
  for (const auto& [name, s] : order) {
    text += fmt::format("{:<28}{:>7}{:>11.3f}{:>7.1f}%{:>10.1f}{:>9.1f}\n", name, s.calls,
                        s.seconds * 1e3, 100.0 * s.seconds / std::max(all, 1e-12),
                        s.flops / std::max(s.seconds, 1e-12) / 1e9,
                        s.bytes / std::max(s.seconds, 1e-12) / 1e9);
  }
  return text;
}

}  // namespace crucible
