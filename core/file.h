/// Files read within a limit, and written so that a crash leaves the old contents or the new ones.
///
/// The promise holds against the death of the process at any moment.  Against the loss of power,
/// data and folder are passed to fsync in the order that POSIX asks for, and the rest is up to the
/// file system.  One process at a time may write to one target.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <vector>

namespace crucible {

/// CRC-32 of `bytes` (the one of zip, PNG and zlib).  Pass the result for the bytes before to go
/// on. Source    ISO 3309, reflected polynomial 0xEDB88320.
uint32_t crc32(std::span<const std::byte> bytes, uint32_t before = 0);

/// A regular file open for positioned reads.  Nothing is mapped: a file that shrinks is an error.
class InputFile {
 public:
  /// Throws    IoError if the file is missing, unreadable or not a regular file.
  explicit InputFile(std::filesystem::path path);
  ~InputFile();
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&& other) noexcept;

  const std::filesystem::path& path() const { return path_; }
  int64_t size() const { return size_; }  ///< Bytes, when it was opened.
  /// Fills `out` from `offset` on.
  /// Throws    IoError if the file ends before `out` is full.
  void read_at(int64_t offset, std::span<std::byte> out) const;
  /// CRC-32 of the whole file, read in small pieces.
  uint32_t crc32() const;

 private:
  std::filesystem::path path_;
  int64_t size_ = 0;
  int descriptor_ = -1;
};

/// The whole contents of a regular file.
/// Throws    IoError if it cannot be read or has more than `max_bytes`, which is checked first.
std::vector<std::byte> read_file(const std::filesystem::path& path, int64_t max_bytes);

/// A new file that is written from front to back.  Counts and checksums what passes.
class OutputFile {
 public:
  /// Creates the file or empties it; does not follow a symbolic link.
  explicit OutputFile(std::filesystem::path path);
  /// Closes without a promise; a file that matters is closed by `finish()`.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  void write(std::span<const std::byte> bytes);
  /// Writes what is buffered, waits until the disk has it, and closes.  Throws IoError.
  void finish();
  int64_t size() const { return size_; }     ///< Bytes passed to write().
  uint32_t crc32() const { return crc32_; }  ///< Of the bytes passed to write().

 private:
  void write_through(std::span<const std::byte> bytes);

  std::filesystem::path path_;
  std::vector<std::byte> buffer_;
  int64_t size_ = 0;
  uint32_t crc32_ = 0;
  int descriptor_ = -1;
};

/// Replaces `path` as one step: written to `<path>.tmp-<pid>`, synced, renamed.  If `path` is a
/// symbolic link, the link is replaced, not what it points to.
/// Throws    IoError; `path` then holds its old contents, or after the rename already the new ones.
void write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> contents);
/// The same with contents that `write` streams into the file.
void write_file_atomically(const std::filesystem::path& path,
                           const std::function<void(OutputFile&)>& write);

/// Commits a folder of files as one step: they are written to `<target>.tmp-<pid>`, and the rename
/// to `target` is the commit.  So no set of files is ever a mixture.
///
/// If `target` exists, it is first renamed to `<target>.old-<pid>`, and removed at the end.  A
/// process that dies between the two renames leaves the whole old set under that name.
class FolderCommit {
 public:
  /// Creates the temporary folder, and the folders above it; removes a temporary of the same name.
  explicit FolderCommit(std::filesystem::path target);
  /// Removes the temporary folder unless it was committed.  Never throws.
  ~FolderCommit();
  FolderCommit(const FolderCommit&) = delete;
  FolderCommit& operator=(const FolderCommit&) = delete;

  /// Where to put the files; each must have been closed by OutputFile::finish().
  const std::filesystem::path& folder() const { return temporary_; }
  /// Throws    IoError; if the rename had already happened, `committed()` is true.  That an old set
  ///           could not be removed is no error: its remains are under one of the two other names.
  void commit();
  bool committed() const { return committed_; }

 private:
  std::filesystem::path target_, temporary_;
  bool committed_ = false;
};

/// Creates `folder` and those above it that are missing.
void make_folders(const std::filesystem::path& folder);

/// Renames a file or a folder and waits until the disk has it.  An existing file is replaced.
void rename_durably(const std::filesystem::path& from, const std::filesystem::path& to);

/// Removes a file or a folder with all that is in it; symbolic links are removed, not followed.
/// Throws    IoError.  Something that does not exist is no error.
void remove_tree(const std::filesystem::path& path);

}  // namespace crucible
