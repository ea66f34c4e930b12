/// Private: a text from a file, made fit for one line of an error.  Costs nothing until it is
/// printed.
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace crucible::models {

/// Printed in quotes, escaped to ASCII, cut after 80 bytes.
struct Shown {
  std::string_view text;
};

}  // namespace crucible::models

template <>
struct fmt::formatter<crucible::models::Shown> : fmt::formatter<std::string_view> {
  template <class Context>
  auto format(crucible::models::Shown shown, Context& context) const {
    std::string cut(shown.text.substr(0, 80));
    if (cut.size() < shown.text.size()) cut += "...";
    cut = nlohmann::json(cut).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
    return fmt::formatter<std::string_view>::format(cut, context);
  }
};
