#include "core/tensor.h"

#include <algorithm>
#include <cstring>

#include "core/autograd.h"
#include "core/backend.h"
#include "core/check.h"
#include "core/storage.h"

namespace crucible {

Storage::Storage(int64_t bytes, Device device, MemoryTag tag)
    : bytes_(bytes), device_(device), tag_(tag) {
  data_ = static_cast<std::byte*>(backend(device).allocator().allocate(bytes, tag));
}

Storage::~Storage() {
  if (!arena_) backend(device_).allocator().free(data_);
}

void Storage::move_into(std::shared_ptr<Storage> arena, int64_t offset_bytes) {
  check(!arena_ && offset_bytes >= 0 && offset_bytes + bytes_ <= arena->bytes() &&
            arena->device() == device_,
        "storage: {} bytes do not fit at offset {} of an arena of {} bytes.", bytes_, offset_bytes,
        arena->bytes());
  backend(device_).allocator().free(data_);
  data_ = arena->data() + offset_bytes;
  arena_ = std::move(arena);
}

Tensor Tensor::empty(const Shape& shape, DType dtype, Device device) {
  int64_t bytes = 0;
  check(!__builtin_mul_overflow(shape.numel(), size_of(dtype), &bytes),
        "tensor: {} of {} passes 2^63 bytes; use a smaller shape.", to_string(shape),
        name_of(dtype));
  Tensor t;
  t.shape_ = shape;
  t.strides_ = row_major(shape);
  t.dtype_ = dtype;
  t.storage_ = std::make_shared<Storage>(bytes, device, MemoryTagScope::current());
  return t;
}

Tensor Tensor::zeros(const Shape& shape, DType dtype, Device device) {
  return full(shape, 0.0, dtype, device);
}

Tensor Tensor::full(const Shape& shape, double value, DType dtype, Device device) {
  Tensor t = empty(shape, dtype, device);
  run(prim::Fill{.value = value, .y = t});
  return t;
}

Tensor Tensor::from_bytes(const void* values, int64_t count, DType dtype, const Shape& shape,
                          Device device) {
  check(count == shape.numel(), "tensor: {} values do not fill shape {}; {} are needed.", count,
        to_string(shape), shape.numel());
  Tensor t = empty(shape, dtype, device);
  if (count > 0) backend(device).copy_from_host(t.raw_data(), values, t.nbytes());
  return t;
}

int64_t Tensor::size(int axis) const {
  const int a = axis < 0 ? axis + rank() : axis;
  check(a >= 0 && a < rank(), "size: axis {} is outside [{}, {}); the shape is {}.", axis, -rank(),
        rank(), to_string(shape_));
  return shape_[a];
}

bool Tensor::is_contiguous() const {
  int64_t step = 1;
  for (int i = rank() - 1; i >= 0; --i) {
    if (shape_[i] != 1 && strides_[i] != step) return numel() == 0;
    step *= shape_[i];
  }
  return true;
}

Device Tensor::device() const {
  return storage_ ? storage_->device() : Device::cpu();
}

std::byte* Tensor::raw_data() const {
  return storage_->data() + offset_ * size_of(dtype_);
}

namespace {

// A contiguous host copy of the bytes of `x`.
std::vector<std::byte> host_bytes(const Tensor& x) {
  Tensor packed = x;
  if (!x.is_contiguous()) {
    packed = empty_like(x);
    run(prim::Copy{.x = x, .y = packed});
  }
  std::vector<std::byte> bytes(packed.nbytes());
  if (!bytes.empty()) {
    backend(x.device()).copy_to_host(bytes.data(), packed.raw_data(), packed.nbytes());
  }
  return bytes;
}

}  // namespace

template <class T>
T Tensor::item() const {
  check(numel() == 1, "item: the tensor has {} elements; it must have one.", numel());
  const std::vector<std::byte> bytes = host_bytes(*this);
  T value{};
  visit_dtype(dtype_, AllDTypes{}, [&]<class S>() {
    S s;
    std::memcpy(&s, bytes.data(), sizeof s);
    value = static_cast<T>(s);
  });
  return value;
}

template <class T>
std::vector<T> Tensor::to_vector() const {
  check(dtype_ == dtype_of<T>, "to_vector: the tensor holds {}, not {}; cast it first.",
        name_of(dtype_), name_of(dtype_of<T>));
  const std::vector<std::byte> bytes = host_bytes(*this);
  std::vector<T> values(numel());
  if constexpr (std::is_same_v<T, bool>) {
    for (size_t i = 0; i < values.size(); ++i) values[i] = bytes[i] != std::byte{0};
  } else if (!bytes.empty()) {
    std::memcpy(values.data(), bytes.data(), bytes.size());
  }
  return values;
}

#define CRUCIBLE_INSTANTIATE(T)       \
  template T Tensor::item<T>() const; \
  template std::vector<T> Tensor::to_vector<T>() const;
CRUCIBLE_INSTANTIATE(double)
CRUCIBLE_INSTANTIATE(float)
CRUCIBLE_INSTANTIATE(Float16)
CRUCIBLE_INSTANTIATE(BFloat16)
CRUCIBLE_INSTANTIATE(int64_t)
CRUCIBLE_INSTANTIATE(int32_t)
CRUCIBLE_INSTANTIATE(uint8_t)
CRUCIBLE_INSTANTIATE(bool)
#undef CRUCIBLE_INSTANTIATE

Tensor Tensor::detach() const {
  return with_node(nullptr);
}

Tensor Tensor::with_node(std::shared_ptr<Node> node) const {
  Tensor t = *this;
  t.node_ = std::move(node);
  return t;
}

Tensor Tensor::as_strided(const Shape& shape, const Strides& strides, int64_t offset) const {
  Tensor t = detach();
  t.shape_ = shape;
  t.strides_ = strides;
  t.offset_ += offset;
  return t;
}

Tensor empty_like(const Tensor& x) {
  return Tensor::empty(x.shape(), x.dtype(), x.device());
}

}  // namespace crucible
