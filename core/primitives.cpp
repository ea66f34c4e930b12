#include "core/primitives.h"

namespace crucible::prim {

// Here and not inline: the kernels built per x86-64 level include the header and may share nothing.
const Tensor none;

}  // namespace crucible::prim
