#include "models/checkpoint.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <fstream>
#include <limits>
#include <numeric>
#include <set>

#include "core/error.h"
#include "core/file_fault.h"
#include "models/weights.h"

namespace crucible::models {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

Tensor ramp(const Shape& shape, int64_t step, int64_t salt) {
  std::vector<float> values(static_cast<size_t>(shape.numel()));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>((static_cast<int64_t>(i) * 7 + step * 1000 + salt) % 16'777'213);
  }
  return Tensor::from(values, shape);
}

// A training state of which every part tells the step it is of.
CheckpointContents contents_of(int64_t step, int64_t width = 40'000) {
  CheckpointContents c;
  c.state.step = step;
  c.state.epoch = step / 10;
  c.state.batch_in_epoch = step % 10;
  c.state.counters = {{"schedule.applied", step - 1}, {"sampler.position", step * 17}};
  c.state.values = {{"scaler.scale", 65536.0 + static_cast<double>(step)}};
  c.state.texts = {{"sampler", fmt::format("order of step {}", step)}};
  c.state.random = {{"dropout", {~uint64_t{0}, uint64_t{1} << 63, static_cast<uint64_t>(step)}}};
  c.state.settings_hash = "a1b2";
  c.model = {{"conv1.weight", ramp({4, 3, 3, 2}, step, 1), ExportLayout::oihw},
             {"fc.weight", ramp({2, width}, step, 2), ExportLayout::in_out},
             {"fc.bias", ramp({2}, step, 3)}};
  c.optimizer = {{"fc.weight.m", ramp({2, width}, step, 4)}, {"fc.bias.m", ramp({2}, step, 5)}};
  return c;
}

// Fails unless all parts of the checkpoint are of its step.
void expect_of_one_step(const Checkpoint& checkpoint, int64_t width = 40'000) {
  const CheckpointContents expected = contents_of(checkpoint.state.step, width);
  const TrainingState& state = checkpoint.state;
  EXPECT_EQ(state.epoch, expected.state.epoch);
  EXPECT_EQ(state.batch_in_epoch, expected.state.batch_in_epoch);
  EXPECT_EQ(state.counters, expected.state.counters);
  EXPECT_EQ(state.values, expected.state.values);
  EXPECT_EQ(state.texts, expected.state.texts);
  EXPECT_EQ(state.random, expected.state.random);
  EXPECT_EQ(state.settings_hash, expected.state.settings_hash);
  const auto compare = [](const SafetensorsFile& file, const std::vector<NamedTensor>& tensors) {
    std::vector<NamedTensor> loaded;
    for (const NamedTensor& t : tensors) {
      loaded.push_back({t.name, ramp(t.tensor.shape(), -1, 0), t.layout});
    }
    EXPECT_EQ(load_tensors(file, loaded).loaded, static_cast<int64_t>(tensors.size()));
    for (size_t i = 0; i < tensors.size(); ++i) {
      EXPECT_EQ(loaded[i].tensor.to_vector<float>(), tensors[i].tensor.to_vector<float>())
          << tensors[i].name;
    }
  };
  compare(checkpoint.model, expected.model);
  compare(checkpoint.optimizer, expected.optimizer);
}

class CheckpointFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    // Thousands of fsync calls: in memory they cost nothing, and death of a process is seen as
    // well.
    const fs::path memory = "/dev/shm";
    const bool usable = ::access(memory.c_str(), W_OK) == 0;
    std::string name =
        ((usable ? memory : fs::temp_directory_path()) / "crucible-checkpoint-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    top_ = name;
    root_ = top_ / "checkpoints";
  }
  void TearDown() override {
    set_file_fault_hook({});
    fs::remove_all(top_);
  }
  std::set<std::string> names() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(root_)) {
      names.insert(entry.path().filename().string());
    }
    return names;
  }
  // Steps 1 and 2, from scratch.
  void start_with_two(int64_t width = 40'000) {
    fs::remove_all(root_);
    save_checkpoint(root_, contents_of(1, width), 2);
    save_checkpoint(root_, contents_of(2, width), 2);
  }
  fs::path top_, root_;
};

void flip_bit(const fs::path& path, size_t at, int bit) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(at));
  const int c = file.get();
  file.seekp(static_cast<std::streamoff>(at));
  file.put(static_cast<char>(c ^ (1 << bit)));
}

TEST_F(CheckpointFolder, RestoresEveryPart) {
  EXPECT_FALSE(open_newest_checkpoint(root_).has_value());
  const SavedCheckpoint saved = save_checkpoint(root_, contents_of(123));
  EXPECT_EQ(saved.folder, root_ / "step-00000123");
  EXPECT_THAT(saved.warnings, IsEmpty());
  const auto checkpoint = open_newest_checkpoint(root_);
  ASSERT_TRUE(checkpoint.has_value());
  EXPECT_EQ(checkpoint->folder, saved.folder);
  EXPECT_THAT(checkpoint->warnings, IsEmpty());
  EXPECT_EQ(checkpoint->state.step, 123);
  expect_of_one_step(*checkpoint);
}

TEST_F(CheckpointFolder, RestoresUnusualNumbersBitForBit) {
  CheckpointContents c = contents_of(1);
  const std::map<std::string, double> values = {
      {"tiny", 5e-324},
      {"third", 1.0 / 3},
      {"minus zero", -0.0},
      {"large", 1.7976931348623157e308},
      {"inf", std::numeric_limits<double>::infinity()},
      {"minus inf", -std::numeric_limits<double>::infinity()}};
  c.state.values = values;
  c.state.values["nan"] = std::numeric_limits<double>::quiet_NaN();
  c.state.counters = {{"min", INT64_MIN}, {"max", INT64_MAX}};
  c.state.texts = {{"quotes \" and \u00fc", "line\nline\\"}};
  save_checkpoint(root_, c);
  const TrainingState state = open_newest_checkpoint(root_)->state;
  for (const auto& [name, value] : values) {
    EXPECT_EQ(std::bit_cast<uint64_t>(state.values.at(name)), std::bit_cast<uint64_t>(value))
        << name;
  }
  EXPECT_TRUE(std::isnan(state.values.at("nan")));
  EXPECT_EQ(state.counters, c.state.counters);
  EXPECT_EQ(state.texts, c.state.texts);
}

TEST_F(CheckpointFolder, KeepsTheLastOnes) {
  for (int64_t step : {5, 1, 2, 3, 4}) save_checkpoint(root_, contents_of(step, 1), 2);
  // Step 5 is of a run that was wound back; it is not this run's to remove.
  EXPECT_THAT(names(), ElementsAre("step-00000003", "step-00000004", "step-00000005"));
  save_checkpoint(root_, contents_of(6, 1), 1);
  EXPECT_THAT(names(), ElementsAre("step-00000006"));
}

TEST_F(CheckpointFolder, LeavesOtherFilesAlone) {
  fs::create_directories(root_ / "step-12");
  fs::create_directories(root_ / "step-00000001.tmp-x");
  fs::create_directories(root_ / "step-00000001.old-");
  fs::create_directories(root_ / "step-99999999999999999999");
  std::ofstream(root_ / "notes.txt") << "mine";
  fs::create_directories(root_ / "step-00000001.tmp-123/inner");
  save_checkpoint(root_, contents_of(7, 1), 1);
  EXPECT_THAT(names(), ElementsAre("notes.txt", "step-00000001.old-", "step-00000001.tmp-x",
                                   "step-00000007", "step-12", "step-99999999999999999999"));
  EXPECT_EQ(open_newest_checkpoint(root_)->state.step, 7);
}

TEST_F(CheckpointFolder, SavingAStepAgainReplacesIt) {
  save_checkpoint(root_, contents_of(7, 1));
  CheckpointContents c = contents_of(7, 1);
  c.state.settings_hash = "new";
  save_checkpoint(root_, c);
  EXPECT_EQ(open_newest_checkpoint(root_)->state.settings_hash, "new");
  EXPECT_THAT(names(), ElementsAre("step-00000007"));
}

TEST_F(CheckpointFolder, ASetMovedAsideWhenTheProcessDiedIsFound) {
  save_checkpoint(root_, contents_of(7, 1));
  fs::rename(root_ / "step-00000007", root_ / "step-00000007.old-4711");
  const auto checkpoint = open_newest_checkpoint(root_);
  ASSERT_TRUE(checkpoint.has_value());
  expect_of_one_step(*checkpoint, 1);
  save_checkpoint(root_, contents_of(8, 1));
  EXPECT_THAT(names(), ElementsAre("step-00000008"));
}

TEST_F(CheckpointFolder, RefusesWhatItCannotKeep) {
  EXPECT_THROW(save_checkpoint(root_, contents_of(1, 1), 0), InvalidArgument);
  EXPECT_THROW(save_checkpoint(root_, contents_of(-1, 1)), InvalidArgument);
  CheckpointContents c = contents_of(1, 1);
  c.state.settings_hash = "\xff";
  EXPECT_THAT([&] { save_checkpoint(root_, c); },
              ThrowsMessage<InvalidArgument>(HasSubstr("UTF-8")));
  c = contents_of(1, 1);
  c.state.texts["long"] = std::string(1 << 20, 'x');
  EXPECT_THAT([&] { save_checkpoint(root_, c); },
              ThrowsMessage<InvalidArgument>(HasSubstr("keep at most 1048576")));
  EXPECT_THAT(names(), IsEmpty());
  std::ofstream(top_ / "file") << "x";
  EXPECT_THROW(save_checkpoint(top_ / "file", contents_of(1, 1)), IoError);
}

// ---- Damage -------------------------------------------------------------------------------------

TEST_F(CheckpointFolder, AnyDamagedByteLeadsBackToThePrevious) {
  start_with_two(1);
  for (const char* name : {"model.safetensors", "optimizer.safetensors", "state.json"}) {
    const fs::path path = root_ / "step-00000002" / name;
    for (size_t at = 0; at < fs::file_size(path); ++at) {
      const int bit = static_cast<int>(at % 8);
      flip_bit(path, at, bit);
      const auto checkpoint = open_newest_checkpoint(root_);
      flip_bit(path, at, bit);
      ASSERT_TRUE(checkpoint.has_value());
      if (checkpoint->state.step == 2) {  // blanks of the JSON text may change, nothing else
        ASSERT_STREQ(name, "state.json");
        expect_of_one_step(*checkpoint, 1);
      } else {
        EXPECT_EQ(checkpoint->state.step, 1);
        ASSERT_EQ(checkpoint->warnings.size(), 1u);
        EXPECT_THAT(checkpoint->warnings[0], HasSubstr(name));
        EXPECT_THAT(checkpoint->warnings[0],
                    HasSubstr(" Going back to " + (root_ / "step-00000001").string()));
      }
    }
  }
}

TEST_F(CheckpointFolder, AFileCutAnywhereOrMissingLeadsBackToThePrevious) {
  start_with_two(1);
  for (const char* name : {"model.safetensors", "optimizer.safetensors", "state.json"}) {
    const fs::path path = root_ / "step-00000002" / name;
    const uintmax_t size = fs::file_size(path);
    fs::copy_file(path, top_ / "copy", fs::copy_options::overwrite_existing);
    for (uintmax_t cut = size - (path.extension() == ".json" ? 2 : 1);; --cut) {
      fs::resize_file(path, cut);
      EXPECT_EQ(open_newest_checkpoint(root_)->state.step, 1) << name << " cut at " << cut;
      if (cut == 0) break;
    }
    fs::remove(path);
    EXPECT_THAT(open_newest_checkpoint(root_)->warnings, ElementsAre(HasSubstr("open failed")));
    fs::copy_file(top_ / "copy", path);
    EXPECT_EQ(open_newest_checkpoint(root_)->state.step, 2);
  }
}

TEST_F(CheckpointFolder, FilesOfTwoStepsAreNeverMixed) {
  for (const char* name : {"model.safetensors", "optimizer.safetensors"}) {
    start_with_two(1);
    fs::copy_file(root_ / "step-00000001" / name, root_ / "step-00000002" / name,
                  fs::copy_options::overwrite_existing);
    const auto checkpoint = open_newest_checkpoint(root_);
    EXPECT_EQ(checkpoint->state.step, 1);
    EXPECT_THAT(checkpoint->warnings,
                ElementsAre(HasSubstr("the file is damaged or of another checkpoint")));
  }
  start_with_two(1);
  fs::copy_file(root_ / "step-00000001/state.json", root_ / "step-00000002/state.json",
                fs::copy_options::overwrite_existing);
  EXPECT_EQ(open_newest_checkpoint(root_)->folder, root_ / "step-00000001");
  start_with_two(1);
  fs::rename(root_ / "step-00000002", root_ / "step-00000009");
  EXPECT_THAT(open_newest_checkpoint(root_)->warnings, ElementsAre(HasSubstr("it holds step 2")));
}

TEST_F(CheckpointFolder, HostileStateIsRefused) {
  start_with_two(1);
  const std::string deep = std::string(400'000, '[');
  for (const std::string& text :
       {std::string(), std::string("{}"), std::string("[]"), std::string("null"), deep,
        R"({"crc32":0,"state":)" + deep + std::string(400'000, ']') + "}",
        std::string(R"({"crc32":"00000000","state":{"step":1e999}})"),
        std::string(R"({"crc32":"00000000","state":{"step":2}})"), std::string(1 << 21, ' ')}) {
    std::ofstream(root_ / "step-00000002/state.json") << text;
    EXPECT_EQ(open_newest_checkpoint(root_)->state.step, 1) << text.substr(0, 40);
    fs::remove_all(root_ / "step-00000001.copy");
  }
}

TEST_F(CheckpointFolder, NoneWholeIsAnErrorAndNotAFreshStart) {
  start_with_two(1);
  fs::remove(root_ / "step-00000001/state.json");
  flip_bit(root_ / "step-00000002/model.safetensors", 200, 3);
  EXPECT_THAT([&] { open_newest_checkpoint(root_); },
              ThrowsMessage<IoError>(HasSubstr("none of 2 checkpoints is whole")));
}

// ---- Death and failing calls --------------------------------------------------------------------

TEST_F(CheckpointFolder, DeathAtEveryCallLeavesOneWholeSet) {
  int at = 0, found_old = 0, found_new = 0;
  for (bool died = true; died; ++at) {
    start_with_two();
    const pid_t child = ::fork();
    if (child == 0) {
      int calls = 0;
      set_file_fault_hook([&](FileCall, size_t&) {
        if (calls++ == at) ::_exit(9);  // no destructor runs, as after kill -9
        return 0;
      });
      save_checkpoint(root_, contents_of(3), 2);
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    died = WEXITSTATUS(status) == 9;
    SCOPED_TRACE(fmt::format("death at call {}", at));

    const auto checkpoint = open_newest_checkpoint(root_);
    ASSERT_TRUE(checkpoint.has_value());
    EXPECT_THAT(checkpoint->warnings, IsEmpty());
    EXPECT_TRUE(checkpoint->state.step == 2 || checkpoint->state.step == 3);
    ++(checkpoint->state.step == 2 ? found_old : found_new);
    expect_of_one_step(*checkpoint);
    EXPECT_THAT(save_checkpoint(root_, contents_of(4), 2).warnings, IsEmpty());
    EXPECT_EQ(names().size(), 2u) << "temporaries were not cleaned";
    EXPECT_EQ(open_newest_checkpoint(root_)->state.step, 4);
  }
  EXPECT_GE(found_old, 18);  // three files of open, write, fsync, close, and the folder
  EXPECT_GE(found_new, 8);   // syncing the rename, removing step 1
}

TEST_F(CheckpointFolder, DeathWhileReplacingAStepLeavesOneWholeSet) {
  int at = 0;
  for (bool died = true; died; ++at) {
    fs::remove_all(root_);
    save_checkpoint(root_, contents_of(3), 1);
    const pid_t child = ::fork();
    if (child == 0) {
      int calls = 0;
      set_file_fault_hook([&](FileCall, size_t&) {
        if (calls++ == at) ::_exit(9);
        return 0;
      });
      save_checkpoint(root_, contents_of(3), 1);
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    died = WEXITSTATUS(status) == 9;
    const auto checkpoint = open_newest_checkpoint(root_);
    ASSERT_TRUE(checkpoint.has_value()) << "death at call " << at;
    expect_of_one_step(*checkpoint);
  }
  EXPECT_GE(at, 25);
}

TEST_F(CheckpointFolder, KilledAtRandomMomentsNothingCommittedIsLost) {
  unsigned seed = 12345;
  int64_t newest = 1;
  save_checkpoint(root_, contents_of(newest), 2);
  for (int round = 0; round < 20; ++round) {
    int pipe_ends[2];
    ASSERT_EQ(::pipe(pipe_ends), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      for (int64_t step = newest + 1;; ++step) {
        save_checkpoint(root_, contents_of(step), 2);
        if (::write(pipe_ends[1], &step, sizeof step) != sizeof step) ::_exit(1);
      }
    }
    ::close(pipe_ends[1]);
    ::usleep(::rand_r(&seed) % 60'000);
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status));
    for (int64_t step = 0; ::read(pipe_ends[0], &step, sizeof step) == sizeof step;) newest = step;
    ::close(pipe_ends[0]);

    const auto checkpoint = open_newest_checkpoint(root_);
    ASSERT_TRUE(checkpoint.has_value());
    EXPECT_THAT(checkpoint->warnings, IsEmpty());
    // At least what the child was told is safe; at most the one it was working on.
    EXPECT_GE(checkpoint->state.step, newest);
    EXPECT_LE(checkpoint->state.step, newest + 1);
    expect_of_one_step(*checkpoint);
    newest = checkpoint->state.step;
  }
}

TEST_F(CheckpointFolder, AFailingCallLeavesThePreviousIntact) {
  constexpr int short_then_full = -1;  // a short write, and no space for the rest
  start_with_two();
  int total = 0;
  set_file_fault_hook([&](FileCall, size_t&) { return ++total, 0; });
  save_checkpoint(root_, contents_of(3), 2);
  set_file_fault_hook({});
  ASSERT_GE(total, 30);
  for (int error : {ENOSPC, EIO, EDQUOT, short_then_full}) {
    for (int at = 0; at < total; ++at) {
      SCOPED_TRACE(fmt::format("call {} of {}, error {}", at, total, error));
      start_with_two();
      int calls = 0;
      set_file_fault_hook([&](FileCall call, size_t& bytes) {
        const int now = calls++;
        if (error != short_then_full) return now == at ? error : 0;
        if (now == at && call == FileCall::write) bytes /= 2;
        return now > at && call == FileCall::write ? ENOSPC : 0;
      });
      bool saved = false;
      try {
        const SavedCheckpoint report = save_checkpoint(root_, contents_of(3), 2);
        saved = true;
        // A fault that did not stop the save hit the cleaning up, and is told.
        EXPECT_EQ(report.warnings.size(), error == short_then_full ? 0u : 1u);
      } catch (const IoError& failure) {
        EXPECT_THAT(failure.what(),
                    HasSubstr(error == short_then_full ? strerror(ENOSPC) : strerror(error)));
      }
      set_file_fault_hook({});
      const auto newest = open_newest_checkpoint(root_);
      ASSERT_TRUE(newest.has_value());
      EXPECT_THAT(newest->warnings, IsEmpty());
      EXPECT_TRUE(newest->state.step == 3 || (newest->state.step == 2 && !saved));
      expect_of_one_step(*newest);
      if (at % 8 == 0) expect_of_one_step(open_checkpoint(root_ / "step-00000002"));
      // The disk works again: the next save is complete and nothing is left behind.
      EXPECT_THAT(save_checkpoint(root_, contents_of(4, 1), 1).warnings, IsEmpty());
      EXPECT_THAT(names(), ElementsAre("step-00000004"));
    }
  }
}

TEST_F(CheckpointFolder, AFailingReadNeverGivesAMixture) {
  start_with_two();
  int total = 0;
  set_file_fault_hook([&](FileCall, size_t&) { return ++total, 0; });
  open_newest_checkpoint(root_);
  set_file_fault_hook({});
  ASSERT_GE(total, 7);
  for (int at = 0; at < total; ++at) {
    int calls = 0;
    set_file_fault_hook([&](FileCall, size_t&) { return calls++ == at ? EIO : 0; });
    const auto checkpoint = open_newest_checkpoint(root_);
    set_file_fault_hook({});
    ASSERT_TRUE(checkpoint.has_value());
    EXPECT_EQ(checkpoint->state.step, 1) << at;
    EXPECT_THAT(checkpoint->warnings, ElementsAre(HasSubstr(strerror(EIO))));
    expect_of_one_step(*checkpoint);
  }
}

// ---- Resuming -----------------------------------------------------------------------------------

// A small noisy descent whose next step depends on weights, momentum, counters and random numbers.
std::vector<float> descend(const fs::path& root, int64_t until, bool resume) {
  CheckpointContents c;
  std::vector<float> w(50, 1.0f), m(50, 0.0f);
  c.state.random["noise"] = {42, 7, 0};
  c.state.values["lr"] = 0.1;
  if (resume) {
    const auto checkpoint = open_newest_checkpoint(root);
    c.state = checkpoint->state;
    w = checkpoint->model.read("w").to_vector<float>();
    m = checkpoint->optimizer.read("m").to_vector<float>();
  }
  while (c.state.step < until) {
    Rng rng(c.state.random["noise"]);
    for (size_t i = 0; i < w.size(); ++i) {
      m[i] = 0.9f * m[i] + w[i] + 0.1f * rng.normal();
      w[i] -= static_cast<float>(c.state.values["lr"]) * m[i];
    }
    c.state.random["noise"].offset += 100;
    c.state.values["lr"] *= 0.97;
    ++c.state.step;
    c.model = {{"w", Tensor::from(w, {50})}};
    c.optimizer = {{"m", Tensor::from(m, {50})}};
    save_checkpoint(root, c, 2);
  }
  return w;
}

TEST_F(CheckpointFolder, AResumedRunEqualsTheUninterruptedOne) {
  const std::vector<float> whole = descend(top_ / "whole", 12, false);
  for (int64_t stop : {1, 5, 11}) {
    const fs::path root = top_ / fmt::format("stopped-{}", stop);
    descend(root, stop, false);
    EXPECT_EQ(descend(root, 12, true), whole) << "stopped at " << stop;
  }
}

}  // namespace
}  // namespace crucible::models
