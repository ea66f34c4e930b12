/// Private: the program's log, on standard error.  Never included by a public header.
#pragma once

#include <spdlog/spdlog.h>

namespace crucible {

/// The logger "crucible".  Level from CRUCIBLE_LOG_LEVEL (trace, debug, info, warn, error, off),
/// default info.
spdlog::logger& log();

}  // namespace crucible
