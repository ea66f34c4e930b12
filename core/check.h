/// Private: checks that build their message only on failure.  Never included by a public header.
#pragma once

#include <fmt/format.h>

#include <utility>

#include "core/error.h"

namespace crucible {

/// Throws `E` (InvalidArgument unless stated) with the formatted text when `condition` is false.
template <class E = InvalidArgument, class... Args>
void check(bool condition, fmt::format_string<Args...> format, Args&&... args) {
  if (!condition) [[unlikely]] {
    throw E(fmt::format(format, std::forward<Args>(args)...));
  }
}

/// Throws `E` with the formatted text.
template <class E = InvalidArgument, class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw E(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace crucible
