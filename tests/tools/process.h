/// Runs the `train` binary as a user would, and looks at what it did.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace crucible::test {

struct Finished {
  int exit_code = -1;  ///< Negative: the signal that ended it.
  std::string out, err;
  double seconds = 0;
  double processor_seconds = 0;  ///< What other work on the machine does not change.
};

/// Whether this machine has pseudo-terminals; a bare root without /dev/pts has none.
bool terminals_exist();

/// `train` with these arguments, running.
class Running {
 public:
  enum class Output { pipes, terminal };
  /// A terminal (of 100 columns) receives both streams as `out`.
  Running(const std::vector<std::string>& arguments, const std::filesystem::path& folder,
          Output output = Output::pipes);
  ~Running();
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  void send(int signal) const;
  /// Waits until standard output holds `text`; false after `seconds` or at its end.
  bool wait_for(const std::string& text, double seconds = 30);
  /// Waits for the end; kills after `seconds`.
  Finished finish(double seconds = 60);

 private:
  bool pump(double seconds);

  int pid_ = -1;
  int out_ = -1, err_ = -1;
  double begin_;
  Finished so_far_;
};

/// Runs `train` to its end.
Finished train(const std::vector<std::string>& arguments, const std::filesystem::path& folder);

/// A folder of its own for a test, removed at the end.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

std::string read_text(const std::filesystem::path& path);
nlohmann::json read_json(const std::filesystem::path& path);
/// Lines of metrics.jsonl of one type (empty: all).
std::vector<nlohmann::json> metrics(const std::filesystem::path& run, const std::string& type = "");

/// Writes MNIST-style files of `count` training and `count` / 2 test images of 8x8.
void write_idx(const std::filesystem::path& folder, int count);

/// Arguments joined.
std::vector<std::string> operator+(std::vector<std::string> a, const std::vector<std::string>& b);

}  // namespace crucible::test
