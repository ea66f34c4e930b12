#include "tests/layering/closures.h"

#include <regex>
#include <set>
#include <string_view>

namespace crucible::testing {
namespace {

struct Closure {
  size_t begin;  ///< Of its '['.
  std::string captures;
};

std::vector<Closure> backward_closures(const std::string& text) {
  static const std::regex pattern(R"(\]\s*\(\s*const Tensor&\s+dy\b)");
  std::vector<Closure> found;
  for (std::sregex_iterator it(text.begin(), text.end(), pattern), end; it != end; ++it) {
    const auto close = static_cast<size_t>(it->position());
    size_t open = close;
    for (int depth = 1; depth > 0 && open > 0;) {
      --open;
      depth += text[open] == ']' ? 1 : text[open] == '[' ? -1 : 0;
    }
    found.push_back({open, text.substr(open + 1, close - open - 1)});
  }
  return found;
}

// At commas outside brackets, without the spaces around.
std::vector<std::string> split_captures(const std::string& captures) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (const char c : captures) {
    depth += c == '(' || c == '{' || c == '[' ? 1 : c == ')' || c == '}' || c == ']' ? -1 : 0;
    if (c == ',' && depth == 0) {
      parts.emplace_back();
    } else if (c != '\n' && (c != ' ' || !parts.back().empty())) {
      parts.back() += c;
    }
  }
  for (std::string& part : parts) {
    part.erase(part.find_last_not_of(' ') + 1);
  }
  return parts;
}

// The names declared as tensors in the function before `end`, and as members of its file's structs.
std::set<std::string> tensor_names(const std::string& text, size_t end) {
  static const std::regex declaration(
      R"((?:\bTensor|\b(?:vector|optional|array|span)<(?:const )?Tensor[^>]*>)[ \t\n]*&?[ \t\n]+)"
      R"((\w+(?:[ \t\n]*,[ \t\n]*\w+[ \t\n]*(?=[,;]))*))");
  static const std::regex name(R"(\w+)");
  const size_t function = text.rfind("\n}\n", end);
  std::set<std::string> names;
  for (std::sregex_iterator
           it(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(end), declaration),
       last;
       it != last; ++it) {
    const bool in_function =
        function == std::string::npos || static_cast<size_t>(it->position()) > function;
    const std::string declared = it->str(1);
    for (std::sregex_iterator n(declared.begin(), declared.end(), name); n != last; ++n) {
      names.insert(std::string(in_function ? "" : ".").append(n->str()));
    }
  }
  return names;
}

std::string problem_with(const std::string& capture, const std::set<std::string>& tensors) {
  if (capture == "=" || capture == "&") {
    return "a default capture";
  }
  const size_t equals = capture.find('=');
  std::string value = equals == std::string::npos ? capture : capture.substr(equals + 1);
  value.erase(0, value.find_first_not_of(" &"));
  if (value.starts_with("save(")) {
    return "";
  }
  static const std::regex moved(R"(std::move\(([\w.>-]+)\))");
  value = std::regex_replace(value, moved, "$1");
  static const std::regex path(R"([\w.]+)");
  if (!std::regex_match(value, path)) {
    return "";  // a call: x.shape(), scale_of(x), ...
  }
  const size_t dot = value.rfind('.');
  const bool is_tensor = dot == std::string::npos ? tensors.contains(value)
                                                  : tensors.contains("." + value.substr(dot + 1)) ||
                                                        tensors.contains(value.substr(dot + 1));
  return is_tensor ? "a Tensor that is not saved" : "";
}

}  // namespace

int count_backward_closures(const SourceFile& file) {
  return static_cast<int>(backward_closures(file.text).size());
}

std::vector<std::string> tensors_captured(const SourceFile& file) {
  std::vector<std::string> problems;
  for (const Closure& closure : backward_closures(file.text)) {
    const std::set<std::string> tensors = tensor_names(file.text, closure.begin);
    for (const std::string& capture : split_captures(closure.captures)) {
      const std::string problem = problem_with(capture, tensors);
      if (!problem.empty()) {
        problems.push_back(file.path + ":" + std::to_string(file.line_at(closure.begin)) + ": [" +
                           capture + "]: " + problem);
      }
    }
  }
  return problems;
}

}  // namespace crucible::testing
