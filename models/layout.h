/// Private: tensors as row-major host bytes in the order of axes of a file, and back.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/named_tensor.h"

namespace crucible::models {

/// The shape that a tensor of shape `shape` has in the file.
/// Throws    InvalidArgument if the rank does not suit the layout: 4 for oihw, 2 for in_out.
Shape exported_shape(const Shape& shape, ExportLayout layout);

/// The bytes of `tensor` as a file with `layout` holds them.  `scratch` keeps them if they had to
/// be copied; otherwise they are the tensor's own.  Waits for the device.
std::span<const std::byte> exported_bytes(const Tensor& tensor, ExportLayout layout,
                                          std::vector<std::byte>& scratch);

/// Fills a contiguous `tensor` from bytes of its dtype in the order of axes of `layout`.
/// Counts as an in-place change.
void import_bytes(std::span<const std::byte> bytes, ExportLayout layout, const Tensor& tensor);

}  // namespace crucible::models
