#include "core/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>

#include <cstdlib>

namespace crucible {

spdlog::logger& log() {
  static const std::shared_ptr<spdlog::logger> logger = [] {
    auto made = std::make_shared<spdlog::logger>(
        "crucible", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    made->set_pattern("%^%l%$: %v");
    if (const char* level = std::getenv("CRUCIBLE_LOG_LEVEL")) {
      made->set_level(spdlog::level::from_str(level));
    }
    return made;
  }();
  return *logger;
}

}  // namespace crucible
