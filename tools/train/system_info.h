/// What the machine is, as far as it says itself.
#pragma once

#include <cstdint>
#include <string>

namespace crucible::train {

struct SystemInfo {
  std::string host_processor_model_name;  ///< Empty if the system does not tell.
  int64_t host_processors = 0;            ///< Logical processors that this process may use.
  int64_t host_memory_capacity = 0;       ///< Bytes; 0 if the system does not tell.
  std::string operating_system;           ///< "Linux 6.1.0-18-amd64 x86_64"
};

SystemInfo system_info();

/// Most memory that this process has held so far, bytes (VmHWM); 0 if the system does not tell.
int64_t peak_process_bytes();

}  // namespace crucible::train
