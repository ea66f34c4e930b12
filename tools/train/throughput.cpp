#include "tools/train/throughput.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

namespace crucible::train {

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Throughput::Throughput(Clock clock) : clock_(std::move(clock)), since_(clock_()) {}

void Throughput::settle() {
  const double now = clock_();
  spent_[static_cast<int>(activity_)] += now - since_;
  since_ = now;
}

void Throughput::begin(Activity activity) {
  settle();
  activity_ = activity;
}

void Throughput::step_done(const Counted& counted) {
  settle();
  const double seconds = spent_[static_cast<int>(Activity::train)];
  total_.counted.samples += counted.samples;
  total_.counted.tokens += counted.tokens;
  total_.seconds = seconds;  // up to the last step: both halves of the rate end there
  step_ms_.push_back(static_cast<float>((seconds - last_step_) * 1e3));
  last_step_ = seconds;
}

Rate Throughput::total() const {
  return total_;
}

Rate Throughput::lap() {
  const Rate rate{{total_.counted.samples - lap_begin_.counted.samples,
                   total_.counted.tokens - lap_begin_.counted.tokens},
                  total_.seconds - lap_begin_.seconds};
  lap_begin_ = total_;
  return rate;
}

double Throughput::seconds(Activity activity) const {
  const double running = activity == activity_ ? clock_() - since_ : 0.0;
  return spent_[static_cast<int>(activity)] + running;
}

StepTimes Throughput::step_times() const {
  StepTimes times;
  if (step_ms_.empty()) return times;
  std::vector<float> sorted = step_ms_;
  std::sort(sorted.begin(), sorted.end());
  const auto at = [&](double share) {
    return static_cast<double>(
        sorted[std::llround(share * static_cast<double>(sorted.size() - 1))]);
  };
  times.n = static_cast<int64_t>(sorted.size());
  times.mean = std::accumulate(sorted.begin(), sorted.end(), 0.0) / times.n;
  times.p50 = at(0.5);
  times.p95 = at(0.95);
  times.min = sorted.front();
  times.max = sorted.back();
  return times;
}

}  // namespace crucible::train
