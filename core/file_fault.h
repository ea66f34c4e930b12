/// Private: lets a test stop or fail any single system call of core/file.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace crucible {

enum class FileCall : uint8_t { open, read, write, fsync, close, mkdir, rename, unlink, rmdir };

/// Called before each system call.  It returns 0 to let the call happen or an errno to fail with;
/// it may lower `bytes` of a read or a write to make that call short, or end the process.
using FileFaultHook = std::function<int(FileCall call, size_t& bytes)>;

/// Installs a hook; an empty one removes it.  Only while no other thread uses files.
void set_file_fault_hook(FileFaultHook hook);

}  // namespace crucible
