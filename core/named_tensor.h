/// A tensor as files know it: its name there and how its axes are ordered there.
#pragma once

#include <cstdint>
#include <string>

#include "core/tensor.h"

namespace crucible {

/// How a tensor is stored in a file that torchvision or Hugging Face code can read.
enum class ExportLayout : uint8_t {
  as_is,   ///< Same axes in memory and file.
  oihw,    ///< Convolution weight: [O, Kh, Kw, I] in memory, [O, I, Kh, Kw] in the file.
  in_out,  ///< Weight of GPT-2's Conv1D: [out, in] in memory, [in, out] in the file.
};

struct NamedTensor {
  std::string name;
  Tensor tensor;
  ExportLayout layout = ExportLayout::as_is;
};

}  // namespace crucible
