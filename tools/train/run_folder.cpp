#include "tools/train/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <span>

#include "core/check.h"
#include "core/file.h"

namespace crucible::train {
namespace {

namespace fs = std::filesystem;

constexpr const char* own_files[] = {"settings.json", "metrics.jsonl", "summary.json",
                                     "checkpoints"};

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

/// The outermost folder on the way to `path` that does not exist.
fs::path first_missing(const fs::path& path) {
  std::error_code error;
  fs::path missing;
  for (fs::path p = path; !p.empty() && !fs::exists(fs::symlink_status(p, error));
       p = p.parent_path()) {
    missing = p;
    if (p == p.parent_path()) break;
  }
  return missing;
}

}  // namespace

FolderLock::~FolderLock() {
  if (descriptor_ >= 0) close(descriptor_);
}

void FolderLock::take(const fs::path& folder) {
  if (descriptor_ >= 0) return;
  descriptor_ = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool refused =
      descriptor_ >= 0 && flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  check(!refused, "train: --output {} is in use by another run; name another folder or wait.",
        folder.string());
}

RunFolder::RunFolder(fs::path path, Use use) : path_(std::move(path)) {
  std::error_code error;
  while (path_.has_relative_path() && path_.filename().empty()) path_ = path_.parent_path();
  const fs::file_status status = fs::status(path_, error);
  if (fs::exists(status)) {
    check<IoError>(fs::is_directory(status), "train: --output {} is a file; name a folder.",
                   path_.string());
    const bool empty = fs::is_empty(path_, error);
    check<IoError>(!error, "train: --output {} cannot be read: {}; name another folder.",
                   path_.string(), error.message());
    check(empty || use != Use::fresh,
          "train: --output {} is not empty; name another folder, go on with --resume auto, or "
          "replace the run with --overwrite.",
          path_.string());
    lock_.take(path_);
    if (use == Use::overwrite) {
      for (const char* name : own_files) remove_tree(path_ / name);
    }
  }
  created_ = first_missing(path_);
  try {
    make_folders(checkpoints());
    lock_.take(path_);
    open_metrics();
  } catch (const IoError& e) {
    discard_if_created();
    throw IoError(
        fmt::format("train: --output {} cannot be written to: {}", path_.string(), e.what()));
  }
}

void RunFolder::open_metrics() {
  const fs::path file = path_ / "metrics.jsonl";
  metrics_.reset(std::fopen(file.c_str(), "ae"));
  check<IoError>(metrics_ != nullptr, "{}: {}; check permissions and free space.", file.string(),
                 std::strerror(errno));
}

void RunFolder::write_settings(std::string_view json) const {
  write_file_atomically(path_ / "settings.json", bytes_of(json));
}

void RunFolder::write_summary(std::string_view json) const {
  write_file_atomically(path_ / "summary.json", bytes_of(json));
}

void RunFolder::append_metric(std::string_view json_line) {
  const bool written =
      std::fwrite(json_line.data(), 1, json_line.size(), metrics_.get()) == json_line.size() &&
      std::fputc('\n', metrics_.get()) != EOF && std::fflush(metrics_.get()) == 0;
  check<IoError>(written, "{}: writing failed: {}; check free space.",
                 (path_ / "metrics.jsonl").string(), std::strerror(errno));
}

int64_t RunFolder::metrics_bytes() const {
  std::error_code error;
  const auto size = fs::file_size(path_ / "metrics.jsonl", error);
  return error ? 0 : static_cast<int64_t>(size);
}

void RunFolder::truncate_metrics(int64_t bytes) {
  if (bytes < 0 || bytes >= metrics_bytes()) return;
  metrics_.reset();
  std::error_code error;
  fs::resize_file(path_ / "metrics.jsonl", static_cast<uintmax_t>(bytes), error);
  check<IoError>(!error, "{}: cannot be shortened: {}; check permissions.",
                 (path_ / "metrics.jsonl").string(), error.message());
  open_metrics();
}

void RunFolder::discard_if_created() {
  if (created_.empty()) return;
  metrics_.reset();
  std::error_code ignored;
  fs::remove_all(path_, ignored);
  // Folders above it go only if nothing else has come into them.
  for (fs::path p = path_; p != created_ && p.has_parent_path();) {
    p = p.parent_path();
    if (!fs::remove(p, ignored)) break;
  }
}

fs::path default_run_path(const std::string& model) {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  char date[16];
  std::strftime(date, sizeof date, "%Y%m%d", &local);
  for (int n = 1; n < 1'000'000; ++n) {
    const fs::path path = fs::path("runs") / fmt::format("{}-{}-{}", date, model, n);
    std::error_code error;
    if (!fs::exists(fs::symlink_status(path, error))) return path;
  }
  fail<IoError>("train: runs/ holds a million runs of {}; name a folder with --output.", date);
}

}  // namespace crucible::train
