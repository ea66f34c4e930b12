/// A resumed run ends with the same bits as one that was never interrupted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
#include <sstream>

#include "tests/tools/process.h"

namespace crucible::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;
using Arguments = std::vector<std::string>;

/// What was computed, without what was measured by the clock.
std::vector<json> learned(const fs::path& run) {
  std::vector<json> records;
  for (json record : metrics(run)) {
    if (record["type"] == "checkpoint") continue;
    for (const char* key :
         {"time_ms", "samples_per_sec", "tokens_per_sec", "data_time_ms", "seconds"}) {
      record.erase(key);
    }
    records.push_back(std::move(record));
  }
  return records;
}

std::string last_checkpoint(const fs::path& run) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(run / "checkpoints")) {
    names.push_back(entry.path().filename());
  }
  return *std::max_element(names.begin(), names.end());
}

void expect_same_bits(const fs::path& a, const fs::path& b) {
  EXPECT_EQ(last_checkpoint(a), last_checkpoint(b));
  for (const char* file : {"model.safetensors", "optimizer.safetensors"}) {
    const std::string x = read_text(a / "checkpoints" / last_checkpoint(a) / file);
    const std::string y = read_text(b / "checkpoints" / last_checkpoint(b) / file);
    EXPECT_GT(x.size(), 100u);
    EXPECT_TRUE(x == y) << file << " differs";
  }
  EXPECT_EQ(learned(a), learned(b));
}

/// Runs `base` whole, and again stopped after `stops` (growing) and resumed; both must agree.
void expect_exact_resume(const Arguments& base, const std::vector<int>& stops,
                         const char* threads = "1") {
  TemporaryFolder tmp;
  write_idx(tmp / "idx", 30);
  std::ofstream(tmp / "text.txt") << [] {
    std::string text;
    for (int i = 0; i < 150; ++i) text += std::to_string(i * i % 97) + " bottles, ";
    return text;
  }();
  const Arguments common = base + Arguments{"--threads", threads, "--log-interval", "1"};
  const Finished whole =
      train(common + Arguments{"--output", "whole", "--log-sample-ids", "whole.ids"}, tmp.path());
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  for (const int stop : stops) {
    const Finished part =
        train(common + Arguments{"--output", "parts", "--log-sample-ids", "parts.ids", "--resume",
                                 "auto", "--stop-after", std::to_string(stop)},
              tmp.path());
    ASSERT_EQ(part.exit_code, 0) << part.err;
    EXPECT_EQ(read_json(tmp / "parts/summary.json")["result"]["steps"], stop);
  }
  const Finished rest = train(
      common + Arguments{"--output", "parts", "--log-sample-ids", "parts.ids", "--resume", "auto"},
      tmp.path());
  ASSERT_EQ(rest.exit_code, 0) << rest.err;
  EXPECT_THAT(rest.out, HasSubstr("resuming from parts/checkpoints/step-"));
  expect_same_bits(tmp / "whole", tmp / "parts");
  EXPECT_EQ(read_text(tmp / "whole.ids"), read_text(tmp / "parts.ids"));
}

// 30 samples in batches of 4: 8 batches an epoch, the last one of 2.
const Arguments mlp{"--model",      "mlp", "--data-dir", "idx", "--hidden",  "8",
                    "--batch-size", "4",   "--epochs",   "3",   "--augment", "crop-flip"};

TEST(TrainResume, MlpIsExactAnywhereInAnEpoch) {
  expect_exact_resume(mlp, {1, 7, 8, 9, 15, 16, 23});
}

TEST(TrainResume, MlpIsExactWithoutAndWithManyLoaderThreads) {
  expect_exact_resume(mlp + Arguments{"--workers", "0"}, {5});
  expect_exact_resume(mlp + Arguments{"--workers", "4"}, {5});
}

TEST(TrainResume, MlpIsExactWithAccumulationAndFrequentEvaluation) {
  expect_exact_resume(mlp + Arguments{"--grad-accum-steps", "3", "--eval-interval", "1"},
                      {2, 3, 4});
}

TEST(TrainResume, ResnetIsExact) {
  expect_exact_resume({"--model", "resnet20", "--data-dir", "idx", "--batch-size", "8", "--epochs",
                       "2", "--checkpoint-interval", "1"},
                      {3, 5});
}

TEST(TrainResume, ResnetIsExactOnTwoThreads) {
  expect_exact_resume({"--model", "resnet20", "--data-dir", "idx", "--batch-size", "16", "--epochs",
                       "2", "--checkpoint-interval", "1"},
                      {3}, "2");
}

TEST(TrainResume, GptWithDropoutIsExact) {
  expect_exact_resume(
      {"--model",   "gpt", "--layers",        "1",        "--heads", "2",  "--width",      "16",
       "--context", "16",  "--data-dir",      "text.txt", "--steps", "13", "--batch-size", "16",
       "--dropout", "0.2", "--sample-tokens", "8"},
      {2, 8});
}

TEST(TrainResume, MixedPrecisionIsExact) {
  expect_exact_resume(mlp + Arguments{"--precision", "bf16"}, {7});
  expect_exact_resume(mlp + Arguments{"--precision", "fp16"}, {7, 9});
}

TEST(TrainResume, ChangedPrecisionIsRefusedByName) {
  TemporaryFolder tmp;
  write_idx(tmp / "idx", 30);
  const Arguments common = mlp + Arguments{"--threads", "1", "--output", "run"};
  ASSERT_EQ(train(common + Arguments{"--stop-after", "3", "--amp"}, tmp.path()).exit_code, 0);
  const Finished f = train(common + Arguments{"--resume", "run"}, tmp.path());
  EXPECT_EQ(f.exit_code, 2);
  EXPECT_THAT(f.err, HasSubstr("precision was \"bf16\", is \"fp32\""));
}

TEST(TrainResume, KilledRunGoesOnFromItsLastCheckpoint) {
  TemporaryFolder tmp;
  write_idx(tmp / "idx", 30);
  const Arguments long_run = {
      "--model",  "mlp", "--data-dir", "idx", "--hidden",       "8", "--batch-size",          "4",
      "--epochs", "8",   "--threads",  "1",   "--log-interval", "1", "--checkpoint-interval", "2"};
  ASSERT_EQ(train(long_run + Arguments{"--output", "whole"}, tmp.path()).exit_code, 0);
  const Arguments killed = long_run + Arguments{"--output", "killed", "--resume", "auto"};
  for (const char* moment : {"step 11/", "step 26/", "step 43/"}) {
    Running run(killed, tmp.path());
    ASSERT_TRUE(run.wait_for(moment));
    run.send(SIGKILL);
    EXPECT_EQ(run.finish().exit_code, -SIGKILL);
  }
  const Finished rest = train(killed, tmp.path());
  ASSERT_EQ(rest.exit_code, 0) << rest.err;
  expect_same_bits(tmp / "whole", tmp / "killed");
}

TEST(TrainResume, RunKilledBeforeItsFirstCheckpointBeginsAgain) {
  TemporaryFolder tmp;
  write_idx(tmp / "idx", 30);
  const Arguments flags =
      mlp +
      Arguments{
          "--output", "run", "--resume", "auto", "--log-interval", "1", "--checkpoint-interval",
          "1000"};
  {
    Running run(flags, tmp.path());
    ASSERT_TRUE(run.wait_for("step 2/"));
    run.send(SIGKILL);
    run.finish();
  }
  const Finished again = train(flags, tmp.path());
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(metrics(tmp / "run", "step").size(), 24u);
}

TEST(TrainResume, ChangedBatchSizeIsRefusedByName) {
  TemporaryFolder tmp;
  write_idx(tmp / "idx", 30);
  train(mlp + Arguments{"--output", "run", "--stop-after", "3"}, tmp.path());
  const Finished f = train({"--model", "mlp", "--data-dir", "idx", "--hidden", "8", "--batch-size",
                            "5", "--epochs", "3", "--augment", "crop-flip", "--resume", "run"},
                           tmp.path());
  EXPECT_EQ(f.exit_code, 2);
  EXPECT_THAT(f.err, HasSubstr("batch_size was 4, is 5"));
}

TEST(TrainResume, ChangedLearningRateIsSaid) {
  TemporaryFolder tmp;
  write_idx(tmp / "idx", 30);
  train(mlp + Arguments{"--output", "run", "--stop-after", "3"}, tmp.path());
  const Finished f = train(mlp + Arguments{"--resume", "run", "--lr", "0.5"}, tmp.path());
  EXPECT_EQ(f.exit_code, 0) << f.err;
  EXPECT_THAT(f.out, HasSubstr("changed since: lr was 0.002, is 0.5"));
}

TEST(TrainResume, OneCheckpointCanBeNamedAndContinuedElsewhere) {
  TemporaryFolder tmp;
  write_idx(tmp / "idx", 30);
  train(mlp + Arguments{"--output", "run"}, tmp.path());
  const std::string before = read_text(tmp / "run/metrics.jsonl");
  const Finished f = train(mlp + Arguments{"--resume", "run/checkpoints/step-00000008", "--output",
                                           "other", "--log-interval", "1"},
                           tmp.path());
  ASSERT_EQ(f.exit_code, 0) << f.err;
  EXPECT_EQ(metrics(tmp / "other", "step").front()["step"], 9);
  EXPECT_EQ(read_text(tmp / "run/metrics.jsonl"), before);
  EXPECT_EQ(read_text(tmp / "run/checkpoints/step-00000024/model.safetensors"),
            read_text(tmp / "other/checkpoints/step-00000024/model.safetensors"));
}

TEST(TrainResume, AutoWithoutOutputFindsTheNewestRunOfTheModel) {
  TemporaryFolder tmp;
  write_idx(tmp / "idx", 30);
  train(mlp + Arguments{"--stop-after", "3"}, tmp.path());
  const Finished f = train(mlp + Arguments{"--resume", "auto"}, tmp.path());
  EXPECT_EQ(f.exit_code, 0) << f.err;
  EXPECT_THAT(f.out, HasSubstr("resuming from runs/"));
  EXPECT_THAT(f.out, HasSubstr("finished at step 24"));
}

TEST(TrainResume, OnlyTheLastCheckpointsAreKept) {
  TemporaryFolder tmp;
  write_idx(tmp / "idx", 30);
  train(mlp + Arguments{"--checkpoint-interval", "5", "--checkpoint-hist", "2", "--output", "run"},
        tmp.path());
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(tmp / "run/checkpoints")) {
    names.push_back(entry.path().filename());
  }
  EXPECT_THAT(names, testing::UnorderedElementsAre("step-00000020", "step-00000024"));
}

TEST(TrainResume, FinishedRunHasNothingLeftToDo) {
  TemporaryFolder tmp;
  write_idx(tmp / "idx", 30);
  train(mlp + Arguments{"--output", "run"}, tmp.path());
  const Finished f = train(mlp + Arguments{"--resume", "run"}, tmp.path());
  EXPECT_EQ(f.exit_code, 0) << f.err;
  EXPECT_THAT(f.out, HasSubstr("finished at step 24"));
}

}  // namespace
}  // namespace crucible::test
