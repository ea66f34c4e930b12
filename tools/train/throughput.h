/// How fast a run goes: everything counted over exactly the span that it took.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace crucible::train {

/// Seconds since some fixed moment.
using Clock = std::function<double()>;
double steady_seconds();

/// What a step did, over all GPUs.
struct Counted {
  int64_t samples = 0;
  int64_t tokens = 0;  ///< 0 for images.

  friend bool operator==(const Counted&, const Counted&) = default;
};

/// Total work over total time of one span; 0 where no time has passed.
struct Rate {
  Counted counted;
  double seconds = 0.0;

  double samples_per_sec() const { return seconds > 0 ? counted.samples / seconds : 0.0; }
  double tokens_per_sec() const { return seconds > 0 ? counted.tokens / seconds : 0.0; }
};

/// Of step times, in milliseconds.
struct StepTimes {
  int64_t n = 0;
  double mean = 0, p50 = 0, p95 = 0, min = 0, max = 0;
};

/// Splits the time of a run into training, waiting for data, evaluation and checkpoints, and
/// divides what was trained on by the training time (waiting for data included).
class Throughput {
 public:
  enum class Activity : uint8_t { train, evaluate, checkpoint };

  /// The span begins now.
  explicit Throughput(Clock clock = steady_seconds);

  /// A whole update is done; `counted` is all of its micro-batches.
  void step_done(const Counted& counted);
  /// The time from here on is spent on something else.
  void begin(Activity activity);

  /// Training so far.
  Rate total() const;
  /// Training since the last call of `lap()`, which begins a new lap.
  Rate lap();
  double seconds(Activity activity) const;
  /// Seconds in which training waited for data, noted by note_data_wait().
  double data_seconds() const { return data_seconds_; }
  void note_data_wait(double seconds) { data_seconds_ += seconds; }
  StepTimes step_times() const;
  double now() const { return clock_(); }

 private:
  void settle();

  Clock clock_;
  Activity activity_ = Activity::train;
  double since_;
  double spent_[3] = {};
  double data_seconds_ = 0;
  Rate total_, lap_begin_;
  double last_step_ = 0;  ///< Training seconds at the end of the last step.
  std::vector<float> step_ms_;
};

/// While alive, time counts for `activity`; then for training again.
class Timed {
 public:
  Timed(Throughput& throughput, Throughput::Activity activity) : throughput_(throughput) {
    throughput_.begin(activity);
  }
  ~Timed() { throughput_.begin(Throughput::Activity::train); }
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

 private:
  Throughput& throughput_;
};

}  // namespace crucible::train
