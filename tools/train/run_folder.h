/// The folder in which a run leaves what it did.
///
///     settings.json    effective settings, read back from the objects in use
///     metrics.jsonl    one JSON object a line: steps, evaluations, checkpoints
///     summary.json     the result record
///     checkpoints/     step-00000123, ...
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace crucible::train {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

/// Keeps other processes from writing to a folder; ends with the object or the process.
class FolderLock {
 public:
  FolderLock() = default;
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  /// Throws    InvalidArgument if another process holds it.  File systems without locks are let be.
  void take(const std::filesystem::path& folder);

 private:
  int descriptor_ = -1;
};

class RunFolder {
 public:
  enum class Use : uint8_t {
    fresh,      ///< Refuse a folder that holds anything.
    overwrite,  ///< Remove the files of a run that is there; touch no others.
    resume,     ///< Go on in it.
  };

  /// Creates the folder and proves that it can be written to.
  /// Throws    IoError, InvalidArgument if it holds something that may not be touched, or if
  /// another
  ///           process trains in it.
  RunFolder(std::filesystem::path path, Use use);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path checkpoints() const { return path_ / "checkpoints"; }

  /// Throws    IoError.
  void write_settings(std::string_view json) const;
  void write_summary(std::string_view json) const;
  void append_metric(std::string_view json_line);
  /// Length of metrics.jsonl so far.
  int64_t metrics_bytes() const;
  /// Forgets the lines after the first `bytes` bytes, which a run that was wound back left.
  void truncate_metrics(int64_t bytes);
  /// Removes the folder if this object created it.  Never throws.
  void discard_if_created();

 private:
  void open_metrics();

  std::filesystem::path path_;
  std::filesystem::path created_;  ///< The outermost folder that was missing; empty if none.
  std::unique_ptr<std::FILE, CloseFile> metrics_;
  FolderLock lock_;
};

/// runs/<date>-<model>-<n> with the smallest n that is not taken.
std::filesystem::path default_run_path(const std::string& model);

}  // namespace crucible::train
