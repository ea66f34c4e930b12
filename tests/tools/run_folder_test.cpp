#include "tools/train/run_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "core/error.h"
#include "tests/tools/process.h"

namespace crucible::train {
namespace {

namespace fs = std::filesystem;
using Use = RunFolder::Use;
using test::TemporaryFolder;

TEST(RunFolder, IsCreatedWithThoseAboveIt) {
  TemporaryFolder tmp;
  RunFolder run(tmp / "a/b/c", Use::fresh);
  EXPECT_TRUE(fs::is_directory(tmp / "a/b/c/checkpoints"));
}

TEST(RunFolder, DiscardTakesAwayWhatWasCreatedOnly) {
  TemporaryFolder tmp;
  fs::create_directories(tmp / "a");
  RunFolder run(tmp / "a/b/c", Use::fresh);
  run.discard_if_created();
  EXPECT_TRUE(fs::exists(tmp / "a"));
  EXPECT_FALSE(fs::exists(tmp / "a/b"));
}

TEST(RunFolder, FolderThatExistedIsNotDiscarded) {
  TemporaryFolder tmp;
  fs::create_directories(tmp / "a");
  RunFolder run(tmp / "a", Use::fresh);
  run.discard_if_created();
  EXPECT_TRUE(fs::exists(tmp / "a"));
}

TEST(RunFolder, RefusesFolderThatHoldsSomething) {
  TemporaryFolder tmp;
  fs::create_directories(tmp / "a");
  std::ofstream(tmp / "a/thesis.tex") << "text";
  EXPECT_THROW(RunFolder(tmp / "a", Use::fresh), InvalidArgument);
  EXPECT_EQ(test::read_text(tmp / "a/thesis.tex"), "text");
}

TEST(RunFolder, OverwriteLeavesFilesOfOthersAlone) {
  TemporaryFolder tmp;
  {
    RunFolder run(tmp / "a", Use::fresh);
    run.append_metric("{}");
    run.write_summary("{}");
    std::ofstream(tmp / "a/thesis.tex") << "text";
    fs::create_directories(tmp / "a/checkpoints/step-00000001");
  }
  RunFolder run(tmp / "a", Use::overwrite);
  EXPECT_EQ(run.metrics_bytes(), 0);
  EXPECT_FALSE(fs::exists(tmp / "a/summary.json"));
  EXPECT_FALSE(fs::exists(tmp / "a/checkpoints/step-00000001"));
  EXPECT_EQ(test::read_text(tmp / "a/thesis.tex"), "text");
}

TEST(RunFolder, SecondRunInOneFolderIsRefused) {
  TemporaryFolder tmp;
  {
    const RunFolder first(tmp / "a", Use::fresh);
    try {
      RunFolder(tmp / "a", Use::overwrite);
      FAIL() << "two runs write to one folder";
    } catch (const InvalidArgument& e) {
      EXPECT_THAT(e.what(), testing::HasSubstr("is in use by another run"));
    }
    EXPECT_TRUE(fs::exists(tmp / "a/metrics.jsonl"));  // nothing was removed
  }
  EXPECT_NO_THROW(RunFolder(tmp / "a", Use::overwrite));
}

TEST(RunFolder, FileIsRefused) {
  TemporaryFolder tmp;
  std::ofstream(tmp / "file") << "x";
  EXPECT_THROW(RunFolder(tmp / "file", Use::fresh), IoError);
  EXPECT_THROW(RunFolder(tmp / "file/below", Use::fresh), IoError);
  EXPECT_EQ(test::read_text(tmp / "file"), "x");
}

TEST(RunFolder, MetricsAreCutToASavedLength) {
  TemporaryFolder tmp;
  RunFolder run(tmp / "a", Use::fresh);
  run.append_metric("{\"a\":1}");
  const int64_t length = run.metrics_bytes();
  run.append_metric("{\"a\":2}");
  run.truncate_metrics(length);
  run.append_metric("{\"a\":3}");
  EXPECT_EQ(test::read_text(tmp / "a/metrics.jsonl"), "{\"a\":1}\n{\"a\":3}\n");
  run.truncate_metrics(1000);
  EXPECT_EQ(run.metrics_bytes(), 16);
}

}  // namespace
}  // namespace crucible::train
