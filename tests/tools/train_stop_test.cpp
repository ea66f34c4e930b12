/// Ctrl-C, other signals, and the terminal afterwards.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>

#include "tests/tools/process.h"

namespace crucible::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;
using Arguments = std::vector<std::string>;

// Long enough never to end by itself.
const Arguments endless{
    "--model",      "mlp", "--dataset",       "synthetic", "--synthetic-samples",   "64",
    "--image-size", "8",   "--hidden",        "8",         "--batch-size",          "8",
    "--threads",    "1",   "--epochs",        "100000",    "--log-interval",        "1",
    "--output",     "run", "--eval-interval", "1000000",   "--checkpoint-interval", "1000000"};

class TrainStop : public testing::TestWithParam<int> {};

TEST_P(TrainStop, SignalSavesAndExitsCleanly) {
  TemporaryFolder tmp;
  Running run(endless, tmp.path());
  ASSERT_TRUE(run.wait_for("step 20/"));
  run.send(GetParam());
  const Finished f = run.finish(20);
  EXPECT_EQ(f.exit_code, 0) << f.err;
  EXPECT_THAT(f.out, HasSubstr("saved; go on with the same flags and --resume run"));
  const json record = read_json(tmp / "run/summary.json");
  EXPECT_THAT(record["result"]["stopped_by"].get<std::string>(), testing::StartsWith("SIG"));
  const int64_t step = record["result"]["steps"];
  EXPECT_GE(step, 20);
  char name[32];
  std::snprintf(name, sizeof name, "step-%08d", static_cast<int>(step));
  EXPECT_TRUE(fs::exists(tmp / "run/checkpoints" / name / "state.json"));
}

INSTANTIATE_TEST_SUITE_P(Signals, TrainStop, testing::Values(SIGINT, SIGTERM, SIGHUP),
                         [](const auto& info) { return std::string(sigabbrev_np(info.param)); });

TEST(TrainStop, GoneReaderSavesAndStops) {
  TemporaryFolder tmp;
  const char* other = std::getenv("CRUCIBLE_TRAIN_BINARY");
  std::string command = "cd " + tmp.path().string() + " && { " + (other ? other : TRAIN_BINARY);
  for (const std::string& a : endless) command += " " + a;
  command += "; echo $? > code; } | head -7 > /dev/null";
  ASSERT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(read_text(tmp / "code"), "0\n");
  EXPECT_EQ(read_json(tmp / "run/summary.json")["result"]["stopped_by"], "SIGPIPE");
}

TEST(TrainStop, BarIsDrawnInPlaceAndTheCursorComesBack) {
  if (!terminals_exist()) GTEST_SKIP() << "there are no pseudo-terminals here";
  TemporaryFolder tmp;
  Running run(endless, tmp.path(), Running::Output::terminal);
  ASSERT_TRUE(run.wait_for("loss"));
  ASSERT_TRUE(run.wait_for("ETA"));
  usleep(300'000);
  run.send(SIGINT);
  const Finished f = run.finish(20);
  EXPECT_EQ(f.exit_code, 0) << f.out;
  EXPECT_THAT(f.out, HasSubstr("\x1b[?25l"));
  EXPECT_GT(f.out.rfind("\x1b[?25h"), f.out.rfind("\x1b[?25l"));
  EXPECT_EQ(f.out.find("epoch 1/100000  step 2/800000  loss"), std::string::npos)
      << "log lines on a terminal";
  size_t redraws = 0;
  for (size_t at = 0; (at = f.out.find("\x1b[K", at)) != std::string::npos; ++at) ++redraws;
  EXPECT_GE(redraws, 2u);
}

TEST(TrainStop, SecondSignalEndsAtOnceAndShowsTheCursor) {
  if (!terminals_exist()) GTEST_SKIP() << "there are no pseudo-terminals here";
  TemporaryFolder tmp;
  // One update takes far longer than the time between the two signals.
  const Arguments slow{"--model",
                       "mlp",
                       "--dataset",
                       "synthetic",
                       "--synthetic-samples",
                       "100000000",
                       "--image-size",
                       "8",
                       "--hidden",
                       "8",
                       "--batch-size",
                       "8",
                       "--threads",
                       "1",
                       "--steps",
                       "3",
                       "--stop-after",
                       "2",
                       "--output",
                       "run",
                       "--grad-accum-steps",
                       "1000000"};
  Running run(slow, tmp.path(), Running::Output::terminal);
  ASSERT_TRUE(run.wait_for("run    run"));
  usleep(300'000);
  run.send(SIGINT);
  usleep(100'000);
  run.send(SIGINT);
  const Finished f = run.finish(10);
  EXPECT_EQ(f.exit_code, 128 + SIGINT);
  EXPECT_LT(f.seconds, 9.0);
}

}  // namespace
}  // namespace crucible::test
