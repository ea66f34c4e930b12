/// What a run leaves behind, and that every flag changes what is in force.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/tools/process.h"

namespace crucible::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;
using Arguments = std::vector<std::string>;

const Arguments tiny_mlp{
    "--model",      "mlp", "--dataset",      "synthetic", "--synthetic-samples", "40",
    "--image-size", "8",   "--hidden",       "8",         "--batch-size",        "4",
    "--threads",    "1",   "--log-interval", "1"};

std::string text_for_gpt() {
  std::string text;
  for (int i = 0; i < 200; ++i) text += "line " + std::to_string(i * 7 % 13) + " of a text\n";
  return text;
}

const Arguments tiny_gpt{
    "--model",        "gpt", "--layers",        "1", "--heads",        "2",
    "--width",        "8",   "--context",       "8", "--data-dir",     "text.txt",
    "--steps",        "3",   "--batch-size",    "4", "--threads",      "1",
    "--eval-batches", "2",   "--sample-tokens", "4", "--log-interval", "1"};

TEST(TrainRecord, SummaryHoldsTheFieldsOfARecord) {
  TemporaryFolder tmp;
  const Finished f = train(tiny_mlp + Arguments{"--epochs", "2", "--output", "run"}, tmp.path());
  ASSERT_EQ(f.exit_code, 0) << f.err;
  const json record = read_json(tmp / "run/summary.json");
  for (const char* key : {"schema_version", "run_id", "time_ms", "cmd", "git_commit", "build",
                          "driver_version", "cuda_runtime", "system", "workload", "timing",
                          "memory", "telemetry", "fingerprint", "status", "error"}) {
    EXPECT_TRUE(record.contains(key)) << key;
  }
  EXPECT_EQ(record["status"], "ok");
  EXPECT_EQ(record["result"]["stopped_by"], "epochs");
  EXPECT_EQ(record["result"]["steps"], 20);
  EXPECT_EQ(record["workload"]["data_source"], "synthetic");
  EXPECT_EQ(record["workload"]["micro_batch_size"], 4);
  EXPECT_EQ(record["workload"]["param_count"], 8 * 8 * 3 * 8 + 8 + 8 * 10 + 10);
  EXPECT_EQ(record["fingerprint"]["loss"].size(), 20u);
  EXPECT_EQ(record["timing"]["samples"], 80);
  const json& timing = record["timing"];
  EXPECT_NEAR(timing["samples_per_sec"].get<double>(), 80 / timing["train_seconds"].get<double>(),
              1e-6 * timing["samples_per_sec"].get<double>());
  EXPECT_GT(record["memory"]["max_allocated_bytes_by_tag"]["parameters"], 0);
  EXPECT_GT(record["memory"]["allocated_bytes_by_tag"]["optimizer"], 0);
  EXPECT_THAT(record["cmd"].get<std::string>(), HasSubstr("--synthetic-samples 40"));
  EXPECT_EQ(record["settings"], read_json(tmp / "run/settings.json"));
}

TEST(TrainRecord, FirstLinesSayThatDataAreSynthetic) {
  TemporaryFolder tmp;
  const Finished f = train(tiny_mlp + Arguments{"--steps", "1"}, tmp.path());
  EXPECT_THAT(f.out.substr(0, f.out.find('\n')), HasSubstr("SYNTHETIC"));
}

TEST(TrainRecord, BatchPerGpuAndGlobalAreShownSideBySide) {
  TemporaryFolder tmp;
  const Finished f =
      train(tiny_mlp + Arguments{"--steps", "1", "--grad-accum-steps", "3"}, tmp.path());
  EXPECT_THAT(f.out, HasSubstr("4 per GPU x 3 accumulated = 12 global"));
}

TEST(TrainRecord, RunFoldersAreNumbered) {
  TemporaryFolder tmp;
  for (int i = 0; i < 2; ++i) train(tiny_mlp + Arguments{"--steps", "1"}, tmp.path());
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(tmp / "runs")) {
    names.push_back(entry.path().filename());
  }
  EXPECT_THAT(names, testing::UnorderedElementsAre(testing::EndsWith("-mlp-1"),
                                                   testing::EndsWith("-mlp-2")));
}

TEST(TrainRecord, QuietPrintsNothing) {
  TemporaryFolder tmp;
  const Finished f = train(tiny_mlp + Arguments{"--steps", "1", "--quiet"}, tmp.path());
  EXPECT_EQ(f.exit_code, 0);
  EXPECT_EQ(f.out + f.err, "");
}

TEST(TrainRecord, OverwriteReplacesTheRun) {
  TemporaryFolder tmp;
  train(tiny_mlp + Arguments{"--steps", "3", "--output", "run"}, tmp.path());
  const Finished f =
      train(tiny_mlp + Arguments{"--steps", "1", "--output", "run", "--overwrite"}, tmp.path());
  EXPECT_EQ(f.exit_code, 0) << f.err;
  EXPECT_EQ(metrics(tmp / "run", "step").size(), 1u);
}

// Ten micro-batches an epoch in windows of four: 4, 4, 2.
TEST(TrainRecord, LastWindowOfAnEpochIsUpdatedToo) {
  TemporaryFolder tmp;
  train(
      tiny_mlp + Arguments{"--epochs", "1", "--grad-accum-steps", "4", "--sched", "linear", "--lr",
                           "3", "--lr-warmup-steps", "0", "--opt", "sgd", "--output", "run"},
      tmp.path());
  std::vector<int64_t> samples;
  std::vector<double> rates;
  for (const json& step : metrics(tmp / "run", "step")) {
    samples.push_back(step["samples"]);
    rates.push_back(step["lr"]);
  }
  EXPECT_THAT(samples, testing::ElementsAre(16, 16, 8));
  EXPECT_THAT(rates,
              testing::ElementsAre(testing::DoubleNear(3, 1e-12), testing::DoubleNear(2, 1e-12),
                                   testing::DoubleNear(1, 1e-12)));
}

TEST(TrainRecord, WindowLargerThanAnEpochGivesOneUpdate) {
  TemporaryFolder tmp;
  train(tiny_mlp + Arguments{"--epochs", "1", "--grad-accum-steps", "16", "--output", "run"},
        tmp.path());
  EXPECT_EQ(metrics(tmp / "run", "step").size(), 1u);
}

TEST(TrainRecord, EpochAccuracyAgreesWithTheFinalEvaluation) {
  TemporaryFolder tmp;
  write_idx(tmp / "idx", 64);
  const Finished f =
      train({"--model", "mlp", "--data-dir", "idx", "--hidden", "16", "--epochs", "8",
             "--batch-size", "8", "--lr", "0.01", "--threads", "1", "--output", "run"},
            tmp.path());
  ASSERT_EQ(f.exit_code, 0) << f.err;
  EXPECT_EQ(metrics(tmp / "run", "eval").size(), 8u);
  const json result = read_json(tmp / "run/summary.json")["result"];
  EXPECT_EQ(result["test_accuracy"], metrics(tmp / "run", "eval").back()["accuracy"]);
  EXPECT_GT(result["test_accuracy"], 0.95);  // the classes are bright bands
  EXPECT_EQ(result["test_targets"], 32);
}

TEST(TrainRecord, TargetAccuracyStopsTheRun) {
  TemporaryFolder tmp;
  write_idx(tmp / "idx", 64);
  const Finished f = train(
      {"--model", "mlp", "--data-dir", "idx", "--hidden", "16", "--epochs", "100", "--batch-size",
       "8", "--lr", "0.01", "--threads", "1", "--target-accuracy", "0.9", "--output", "run"},
      tmp.path());
  ASSERT_EQ(f.exit_code, 0) << f.err;
  const json result = read_json(tmp / "run/summary.json")["result"];
  EXPECT_EQ(result["stopped_by"], "target-accuracy");
  EXPECT_GE(result["test_accuracy"], 0.9);
  EXPECT_LT(result["steps"], 800);
}

TEST(TrainRecord, GptReportsBitsPerByteAndPrintsASeededSample) {
  TemporaryFolder tmp;
  std::ofstream(tmp / "text.txt") << text_for_gpt();
  const Finished a = train(tiny_gpt + Arguments{"--output", "a"}, tmp.path());
  const Finished b = train(tiny_gpt + Arguments{"--output", "b"}, tmp.path());
  ASSERT_EQ(a.exit_code, 0) << a.err;
  const auto sample = [](const std::string& out) {
    const size_t begin = out.find("--- sample ---");
    return out.substr(begin, out.find("--- end of sample ---") - begin);
  };
  EXPECT_EQ(sample(a.out), sample(b.out));
  EXPECT_GT(sample(a.out).size(), 15u);
  const json eval = metrics(tmp / "a", "eval").back();
  EXPECT_NEAR(eval["bits_per_byte"].get<double>(), eval["loss"].get<double>() / std::log(2.0),
              1e-9);
}

TEST(TrainRecord, DumpGroupsListsEachParameterOnceWithItsDecay) {
  TemporaryFolder tmp;
  const Finished f =
      train(tiny_mlp + Arguments{"--dump-groups", "--weight-decay", "0.25"}, tmp.path());
  ASSERT_EQ(f.exit_code, 0) << f.err;
  for (const char* name :
       {"layers.0.weight", "layers.0.bias", "layers.1.weight", "layers.1.bias"}) {
    const size_t at = f.out.find(name);
    ASSERT_NE(at, std::string::npos) << name;
    EXPECT_EQ(f.out.find(name, at + 1), std::string::npos) << name;
    const std::string line = f.out.substr(at, f.out.find('\n', at) - at);
    const bool bias = line.find("bias") != std::string::npos;
    EXPECT_THAT(line, testing::EndsWith(bias ? " 0" : " 0.25"));
  }
  EXPECT_FALSE(fs::exists(tmp / "runs"));
}

TEST(TrainRecord, WeightsAreLoadedAndFreshOnesListed) {
  TemporaryFolder tmp;
  train(tiny_mlp + Arguments{"--steps", "2", "--output", "a"}, tmp.path());
  const std::string weights = (tmp / "a/checkpoints/step-00000002/model.safetensors").string();
  const Finished all =
      train(tiny_mlp + Arguments{"--steps", "1", "--load", weights, "--output", "b"}, tmp.path());
  EXPECT_EQ(all.exit_code, 0) << all.err;
  const Arguments other{"--model",
                        "mlp",
                        "--dataset",
                        "synthetic",
                        "--synthetic-samples",
                        "40",
                        "--image-size",
                        "8",
                        "--hidden",
                        "8,9",
                        "--steps",
                        "1",
                        "--load",
                        weights};
  const Finished strict = train(other, tmp.path());
  EXPECT_EQ(strict.exit_code, 2);
  EXPECT_THAT(strict.err, HasSubstr("do not match"));
  const Finished partial = train(other + Arguments{"--partial", "--output", "c"}, tmp.path());
  EXPECT_EQ(partial.exit_code, 0) << partial.err;
  EXPECT_THAT(read_json(tmp / "c/summary.json")["fresh_parameters"],
              testing::Contains("layers.1.weight"));
}

TEST(TrainRecord, OutOfMemoryIsAResult) {
  TemporaryFolder tmp;
  const Finished f = train(
      {"--model", "mlp", "--dataset", "synthetic", "--synthetic-samples", "20000", "--image-size",
       "8", "--hidden", "8", "--batch-size", "20000", "--mem-limit", "8MiB", "--output", "run"},
      tmp.path());
  EXPECT_EQ(f.exit_code, 1);
  EXPECT_EQ(std::count(f.err.begin(), f.err.end(), '\n'), 1) << f.err;
  const json record = read_json(tmp / "run/summary.json");
  EXPECT_EQ(record["status"], "oom");
  EXPECT_GE(record["memory"]["num_ooms"], 1);
  EXPECT_LE(record["memory"]["max_reserved_bytes"], 8 << 20);
}

TEST(TrainRecord, DivergedRunStopsAndSaysSo) {
  TemporaryFolder tmp;
  const Finished f = train(tiny_mlp + Arguments{"--opt", "sgd", "--lr", "100000", "--momentum",
                                                "0.99", "--sched", "constant", "--lr-warmup-steps",
                                                "0", "--epochs", "50", "--output", "run"},
                           tmp.path());
  EXPECT_EQ(f.exit_code, 1);
  EXPECT_THAT(f.err, testing::ContainsRegex("step [0-9]+ has loss -?(nan|inf)"));
  const json record = read_json(tmp / "run/summary.json");
  EXPECT_EQ(record["status"], "error");
  EXPECT_THAT(record["error"].get<std::string>(), HasSubstr("has loss"));
}

/// A flag, and the entry of settings.json that it must change to the value.
struct Change {
  Arguments flags;
  const char* key;
  json value;
};

void expect_changes(const Arguments& base, const std::vector<Change>& changes,
                    const TemporaryFolder& tmp) {
  ASSERT_EQ(train(base + Arguments{"--output", "base"}, tmp.path()).exit_code, 0);
  const json before = read_json(tmp / "base/settings.json");
  int n = 0;
  for (const Change& change : changes) {
    const std::string name = "run" + std::to_string(n++);
    const Finished f = train(base + change.flags + Arguments{"--output", name}, tmp.path());
    ASSERT_EQ(f.exit_code, 0) << change.flags[0] << ": " << f.err;
    const json after = read_json(tmp / (name + "/settings.json"));
    EXPECT_NE(before[change.key], after[change.key]) << change.flags[0];
    EXPECT_EQ(after[change.key], change.value) << change.flags[0];
  }
}

TEST(TrainRecord, EachFlagOfAnMlpChangesWhatIsInForce) {
  TemporaryFolder tmp;
  write_idx(tmp / "idx", 16);
  const Arguments base{"--model", "mlp", "--data-dir", "idx"};
  expect_changes(base + Arguments{"--quiet"},
                 {{{"--hidden", "6,5"}, "hidden", {6, 5}},
                  {{"--batch-size", "8"}, "batch_size", 8},
                  {{"--grad-accum-steps", "2"}, "grad_accum_steps", 2},
                  {{"--global-batch-size", "256"}, "global_batch_size", 256},
                  {{"--epochs", "1"}, "epochs", 1},
                  {{"--steps", "2"}, "steps", 2},
                  {{"--opt", "sgd"}, "opt", "sgd"},
                  {{"--lr", "0.25"}, "lr", 0.25},
                  {{"--min-lr", "0.0001"}, "min_lr", 0.0001},
                  {{"--weight-decay", "0.5"}, "weight_decay", 0.5},
                  {{"--beta1", "0.5"}, "beta1", 0.5},
                  {{"--beta2", "0.5"}, "beta2", 0.5},
                  {{"--clip-grad", "2"}, "clip_grad", 2.0},
                  {{"--sched", "linear"}, "sched", "linear"},
                  {{"--lr-warmup-steps", "3"}, "lr_warmup_steps", 3},
                  {{"--label-smoothing", "0.1"}, "label_smoothing", 0.1},
                  {{"--seed", "7"}, "seed", 7},
                  {{"--threads", "5"}, "threads", 5},
                  {{"--mem-limit", "1GiB"}, "mem_limit", 1 << 30},
                  {{"--deterministic"}, "deterministic", true},
                  {{"--workers", "0"}, "workers", 0},
                  {{"--augment", "crop"}, "augment", "crop 1"},
                  {{"--augment", "crop-flip"}, "augment", "crop 1 + flip"},
                  {{"--skip-bad"}, "skip_bad", true},
                  {{"--eval-interval", "2"}, "eval_interval", 2},
                  {{"--eval-batches", "1"}, "eval_batches", 1},
                  {{"--log-interval", "3"}, "log_interval", 3},
                  {{"--checkpoint-interval", "2"}, "checkpoint_interval", 2},
                  {{"--checkpoint-hist", "1"}, "checkpoint_hist", 1},
                  {{"--target-accuracy", "0.9"}, "target_accuracy", 0.9},
                  {{"--stop-after", "1"}, "stop_after", 1},
                  {{"--log-sample-ids", "ids"}, "log_sample_ids", true}},
                 tmp);
}

TEST(TrainRecord, EachFlagOfSgdAndStepChangesWhatIsInForce) {
  TemporaryFolder tmp;
  write_idx(tmp / "idx", 16);
  expect_changes({"--model", "mlp", "--data-dir", "idx", "--hidden", "4", "--opt", "sgd", "--sched",
                  "step", "--steps", "3", "--quiet"},
                 {{{"--momentum", "0.5"}, "momentum", 0.5},
                  {{"--nesterov"}, "nesterov", true},
                  {{"--lr-decay-steps", "2"}, "lr_decay_steps", 2},
                  {{"--lr-decay-rate", "0.5"}, "lr_decay_rate", 0.5}},
                 tmp);
}

TEST(TrainRecord, EachFlagOfAGptChangesWhatIsInForce) {
  TemporaryFolder tmp;
  std::ofstream(tmp / "text.txt") << text_for_gpt();
  expect_changes({"--model", "gpt", "--data-dir", "text.txt", "--steps", "1", "--eval-batches", "1",
                  "--layers", "1", "--width", "16", "--context", "16", "--sample-tokens", "1",
                  "--threads", "1", "--quiet"},
                 {{{"--heads", "2"}, "heads", 2},
                  {{"--vocab", "300"}, "vocab", 300},
                  {{"--dropout", "0.25"}, "dropout", 0.25},
                  {{"--seq-len", "8"}, "seq_len", 8},
                  {{"--temperature", "0.5"}, "temperature", 0.5},
                  {{"--top-k", "3"}, "top_k", 3},
                  {{"--prompt", "To be"}, "prompt", "To be"}},
                 tmp);
}

TEST(TrainRecord, SizesOfAGptChangeWhatIsInForce) {
  TemporaryFolder tmp;
  std::ofstream(tmp / "text.txt") << text_for_gpt();
  const Finished f = train(
      {"--model",  "gpt", "--data-dir",     "text.txt", "--steps",   "1",  "--layers",        "2",
       "--heads",  "3",   "--width",        "12",       "--context", "24", "--sample-tokens", "2",
       "--output", "run", "--eval-batches", "1"},
      tmp.path());
  ASSERT_EQ(f.exit_code, 0) << f.err;
  const json s = read_json(tmp / "run/settings.json");
  EXPECT_EQ(s["layers"], 2);
  EXPECT_EQ(s["heads"], 3);
  EXPECT_EQ(s["width"], 12);
  EXPECT_EQ(s["context"], 24);
  EXPECT_EQ(s["seq_len"], 24);
  EXPECT_EQ(s["sample_tokens"], 2);
  EXPECT_EQ(s["vocab"], 256);
}

TEST(TrainRecord, ResnetAloneChoosesItsDepthByImageSize) {
  TemporaryFolder tmp;
  const auto model_at = [&](const char* side) {
    const Finished f = train({"--model", "resnet", "--dataset", "synthetic", "--synthetic-samples",
                              "2", "--image-size", side, "--dump-groups"},
                             tmp.path());
    return f.out.find("layer4.") != std::string::npos ? "resnet50" : "resnet20";
  };
  EXPECT_STREQ(model_at("64"), "resnet20");
  EXPECT_STREQ(model_at("65"), "resnet50");
}

}  // namespace
}  // namespace crucible::test
