/// What the backward closures of ops capture, read from the source.
#pragma once

#include <string>
#include <vector>

#include "tests/layering/source_tree.h"

namespace crucible::testing {

/// The backward closures of a file: lambdas whose first parameter is `const Tensor& dy`.
int count_backward_closures(const SourceFile& file);

/// One line for each capture of a backward closure that would keep a Tensor, and with it its graph,
/// instead of what save() makes of it; and for each default capture, which could hide one.
///
/// Read from the text: a name counts as a tensor if it was declared as one, or as a container of
/// them, above the closure in the same file.
std::vector<std::string> tensors_captured(const SourceFile& file);

}  // namespace crucible::testing
