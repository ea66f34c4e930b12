/// How this binary was built.  The values are filled in by CMake.
#pragma once

#include <string>

namespace crucible::train {

namespace build_info {
extern const char* const version;   ///< Of crucible.
extern const char* const compiler;  ///< "GNU 12.2.0"
extern const char* const flags;     ///< Of the build type.
extern const char* const build_type;
extern const char* const onednn;  ///< Version found when configuring.
extern const char* const eigen;
}  // namespace build_info

/// The commit this was built from, with "-dirty" if the tree had changes; "unknown" outside git.
std::string git_revision();

}  // namespace crucible::train
