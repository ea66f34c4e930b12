#include "tools/train/throughput.h"

#include <gtest/gtest.h>

namespace crucible::train {
namespace {

/// A clock that stands still until it is moved.
struct FakeClock {
  double seconds = 100.0;
  Clock clock() {
    return [this] { return seconds; };
  }
};

TEST(Throughput, CountsAllMicroBatchesOfAllRanksOverTheWholeStep) {
  FakeClock time;
  Throughput throughput(time.clock());
  for (int step = 0; step < 3; ++step) {
    Counted counted;
    for (int micro = 0; micro < 4; ++micro) {  // batch 8, 2 ranks, 128 tokens, 0.5 s
      counted.samples += 8 * 2;
      counted.tokens += 8 * 2 * 128;
      time.seconds += 0.5;
    }
    EXPECT_EQ(counted.samples, 64);
    throughput.step_done(counted);
  }
  const Rate rate = throughput.total();
  EXPECT_DOUBLE_EQ(rate.samples_per_sec(), 32.0);
  EXPECT_DOUBLE_EQ(rate.tokens_per_sec(), 4096.0);
  EXPECT_DOUBLE_EQ(rate.seconds, 6.0);
}

TEST(Throughput, ShortLastBatchCountsWhatItHolds) {
  FakeClock time;
  Throughput throughput(time.clock());
  time.seconds += 1;
  throughput.step_done({.samples = 8});
  time.seconds += 1;
  throughput.step_done({.samples = 3});
  EXPECT_DOUBLE_EQ(throughput.total().samples_per_sec(), 5.5);
}

TEST(Throughput, RateIsTotalOverTotalNotTheMeanOfRates) {
  FakeClock time;
  Throughput throughput(time.clock());
  time.seconds += 1;
  throughput.step_done({.samples = 10});
  time.seconds += 9;
  throughput.step_done({.samples = 10});
  EXPECT_DOUBLE_EQ(throughput.total().samples_per_sec(), 2.0);
}

TEST(Throughput, EvaluationAndCheckpointsAreReportedApart) {
  FakeClock time;
  Throughput throughput(time.clock());
  time.seconds += 2;
  throughput.step_done({.samples = 10});
  {
    const Timed timed(throughput, Throughput::Activity::evaluate);
    time.seconds += 30;
  }
  {
    const Timed timed(throughput, Throughput::Activity::checkpoint);
    time.seconds += 7;
  }
  time.seconds += 2;
  throughput.step_done({.samples = 10});
  EXPECT_DOUBLE_EQ(throughput.total().samples_per_sec(), 5.0);
  EXPECT_DOUBLE_EQ(throughput.seconds(Throughput::Activity::evaluate), 30.0);
  EXPECT_DOUBLE_EQ(throughput.seconds(Throughput::Activity::checkpoint), 7.0);
  EXPECT_DOUBLE_EQ(throughput.step_times().max, 2000.0);
}

TEST(Throughput, LapCoversTheStepsSinceTheLastLap) {
  FakeClock time;
  Throughput throughput(time.clock());
  time.seconds += 1;
  throughput.step_done({.samples = 10});
  EXPECT_DOUBLE_EQ(throughput.lap().samples_per_sec(), 10.0);
  time.seconds += 2;
  throughput.step_done({.samples = 10});
  EXPECT_DOUBLE_EQ(throughput.lap().samples_per_sec(), 5.0);
  EXPECT_DOUBLE_EQ(throughput.lap().samples_per_sec(), 0.0);
}

TEST(Throughput, StepTimesHaveQuantiles) {
  FakeClock time;
  Throughput throughput(time.clock());
  for (int i = 1; i <= 101; ++i) {
    time.seconds += i * 1e-3;
    throughput.step_done({.samples = 1});
  }
  const StepTimes t = throughput.step_times();
  EXPECT_EQ(t.n, 101);
  EXPECT_NEAR(t.p50, 51, 1e-2);
  EXPECT_NEAR(t.p95, 96, 1e-2);
  EXPECT_NEAR(t.mean, 51, 1e-2);
  EXPECT_NEAR(t.min, 1, 1e-2);
  EXPECT_NEAR(t.max, 101, 1e-2);
}

}  // namespace
}  // namespace crucible::train
