#include "tests/layering/includes.h"

#include <algorithm>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <string_view>

namespace crucible::testing {
namespace {

struct Rule {
  std::set<std::string> folders;    ///< Besides itself.
  std::set<std::string> libraries;  ///< In sources and private headers only.
};

// Ordered from the bottom up.  A folder that is missing here takes the rule of the one above it.
const std::map<std::string, Rule>& rules() {
  static const std::map<std::string, Rule> table = {
      {"core", {{}, {"fmt", "spdlog"}}},
      {"ops", {{"core"}, {"fmt"}}},
      {"ops/cpu", {{"core"}, {"fmt", "onednn", "eigen", "openmp"}}},
      {"ops/plan", {{"core"}, {"fmt"}}},
      {"cuda", {{"core"}, {"fmt", "cuda"}}},
      {"optim", {{"core", "ops"}, {"fmt"}}},
      {"data", {{"core"}, {"fmt", "json", "jpeg", "png", "zlib"}}},
      {"models", {{"core", "ops"}, {"fmt", "json"}}},
      {"tools",
       {{"core", "ops", "optim", "data", "models"}, {"fmt", "spdlog", "json", "cli", "openmp"}}},
  };
  return table;
}

// The outside library that a header in angle brackets belongs to; "" for the system's own.
std::optional<std::string> library_of(const std::string& name) {
  static const std::vector<std::pair<std::string, std::string>> prefixes = {
      {"fmt/", "fmt"},       {"spdlog/", "spdlog"}, {"nlohmann/", "json"}, {"CLI/", "cli"},
      {"oneapi/", "onednn"}, {"Eigen/", "eigen"},   {"omp.h", "openmp"},   {"jpeglib.h", "jpeg"},
      {"jerror.h", "jpeg"},  {"png.h", "png"},      {"zlib.h", "zlib"},    {"cuda", "cuda"},
      {"cublas", "cuda"},    {"cudnn", "cuda"},     {"nccl", "cuda"},      {"nvml", "cuda"},
      {"mma.h", "cuda"},
  };
  static const std::set<std::string> system = {"cpuid.h",     "dirent.h", "dlfcn.h",   "fcntl.h",
                                               "immintrin.h", "poll.h",   "pthread.h", "sched.h",
                                               "setjmp.h",    "signal.h", "termios.h", "unistd.h"};
  for (const auto& [prefix, library] : prefixes) {
    if (name.starts_with(prefix)) {
      return library;
    }
  }
  if (is_standard_header(name) || name.starts_with("sys/") || system.contains(name)) {
    return "";
  }
  return std::nullopt;
}

// "core/x.h" is of "core", "ops/cpu/level/x.h" of "ops/cpu", "tools/train/x.cpp" of "tools".
std::string rule_of(std::string_view folder) {
  std::string name(folder);
  while (!name.empty() && !rules().contains(name)) {
    const size_t slash = name.rfind('/');
    name.resize(slash == std::string::npos ? 0 : slash);
  }
  return name;
}

std::string problem_with(const SourceFile& file, const std::string& owner, const Include& include) {
  const Rule& rule = rules().at(owner);
  if (include.quoted) {
    const std::string target = rule_of(SourceFile{include.name, ""}.folder());
    if (target.empty()) {
      return "is not written from the root of the tree";
    }
    return target == owner || rule.folders.contains(target) ? ""
                                                            : owner + " may not include " + target;
  }
  const std::optional<std::string> library = library_of(include.name);
  if (!library) {
    return "is of an unknown library; add it to the table in tests/layering/includes.cpp";
  }
  if (*library == "onednn" && !file.path.starts_with("ops/cpu/onednn.")) {
    return "only ops/cpu/onednn.{h,cpp} name oneDNN";
  }
  return library->empty() || rule.libraries.contains(*library) ? ""
                                                               : owner + " may not use " + *library;
}

}  // namespace

bool is_standard_header(const std::string& name) {
  return std::ranges::all_of(
      name, [](char c) { return ('a' <= c && c <= 'z') || ('0' <= c && c <= '9') || c == '_'; });
}

std::vector<Include> includes_of(const SourceFile& file) {
  static const std::regex pattern(R"((?:^|\n)[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"])");
  std::vector<Include> found;
  for (std::sregex_iterator it(file.text.begin(), file.text.end(), pattern), end; it != end; ++it) {
    found.push_back(
        {it->str(2), it->str(1) == "\"", file.line_at(static_cast<size_t>(it->position(2)))});
  }
  return found;
}

std::vector<std::string> forbidden_includes(const SourceFile& file) {
  const std::string owner = rule_of(file.folder());
  std::vector<std::string> problems;
  if (owner.empty()) {
    return problems;
  }
  for (const Include& include : includes_of(file)) {
    const std::string problem = problem_with(file, owner, include);
    if (!problem.empty()) {
      problems.push_back(file.path + ":" + std::to_string(include.line) + ": " + include.name +
                         ": " + problem);
    }
  }
  return problems;
}

}  // namespace crucible::testing
