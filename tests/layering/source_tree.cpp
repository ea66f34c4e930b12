#include "tests/layering/source_tree.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

namespace crucible::testing {
namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

bool is_skipped(const fs::path& folder) {
  const std::string name = folder.filename();
  return (name.starts_with('.') && name != ".ci") || name.starts_with("build") ||
         name == "__pycache__" || name == "runs" || name == "corpus";
}

bool is_text(const fs::path& path) {
  if (path.filename().string().starts_with('.')) {
    return false;
  }
  static const std::set<std::string> extensions = {
      "",     ".h",  ".cpp",   ".cu", ".cuh",  ".inc", ".in",  ".py",
      ".txt", ".md", ".cmake", ".sh", ".json", ".yml", ".csv", ".toml"};
  return extensions.contains(path.extension());
}

}  // namespace

bool SourceFile::has_extension(std::string_view extension) const {
  return path.ends_with(extension);
}

std::string_view SourceFile::folder() const {
  const size_t slash = path.rfind('/');
  return std::string_view(path).substr(0, slash == std::string::npos ? 0 : slash);
}

int SourceFile::line_at(size_t position) const {
  return 1 + static_cast<int>(std::count(
                 text.begin(), text.begin() + static_cast<std::ptrdiff_t>(position), '\n'));
}

const std::vector<SourceFile>& source_files() {
  static const std::vector<SourceFile> files = [] {
    const fs::path root = CRUCIBLE_SOURCE_FOLDER;
    std::vector<SourceFile> found;
    for (auto entry = fs::recursive_directory_iterator(root);
         entry != fs::recursive_directory_iterator(); ++entry) {
      if (entry->is_directory() && is_skipped(entry->path())) {
        entry.disable_recursion_pending();
      } else if (entry->is_regular_file() && is_text(entry->path())) {
        found.push_back({entry->path().lexically_relative(root), read(entry->path())});
      }
    }
    std::ranges::sort(found, {}, &SourceFile::path);
    return found;
  }();
  return files;
}

std::vector<const SourceFile*> cpp_files() {
  std::vector<const SourceFile*> found;
  for (const SourceFile& file : source_files()) {
    for (const char* extension : {".h", ".cpp", ".cu", ".cuh"}) {
      if (file.has_extension(extension)) {
        found.push_back(&file);
      }
    }
  }
  return found;
}

const std::vector<std::string>& public_headers() {
  static const std::vector<std::string> headers = [] {
    std::ifstream in(CRUCIBLE_PUBLIC_HEADERS_FILE);
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);) {
      lines.push_back(line);
    }
    std::ranges::sort(lines);
    return lines;
  }();
  return headers;
}

}  // namespace crucible::testing
