/// The files of this source tree, as text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace crucible::testing {

struct SourceFile {
  std::string path;  ///< From the root, as "core/tensor.h".
  std::string text;

  bool has_extension(std::string_view extension) const;
  std::string_view folder() const;     ///< "core", "ops/cpu", "tools/train"; "" at the root.
  int line_at(size_t position) const;  ///< Counted from 1.
};

/// Every file that is written by hand; hidden folders (but .ci), build and run folders are left
/// out.
const std::vector<SourceFile>& source_files();

/// Those that are C++: .h, .cpp, .cu, .cuh.
std::vector<const SourceFile*> cpp_files();

/// The headers that the library exports, from the root, sorted.
const std::vector<std::string>& public_headers();

}  // namespace crucible::testing
