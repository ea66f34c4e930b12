#include "core/elementwise.h"

namespace crucible {

std::string_view name_of(UnaryOp op) {
  constexpr std::string_view names[] = {"neg",    "abs",  "exp",   "log",       "sqrt",
                                        "square", "relu", "gelu",  "gelu_tanh", "sigmoid",
                                        "tanh",   "silu", "clamp", "affine",    "power"};
  return names[static_cast<int>(op)];
}

std::string_view name_of(BinaryOp op) {
  constexpr std::string_view names[] = {"add", "sub", "mul", "div", "pow", "maximum", "minimum"};
  return names[static_cast<int>(op)];
}

}  // namespace crucible
