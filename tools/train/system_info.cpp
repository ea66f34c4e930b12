#include "tools/train/system_info.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <fstream>

namespace crucible::train {
namespace {

/// The text after "key<spaces>:" in a file of such lines; empty if there is none.
std::string field(const char* path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    const size_t colon = line.find(':');
    const size_t begin = line.find_first_not_of(" \t", colon + 1);
    if (colon != std::string::npos && begin != std::string::npos) return line.substr(begin);
  }
  return "";
}

}  // namespace

SystemInfo system_info() {
  SystemInfo info;
  info.host_processor_model_name = field("/proc/cpuinfo", "model name");
  cpu_set_t set;
  CPU_ZERO(&set);
  info.host_processors =
      sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : sysconf(_SC_NPROCESSORS_ONLN);
  const int64_t pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  if (pages > 0 && page > 0) info.host_memory_capacity = pages * page;
  utsname name{};
  if (uname(&name) == 0) {
    info.operating_system = std::string(name.sysname) + " " + name.release + " " + name.machine;
  }
  return info;
}

int64_t peak_process_bytes() {
  rusage usage{};
  return getrusage(RUSAGE_SELF, &usage) == 0 ? int64_t{usage.ru_maxrss} * 1024 : 0;
}

}  // namespace crucible::train
