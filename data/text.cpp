#include "data/text.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "core/check.h"
#include "core/file.h"

namespace crucible::data {
namespace {

namespace fs = std::filesystem;

constexpr int64_t largest_text_bytes = int64_t{1} << 30;

/// Files that may be text by their kind and name, sorted.
std::vector<fs::path> candidates(const fs::path& directory) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    const bool regular = it->symlink_status(ignored).type() == fs::file_type::regular;
    if (regular && !it->path().filename().string().starts_with('.')) paths.push_back(it->path());
  }
  check<IoError>(!error, "{}: cannot be listed: {}; check the path and its permissions.",
                 directory.string(), error.message());
  std::sort(paths.begin(), paths.end());
  return paths;
}

bool starts_like_text(const fs::path& path) {
  const InputFile file(path);
  std::vector<std::byte> head(static_cast<size_t>(std::min<int64_t>(file.size(), 4096)));
  file.read_at(0, head);
  return !head.empty() && std::find(head.begin(), head.end(), std::byte{0}) == head.end();
}

void append(const fs::path& path, std::string& text) {
  const auto bytes = read_file(path, largest_text_bytes - static_cast<int64_t>(text.size()));
  text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

}  // namespace

std::string read_text(const fs::path& path) {
  std::string text;
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) {
    for (const fs::path& file : candidates(path)) {
      if (starts_like_text(file)) append(file, text);
    }
  } else {
    append(path, text);
  }
  check<IoError>(!text.empty(), "{}: holds no text; give a text file or a directory of them.",
                 path.string());
  return text;
}

bool has_text(const fs::path& directory) {
  const auto paths = candidates(directory);
  return std::any_of(paths.begin(), paths.end(), starts_like_text);
}

TokenSourcePtr load_text(const fs::path& path, const Tokenizer& tokenizer) {
  const std::string text = read_text(path);
  const std::string origin = fmt::format("{} as {}", path.string(), tokenizer.name());
  const std::vector<uint32_t> tokens = tokenizer.encode(text);
  const int64_t vocabulary = tokenizer.vocabulary();
  if (vocabulary <= 256) {
    return std::make_shared<MemoryTokens<uint8_t>>(
        std::vector<uint8_t>(tokens.begin(), tokens.end()), vocabulary, origin);
  }
  if (vocabulary <= 65536) {
    return std::make_shared<MemoryTokens<uint16_t>>(
        std::vector<uint16_t>(tokens.begin(), tokens.end()), vocabulary, origin);
  }
  return std::make_shared<MemoryTokens<uint32_t>>(tokens, vocabulary, origin);
}

}  // namespace crucible::data
