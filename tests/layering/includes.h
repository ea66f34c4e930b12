/// Who may include whom: the table, and what breaks it.
#pragma once

#include <string>
#include <vector>

#include "tests/layering/source_tree.h"

namespace crucible::testing {

struct Include {
  std::string name;
  bool quoted;
  int line;
};

std::vector<Include> includes_of(const SourceFile& file);

/// One line for each include of a file that its folder may not have.
std::vector<std::string> forbidden_includes(const SourceFile& file);

/// Whether the name, in angle brackets, is the C++ standard library's.
bool is_standard_header(const std::string& name);

}  // namespace crucible::testing
