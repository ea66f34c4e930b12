#include "core/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>

#include "core/error.h"
#include "core/file_fault.h"

namespace crucible {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string text_of(const fs::path& path) {
  const std::vector<std::byte> bytes = read_file(path, 1 << 24);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class File : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "crucible-file-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override {
    set_file_fault_hook({});
    fs::remove_all(folder_);
  }
  int64_t entries() const {
    return std::distance(fs::directory_iterator(folder_), fs::directory_iterator());
  }
  fs::path folder_;
};

// Fails call number `at` (from 0) with `error`, or with error 0 makes a write there one byte long.
// Counts all calls.
struct NthCall {
  int at;
  int error;
  int calls = 0;
  int operator()(FileCall call, size_t& bytes) {
    if (calls++ != at) return 0;
    if (error == 0 && call == FileCall::write) bytes = std::min<size_t>(bytes, 1);
    return error;
  }
};

TEST_F(File, Crc32HasThePublishedCheckValue) {
  EXPECT_EQ(crc32(bytes_of("123456789")), 0xCBF43926u);
  EXPECT_EQ(crc32(bytes_of("")), 0u);
  const std::string text = "The quick brown fox jumps over the lazy dog";
  EXPECT_EQ(crc32(bytes_of(text)), 0x414FA339u);
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    EXPECT_EQ(crc32(bytes_of(text.substr(cut)), crc32(bytes_of(text.substr(0, cut)))), 0x414FA339u);
  }
}

TEST_F(File, ReadsBackWhatWasWritten) {
  std::string text(1'000'003, 'x');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 31 >> 3);
  OutputFile out(folder_ / "a");
  for (size_t at = 0, n = 1; at < text.size(); at += n, n = n * 3 + 1) {
    n = std::min(n, text.size() - at);
    out.write(bytes_of(std::string_view(text).substr(at, n)));
  }
  out.finish();
  EXPECT_EQ(out.size(), 1'000'003);
  EXPECT_EQ(out.crc32(), crc32(bytes_of(text)));
  EXPECT_EQ(InputFile(folder_ / "a").crc32(), out.crc32());
  EXPECT_EQ(text_of(folder_ / "a"), text);
}

TEST_F(File, ReadRefusesMoreThanTheLimit) {
  write_file_atomically(folder_ / "a", bytes_of("12345"));
  EXPECT_EQ(read_file(folder_ / "a", 5).size(), 5u);
  EXPECT_THAT([&] { read_file(folder_ / "a", 4); },
              ThrowsMessage<IoError>(HasSubstr("a: the file is too large: 5 bytes, at most 4")));
}

TEST_F(File, ReadRefusesWhatIsNoFile) {
  EXPECT_THAT([&] { read_file(folder_ / "none", 9); },
              ThrowsMessage<IoError>(HasSubstr("none: open failed: No such file or directory")));
  EXPECT_THAT([&] { read_file(folder_, 9); },
              ThrowsMessage<IoError>(HasSubstr("not a regular file")));
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_THAT([&] { read_file(folder_ / "pipe", 9); },  // must not wait for a writer
              ThrowsMessage<IoError>(HasSubstr("not a regular file")));
  EXPECT_THROW(read_file("/dev/zero", 9), IoError);
}

TEST_F(File, AFileThatShrinksIsAnError) {
  write_file_atomically(folder_ / "a", bytes_of("12345"));
  const InputFile file(folder_ / "a");
  fs::resize_file(folder_ / "a", 3);
  std::vector<std::byte> out(5);
  EXPECT_THAT([&] { file.read_at(0, out); },
              ThrowsMessage<IoError>(HasSubstr("the file ends at byte 3, 5 are needed")));
}

TEST_F(File, InterruptedAndShortCallsAreContinued) {
  const std::string text(700'000, 'q');
  NthCall count{-1, 0};
  set_file_fault_hook(std::ref(count));
  write_file_atomically(folder_ / "a", bytes_of(text));
  for (int at = 0; at < count.calls; ++at) {
    for (int error : {0, EINTR}) {
      NthCall fault{at, error};
      set_file_fault_hook(std::ref(fault));
      write_file_atomically(folder_ / "b", bytes_of(text));
      set_file_fault_hook([&](FileCall call, size_t& bytes) {
        if (call == FileCall::read) bytes = (bytes + 1) / 2;
        return 0;
      });
      EXPECT_EQ(text_of(folder_ / "b"), text);
    }
  }
}

TEST_F(File, AtomicWriteKeepsTheOldContentsUnderEveryFault) {
  const fs::path path = folder_ / "a";
  const std::string old_text = "old", new_text(600'000, 'n');
  NthCall count{-1, 0};
  set_file_fault_hook(std::ref(count));
  write_file_atomically(folder_ / "a", bytes_of(new_text));
  ASSERT_GE(count.calls, 8);  // open, write, fsync, close, rename; open, fsync, close of the folder
  for (int error : {ENOSPC, EIO, EDQUOT, EACCES}) {
    for (int at = 0; at < count.calls; ++at) {
      set_file_fault_hook({});
      write_file_atomically(path, bytes_of(old_text));
      NthCall fault{at, error};
      set_file_fault_hook(std::ref(fault));
      EXPECT_THAT([&] { write_file_atomically(path, bytes_of(new_text)); },
                  ThrowsMessage<IoError>(HasSubstr(std::strerror(error))));
      set_file_fault_hook({});
      // The last three calls follow the rename.
      EXPECT_EQ(text_of(path), at < count.calls - 3 ? old_text : new_text) << at;
      EXPECT_EQ(entries(), 1) << at;
    }
  }
}

TEST_F(File, AtomicWriteSurvivesDeathAtEveryCall) {
  const fs::path path = folder_ / "a";
  const std::string old_text(300'000, 'o'), new_text(600'000, 'n');
  int deaths = 0;
  for (bool died = true; died; ++deaths) {
    write_file_atomically(path, bytes_of(old_text));
    const pid_t child = ::fork();
    if (child == 0) {
      int calls = 0;
      set_file_fault_hook([&](FileCall, size_t&) {
        if (calls++ == deaths) ::_exit(9);
        return 0;
      });
      write_file_atomically(path, bytes_of(new_text));
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    died = WEXITSTATUS(status) == 9;
    const std::string text = text_of(path);
    EXPECT_TRUE(text == old_text || text == new_text) << "death at call " << deaths;
  }
  EXPECT_GE(deaths, 9);
}

TEST_F(File, WritingThroughASymbolicLinkReplacesTheLink) {
  write_file_atomically(folder_ / "real", bytes_of("real"));
  fs::create_symlink(folder_ / "real", folder_ / "link");
  write_file_atomically(folder_ / "link", bytes_of("new"));
  EXPECT_EQ(text_of(folder_ / "real"), "real");
  EXPECT_EQ(text_of(folder_ / "link"), "new");
  EXPECT_FALSE(fs::is_symlink(folder_ / "link"));
}

void commit_set(const fs::path& target, const std::string& text) {
  FolderCommit commit(target);
  for (const char* name : {"a", "b"}) {
    OutputFile file(commit.folder() / name);
    file.write(bytes_of(text));
    file.finish();
  }
  commit.commit();
}

TEST_F(File, FolderAppearsOnlyWhenCommitted) {
  {
    FolderCommit commit(folder_ / "x/y/set");
    EXPECT_FALSE(fs::exists(folder_ / "x/y/set"));
    EXPECT_EQ(commit.folder().parent_path(), folder_ / "x/y");
  }
  EXPECT_TRUE(fs::is_empty(folder_ / "x/y"));
  commit_set(folder_ / "x/y/set/", "one");
  EXPECT_EQ(text_of(folder_ / "x/y/set/b"), "one");
}

TEST_F(File, FolderCommitReplacesAWholeSet) {
  commit_set(folder_ / "set", "one");
  commit_set(folder_ / "set", "two");
  EXPECT_EQ(text_of(folder_ / "set/a"), "two");
  EXPECT_EQ(entries(), 1);
}

// The set that a reader finds: `set`, or the one moved aside while it was being replaced.
std::string whole_set(const fs::path& folder) {
  fs::path found = folder / "set";
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (!fs::exists(folder / "set") && entry.path().filename().string().starts_with("set.old-")) {
      found = entry.path();
    }
  }
  const std::string a = text_of(found / "a");
  EXPECT_EQ(a, text_of(found / "b")) << "a mixed set";
  return a;
}

TEST_F(File, FolderCommitLeavesAWholeSetUnderEveryFault) {
  NthCall count{-1, 0};
  commit_set(folder_ / "set", "old");
  set_file_fault_hook(std::ref(count));
  commit_set(folder_ / "set", "new");
  ASSERT_GE(count.calls, 20);
  for (int error : {ENOSPC, EIO}) {
    for (int at = 0; at < count.calls; ++at) {
      set_file_fault_hook({});
      commit_set(folder_ / "set", "old");
      NthCall fault{at, error};
      set_file_fault_hook(std::ref(fault));
      bool returned = false;
      try {
        commit_set(folder_ / "set", "new");
        returned = true;  // only the removal of the old set failed
      } catch (const IoError&) {
      }
      set_file_fault_hook({});
      const std::string text = whole_set(folder_);
      EXPECT_TRUE(text == "new" || (text == "old" && !returned)) << at;
      for (const fs::directory_entry& entry : std::vector<fs::directory_entry>(
               fs::directory_iterator(folder_), fs::directory_iterator())) {
        if (entry.path().filename() != "set") remove_tree(entry.path());
      }
    }
  }
}

TEST_F(File, RemoveTreeRemovesLinksAndNotTheirTargets) {
  commit_set(folder_ / "keep", "kept");
  commit_set(folder_ / "gone", "gone");
  fs::create_directory_symlink(folder_ / "keep", folder_ / "gone/link");
  remove_tree(folder_ / "gone");
  remove_tree(folder_ / "gone");
  EXPECT_FALSE(fs::exists(folder_ / "gone"));
  EXPECT_EQ(text_of(folder_ / "keep/a"), "kept");
}

}  // namespace
}  // namespace crucible
