/// Bad input of every kind is refused at once, with one line that names it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/tools/process.h"

namespace crucible::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using Arguments = std::vector<std::string>;

void expect_refused(const Arguments& arguments, const TemporaryFolder& tmp, int exit_code,
                    const std::string& named) {
  const auto entries = [&] {
    return std::distance(fs::directory_iterator(tmp.path()), fs::directory_iterator());
  };
  const auto before = entries();
  const Finished f = train(arguments, tmp.path());
  EXPECT_EQ(f.exit_code, exit_code) << f.out << f.err;
  EXPECT_THAT(f.err, HasSubstr(named));
  EXPECT_EQ(std::count(f.err.begin(), f.err.end(), '\n'), 1) << f.err;
  EXPECT_LT(f.processor_seconds, 2.0);
  EXPECT_EQ(entries(), before) << "something was left behind";
}

TEST(TrainInput, BadFlagsAreRefusedBeforeAnythingElse) {
  TemporaryFolder tmp;
  const std::pair<Arguments, const char*> cases[] = {
      {{"--model", "mlp", "--lerning-rate", "1"}, "--lerning-rate"},
      {{"--model", "mlp", "--lr", "abc"}, "'abc'"},
      {{"--model", "mlp", "--lr", "nan"}, "'nan'"},
      {{"--model", "mlp", "--lr", "-1"}, "-1"},
      {{"--model", "mlp", "--batch-size", "0"}, "--batch-size"},
      {{"--model", "mlp", "--batch-size", "1e3"}, "'1e3'"},
      {{"--model", "mlp", "--lr", "1", "--lr", "1"}, "--lr is given 2 times"},
      {{"--model", "nonsense"}, "'nonsense'"},
      {{"--model", "mlp", "--grad-accum-steps", "0"}, "--grad-accum-steps"},
      {{"--model", "mlp", "--precision", "tf32"}, "--precision tf32 is not available on cpu yet"},
      {{"--model", "mlp", "--device", "tpu"}, "'tpu'"},
      {{"--model", "mlp", "--gpu", "zero"}, "'zero'"},
      {{"--model", "mlp", "--global-batch-size", "10", "--batch-size", "4"},
       "--global-batch-size 10"},
      {{"--model", "gpt", "--width", "30", "--heads", "4"}, "--width 30"},
      {{"--model", "gpt", "--context", "8", "--seq-len", "9"}, "--seq-len 9"},
      {{"--model", "mlp", "--dataset", "cifar10"}, "--dataset cifar10 needs --data-dir"},
  };
  for (const auto& [arguments, named] : cases) expect_refused(arguments, tmp, 2, named);
}

TEST(TrainInput, MissingGpuIsAClearError) {
  TemporaryFolder tmp;
  expect_refused({"--model", "mlp", "--gpu", "63"}, tmp, 1, "cuda:63 is not available");
  expect_refused({"--model", "mlp", "--device", "cuda:63"}, tmp, 1, "cuda:63 is not available");
}

TEST(TrainInput, BadDataPathsAreNamed) {
  TemporaryFolder tmp;
  fs::create_directories(tmp / "empty");
  fs::create_directories(tmp / "odd");
  std::ofstream(tmp / "odd/file.bin") << "x";
  std::ofstream(tmp / "file") << "text";
  expect_refused({"--model", "mlp", "--data-dir", "nowhere"}, tmp, 2, "nowhere does not exist");
  expect_refused({"--model", "mlp", "--data-dir", "empty"}, tmp, 2, "empty is empty");
  expect_refused({"--model", "resnet", "--data-dir", "file"}, tmp, 2, "file is a file");
  expect_refused({"--model", "mlp", "--data-dir", "odd"}, tmp, 2, "odd");
  expect_refused({"--model", "gpt", "--data-dir", "nowhere"}, tmp, 2, "nowhere");
}

TEST(TrainInput, DataThatDoNotSuitTheModelAreRefused) {
  TemporaryFolder tmp;
  write_idx(tmp / "idx", 8);
  fs::create_directories(tmp / "texts");
  std::ofstream(tmp / "texts/a.txt") << std::string(2000, 'a');
  expect_refused({"--model", "gpt", "--data-dir", "idx"}, tmp, 2, "gpt learns from text");
  expect_refused({"--model", "mlp", "--data-dir", "texts"}, tmp, 2, "mlp learns from images");
  expect_refused({"--model", "mlp", "--data-dir", "idx", "--dataset", "cifar10"}, tmp, 2,
                 "holds idx, not the cifar10");
  expect_refused({"--model", "gpt", "--data-dir", "texts", "--vocab", "10"}, tmp, 2, "--vocab 10");
}

TEST(TrainInput, OutputThatCannotBeWrittenIsFoundAtOnce) {
  TemporaryFolder tmp;
  std::ofstream(tmp / "file") << "text";
  const Arguments base{"--model", "mlp", "--dataset", "synthetic", "--output"};
  expect_refused(base + Arguments{"file"}, tmp, 2, "file is a file");
  expect_refused(base + Arguments{"file/run"}, tmp, 2, "file/run cannot be written to");
  expect_refused(base + Arguments{"/proc/run"}, tmp, 2, "/proc/run cannot be written to");
  EXPECT_EQ(read_text(tmp / "file"), "text");
}

TEST(TrainInput, ReadOnlyOutputIsFoundAtOnce) {
  if (geteuid() == 0) GTEST_SKIP() << "permissions do not bind the superuser";
  TemporaryFolder tmp;
  fs::create_directories(tmp / "locked");
  fs::permissions(tmp / "locked", fs::perms::owner_read | fs::perms::owner_exec);
  expect_refused({"--model", "mlp", "--dataset", "synthetic", "--output", "locked"}, tmp, 2,
                 "locked cannot be written to");
  fs::permissions(tmp / "locked", fs::perms::owner_all);
}

TEST(TrainInput, NonEmptyOutputNeedsConsent) {
  TemporaryFolder tmp;
  fs::create_directories(tmp / "run");
  std::ofstream(tmp / "run/thesis.tex") << "text";
  expect_refused({"--model", "mlp", "--dataset", "synthetic", "--output", "run"}, tmp, 2,
                 "run is not empty");
  EXPECT_EQ(read_text(tmp / "run/thesis.tex"), "text");
}

TEST(TrainInput, DamagedDataLeaveNoRunFolderBehind) {
  TemporaryFolder tmp;
  write_idx(tmp / "idx", 8);
  fs::resize_file(tmp / "idx/train-images-idx3-ubyte", 100);
  expect_refused({"--model", "mlp", "--data-dir", "idx", "--output", "run"}, tmp, 2,
                 "train-images-idx3-ubyte");
}

TEST(TrainInput, ResumeWithoutACheckpointIsRefused) {
  TemporaryFolder tmp;
  fs::create_directories(tmp / "run");
  expect_refused({"--model", "mlp", "--resume", "nowhere"}, tmp, 2, "--resume nowhere");
  expect_refused({"--model", "mlp", "--resume", "run"}, tmp, 2, "holds no checkpoint");
}

TEST(TrainInput, HelpAndVersionSucceed) {
  TemporaryFolder tmp;
  const Finished help = train({"--help"}, tmp.path());
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.out, HasSubstr("Examples:"));
  EXPECT_EQ(train({"--version"}, tmp.path()).exit_code, 0);
}

TEST(TrainInput, NoArgumentsSayWhatIsMissing) {
  TemporaryFolder tmp;
  expect_refused({}, tmp, 2, "--model is missing");
}

}  // namespace
}  // namespace crucible::test
