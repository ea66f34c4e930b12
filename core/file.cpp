#include "core/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "core/check.h"
#include "core/file_fault.h"

namespace crucible {

namespace fs = std::filesystem;

namespace {

constexpr size_t buffer_bytes = 256 * 1024;
constexpr size_t largest_call_bytes = size_t{1} << 30;  // Linux moves at most 2 GiB - 4 KiB a call

FileFaultHook& fault_hook() {
  static FileFaultHook hook;
  return hook;
}

// Runs one system call, repeated while a signal interrupts it.  Returns its result, or -1 and
// errno.
template <class F>
auto system_call(FileCall call, size_t& bytes, F&& f) -> decltype(f()) {
  for (;;) {
    const int fault = fault_hook() ? fault_hook()(call, bytes) : 0;
    if (fault == 0) {
      const auto result = f();
      if (result >= 0 || errno != EINTR) return result;
    } else if (fault != EINTR) {
      errno = fault;
      return -1;
    }
  }
}

template <class F>
auto system_call(FileCall call, F&& f) -> decltype(f()) {
  size_t bytes = 0;
  return system_call(call, bytes, std::forward<F>(f));
}

const char* remedy(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return "free space or choose another folder";
    case EACCES:
    case EPERM:
    case EROFS:
      return "check the permissions";
    case ENOENT:
    case ENOTDIR:
      return "check the path";
    default:
      return "check the path and the disk";
  }
}

[[noreturn]] void fail_call(const fs::path& path, const char* what, int error = errno) {
  fail<IoError>("{}: {} failed: {}; {}.", path.native(), what, std::strerror(error), remedy(error));
}

void close_checked(const fs::path& path, int& descriptor) {
  const int fd = std::exchange(descriptor, -1);
  bool closed = false;
  const int result = system_call(FileCall::close, [&] {
    closed = true;
    // Linux has closed the descriptor even when a signal interrupts the call.
    return ::close(fd) == 0 || errno == EINTR ? 0 : -1;
  });
  if (result == 0) return;
  const int error = errno;
  if (!closed) ::close(fd);
  fail_call(path, "close", error);
}

fs::path parent_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

// The name of a temporary: in the same folder, so that a rename can move it.
fs::path beside(const fs::path& path, const char* tag) {
  return path.native() + fmt::format(".{}-{}", tag, ::getpid());
}

fs::path without_trailing_slash(fs::path path) {
  return path.has_filename() || !path.has_relative_path() ? path : path.parent_path();
}

// Makes the names in a folder durable.  File systems without that notion answer EINVAL.
void sync_folder(const fs::path& folder) {
  int fd = system_call(FileCall::open,
                       [&] { return ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
  if (fd < 0) fail_call(folder, "open folder");
  const int result = system_call(FileCall::fsync, [&] { return ::fsync(fd); });
  if (result != 0 && errno != EINVAL) {
    const int error = errno;
    ::close(fd);
    fail_call(folder, "sync folder", error);
  }
  close_checked(folder, fd);
}

void rename_checked(const fs::path& from, const fs::path& to) {
  if (system_call(FileCall::rename, [&] { return ::rename(from.c_str(), to.c_str()); }) != 0) {
    fail_call(to, "rename");
  }
}

// The same with no error raised: for clean-up after an error that is already on its way.
void remove_quietly(const fs::path& path) {
  try {
    remove_tree(path);
  } catch (const Error&) {
    // The next save cleans up; the error that brought us here matters more.
  }
}

// Tables for eight bytes a step: entry [k][b] is the CRC of byte b followed by k zero bytes.
constexpr std::array<std::array<uint32_t, 256>, 8> make_crc_tables() {
  std::array<std::array<uint32_t, 256>, 8> tables{};
  for (uint32_t b = 0; b < 256; ++b) {
    uint32_t c = b;
    for (int bit = 0; bit < 8; ++bit) c = (c >> 1) ^ (c & 1 ? 0xEDB88320u : 0u);
    tables[0][b] = c;
  }
  for (int k = 1; k < 8; ++k) {
    for (int b = 0; b < 256; ++b) {
      const uint32_t c = tables[k - 1][b];
      tables[k][b] = (c >> 8) ^ tables[0][c & 0xff];
    }
  }
  return tables;
}
constexpr auto crc_tables = make_crc_tables();

}  // namespace

void set_file_fault_hook(FileFaultHook hook) {
  fault_hook() = std::move(hook);
}

uint32_t crc32(std::span<const std::byte> bytes, uint32_t before) {
  uint32_t crc = ~before;
  const std::byte* p = bytes.data();
  size_t n = bytes.size();
  for (; n >= 8; n -= 8, p += 8) {
    std::array<uint8_t, 8> b;
    std::memcpy(b.data(), p, 8);
    for (int i = 0; i < 4; ++i) b[i] ^= static_cast<uint8_t>(crc >> (8 * i));
    crc = 0;
    for (int i = 0; i < 8; ++i) crc ^= crc_tables[7 - i][b[i]];
  }
  for (; n > 0; --n, ++p) {
    crc = (crc >> 8) ^ crc_tables[0][(crc ^ static_cast<uint32_t>(*p)) & 0xff];
  }
  return ~crc;
}

InputFile::InputFile(fs::path path) : path_(std::move(path)) {
  // Without O_NONBLOCK the open of a named pipe would wait for ever.
  descriptor_ = system_call(
      FileCall::open, [&] { return ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); });
  if (descriptor_ < 0) fail_call(path_, "open");
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(std::exchange(descriptor_, -1));
    fail<IoError>("{}: not a regular file; give the path of a file.", path_.native());
  }
  size_ = status.st_size;
}

InputFile::~InputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

InputFile::InputFile(InputFile&& other) noexcept
    : path_(std::move(other.path_)),
      size_(other.size_),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

InputFile& InputFile::operator=(InputFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(size_, other.size_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

void InputFile::read_at(int64_t offset, std::span<std::byte> out) const {
  for (size_t done = 0; done < out.size();) {
    size_t bytes = std::min(out.size() - done, largest_call_bytes);
    const ssize_t got = system_call(FileCall::read, bytes, [&] {
      return ::pread(descriptor_, out.data() + done, bytes,
                     static_cast<off_t>(offset + static_cast<int64_t>(done)));
    });
    if (got < 0) fail_call(path_, "read");
    check<IoError>(got > 0,
                   "{}: the file ends at byte {}, {} are needed; it is cut, fetch it again.",
                   path_.native(), offset + static_cast<int64_t>(done),
                   offset + static_cast<int64_t>(out.size()));
    done += static_cast<size_t>(got);
  }
}

uint32_t InputFile::crc32() const {
  std::vector<std::byte> piece(buffer_bytes);
  uint32_t crc = 0;
  for (int64_t done = 0; done < size_;) {
    const auto n = static_cast<size_t>(std::min<int64_t>(size_ - done, buffer_bytes));
    read_at(done, {piece.data(), n});
    crc = crucible::crc32({piece.data(), n}, crc);
    done += static_cast<int64_t>(n);
  }
  return crc;
}

std::vector<std::byte> read_file(const fs::path& path, int64_t max_bytes) {
  const InputFile file(path);
  check<IoError>(
      file.size() <= max_bytes,
      "{}: the file is too large: {} bytes, at most {} are accepted; check that it is the "
      "right file.",
      path.native(), file.size(), max_bytes);
  std::vector<std::byte> bytes(static_cast<size_t>(file.size()));
  file.read_at(0, bytes);
  return bytes;
}

OutputFile::OutputFile(fs::path path) : path_(std::move(path)) {
  buffer_.reserve(buffer_bytes);
  descriptor_ = system_call(FileCall::open, [&] {
    return ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
  });
  if (descriptor_ < 0) fail_call(path_, "create");
}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void OutputFile::write_through(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    size_t n = std::min(bytes.size(), largest_call_bytes);
    const ssize_t put =
        system_call(FileCall::write, n, [&] { return ::write(descriptor_, bytes.data(), n); });
    if (put < 0) fail_call(path_, "write");
    if (put == 0) fail_call(path_, "write", ENOSPC);  // no progress, no reason given
    bytes = bytes.subspan(static_cast<size_t>(put));
  }
}

void OutputFile::write(std::span<const std::byte> bytes) {
  size_ += static_cast<int64_t>(bytes.size());
  crc32_ = crucible::crc32(bytes, crc32_);
  if (buffer_.size() + bytes.size() > buffer_bytes) {
    write_through(buffer_);
    buffer_.clear();
  }
  if (bytes.size() >= buffer_bytes) {
    write_through(bytes);
  } else {
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  }
}

void OutputFile::finish() {
  write_through(buffer_);
  buffer_.clear();
  if (system_call(FileCall::fsync, [&] { return ::fsync(descriptor_); }) != 0) {
    fail_call(path_, "sync");
  }
  close_checked(path_, descriptor_);
}

void write_file_atomically(const fs::path& path, const std::function<void(OutputFile&)>& write) {
  const fs::path temporary = beside(path, "tmp");
  try {
    OutputFile file(temporary);
    write(file);
    file.finish();
    rename_checked(temporary, path);
  } catch (...) {
    remove_quietly(temporary);
    throw;
  }
  sync_folder(parent_of(path));
}

void write_file_atomically(const fs::path& path, std::span<const std::byte> contents) {
  write_file_atomically(path, [&](OutputFile& file) { file.write(contents); });
}

FolderCommit::FolderCommit(fs::path target)
    : target_(without_trailing_slash(std::move(target))), temporary_(beside(target_, "tmp")) {
  make_folders(parent_of(target_));
  remove_tree(temporary_);
  if (system_call(FileCall::mkdir, [&] { return ::mkdir(temporary_.c_str(), 0777); }) != 0) {
    fail_call(temporary_, "create folder");
  }
}

FolderCommit::~FolderCommit() {
  if (!committed_) remove_quietly(temporary_);
}

void FolderCommit::commit() {
  sync_folder(temporary_);
  const fs::path old = beside(target_, "old");
  std::error_code ignored;
  const bool replaces = fs::exists(fs::symlink_status(target_, ignored));
  if (replaces) {
    remove_tree(old);
    rename_checked(target_, old);
  }
  try {
    rename_checked(temporary_, target_);
  } catch (const Error&) {
    if (replaces) ::rename(old.c_str(), target_.c_str());
    throw;
  }
  committed_ = true;
  sync_folder(parent_of(target_));
  if (!replaces) return;
  try {
    rename_checked(old, temporary_);  // half removed, it must not pass for a whole set
    remove_tree(temporary_);
  } catch (const IoError&) {
    // The new set is safe; what is left of the old one is recognised by its name.
  }
}

void make_folders(const fs::path& folder) {
  std::error_code error;
  if (folder.empty() || fs::is_directory(folder, error)) return;
  const fs::path path = without_trailing_slash(folder);
  make_folders(parent_of(path));
  const int result = system_call(FileCall::mkdir, [&] { return ::mkdir(path.c_str(), 0777); });
  if (result != 0 && errno == EEXIST && fs::is_directory(path, error)) return;
  if (result != 0) fail_call(path, "create folder");
  sync_folder(parent_of(path));
}

void rename_durably(const fs::path& from, const fs::path& to) {
  rename_checked(from, to);
  sync_folder(parent_of(to));
}

void remove_tree(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::symlink_status(path, error);
  if (!fs::exists(status)) return;
  if (!fs::is_directory(status)) {
    if (system_call(FileCall::unlink, [&] { return ::unlink(path.c_str()); }) != 0 &&
        errno != ENOENT) {
      fail_call(path, "remove");
    }
    return;
  }
  std::vector<fs::path> inside;
  for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
    inside.push_back(it->path());
  }
  if (error) fail_call(path, "list folder", error.value());
  for (const fs::path& entry : inside) remove_tree(entry);
  if (system_call(FileCall::rmdir, [&] { return ::rmdir(path.c_str()); }) != 0 && errno != ENOENT) {
    fail_call(path, "remove folder");
  }
}

}  // namespace crucible
