#include "models/layout.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "core/backend.h"
#include "core/check.h"
#include "core/storage.h"

namespace crucible::models {

namespace {

// Both permuted layouts are a batch of matrix transpositions: [batch, rows, columns] in memory,
// [batch, columns, rows] in the file.
struct Transposition {
  int64_t batch, rows, columns;
};

Transposition transposition(const Shape& shape, ExportLayout layout) {
  if (layout == ExportLayout::oihw) return {shape[0], shape[1] * shape[2], shape[3]};
  return {1, shape[0], shape[1]};
}

template <class T>
void transpose(const std::byte* from, std::byte* to, Transposition t) {
  constexpr int64_t tile = 32;  // both sides of a tile stay in the first-level cache
  const auto* x = reinterpret_cast<const T*>(from);
  auto* y = reinterpret_cast<T*>(to);
  for (int64_t b = 0; b < t.batch; ++b, x += t.rows * t.columns, y += t.rows * t.columns) {
    for (int64_t i0 = 0; i0 < t.rows; i0 += tile) {
      for (int64_t j0 = 0; j0 < t.columns; j0 += tile) {
        const int64_t i1 = std::min(i0 + tile, t.rows), j1 = std::min(j0 + tile, t.columns);
        for (int64_t i = i0; i < i1; ++i) {
          for (int64_t j = j0; j < j1; ++j) y[j * t.rows + i] = x[i * t.columns + j];
        }
      }
    }
  }
}

void transpose(const std::byte* from, std::byte* to, Transposition t, int64_t element_bytes) {
  switch (element_bytes) {
    case 1:
      return transpose<uint8_t>(from, to, t);
    case 2:
      return transpose<uint16_t>(from, to, t);
    case 4:
      return transpose<uint32_t>(from, to, t);
    default:
      return transpose<uint64_t>(from, to, t);
  }
}

}  // namespace

Shape exported_shape(const Shape& shape, ExportLayout layout) {
  if (layout == ExportLayout::as_is) return shape;
  const int rank = layout == ExportLayout::oihw ? 4 : 2;
  check(shape.rank() == rank, "exported_shape: shape {} has {} axes; this layout needs {}.",
        to_string(shape), shape.rank(), rank);
  if (layout == ExportLayout::oihw) return {shape[0], shape[3], shape[1], shape[2]};
  return {shape[1], shape[0]};
}

std::span<const std::byte> exported_bytes(const Tensor& tensor, ExportLayout layout,
                                          std::vector<std::byte>& scratch) {
  if (tensor.numel() == 0) return {};
  const auto n = static_cast<size_t>(tensor.nbytes());
  Tensor packed = tensor.detach();
  if (!packed.is_contiguous()) {
    packed = empty_like(tensor);
    run(prim::Copy{.x = tensor, .y = packed});
  }
  std::span<const std::byte> bytes(packed.raw_data(), n);
  // `packed` dies with this call, so only the tensor's own bytes may be handed out.
  if (tensor.device() != Device::cpu() || !tensor.is_contiguous()) {
    scratch.resize(n);
    backend(packed.device()).copy_to_host(scratch.data(), packed.raw_data(), tensor.nbytes());
    bytes = scratch;
  } else {
    backend(packed.device()).synchronize();
  }
  if (layout == ExportLayout::as_is) return bytes;
  std::vector<std::byte> permuted(n);
  transpose(bytes.data(), permuted.data(), transposition(tensor.shape(), layout),
            size_of(tensor.dtype()));
  scratch = std::move(permuted);
  return scratch;
}

void import_bytes(std::span<const std::byte> bytes, ExportLayout layout, const Tensor& tensor) {
  assert(static_cast<int64_t>(bytes.size()) == tensor.nbytes() && tensor.is_contiguous());
  if (bytes.empty()) return;
  std::vector<std::byte> permuted;
  if (layout != ExportLayout::as_is) {
    const Transposition t = transposition(tensor.shape(), layout);
    permuted.resize(bytes.size());
    transpose(bytes.data(), permuted.data(), {t.batch, t.columns, t.rows}, size_of(tensor.dtype()));
    bytes = permuted;
  }
  backend(tensor.device()).copy_from_host(tensor.raw_data(), bytes.data(), tensor.nbytes());
  tensor.storage()->bump_version();
}

}  // namespace crucible::models
