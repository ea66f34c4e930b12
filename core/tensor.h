/// The tensor: a cheap handle to an n-dimensional array.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/device.h"
#include "core/dtype.h"
#include "core/shape.h"

namespace crucible {

class Storage;
struct Node;

/// A handle to an n-dimensional array of one dtype on one device.
/// Copying a Tensor copies the handle, never the data.  Members observe; functions in ops/ compute.
class Tensor {
 public:
  Tensor() = default;  ///< Undefined: no shape, no data.

  /// Contents are unspecified.
  /// Throws    OutOfMemory, DeviceError if the device is not available.
  static Tensor empty(const Shape& shape, DType dtype, Device device = Device::cpu());
  static Tensor zeros(const Shape& shape, DType dtype, Device device = Device::cpu());
  static Tensor full(const Shape& shape, double value, DType dtype, Device device = Device::cpu());
  /// A copy of row-major host values.
  /// Throws    InvalidArgument if values.size() is not shape.numel().
  template <class T>
  static Tensor from(std::span<const T> values, const Shape& shape, Device device = Device::cpu()) {
    return from_bytes(values.data(), static_cast<int64_t>(values.size()), dtype_of<T>, shape,
                      device);
  }
  template <class T>
  static Tensor from(const std::vector<T>& values, const Shape& shape,
                     Device device = Device::cpu()) {
    return from(std::span<const T>(values), shape, device);
  }

  bool defined() const { return storage_ != nullptr; }
  const Shape& shape() const {
    return shape_;
  }  ///< Sizes, outermost first; images are [N, H, W, C].
  int rank() const { return shape_.rank(); }
  /// Size along `axis`; negative axes count from the end.
  /// Throws    InvalidArgument if axis is outside [-rank, rank).
  int64_t size(int axis) const;
  int64_t numel() const { return shape_.numel(); }
  int64_t nbytes() const { return numel() * size_of(dtype_); }
  const Strides& strides() const { return strides_; }  ///< In elements.
  int64_t stride(int axis) const { return strides_[axis]; }
  bool is_contiguous() const;  ///< Row-major without gaps (axes of size 1 do not count).
  DType dtype() const { return dtype_; }
  Device device() const;

  /// The first element, in the address space of the device.
  std::byte* raw_data() const;
  template <class T>
  T* data() const {
    return reinterpret_cast<T*>(raw_data());
  }
  /// The value of a one-element tensor, converted to T.  Waits for the device.
  /// Throws    InvalidArgument if there is not exactly one element.
  template <class T>
  T item() const;
  /// A row-major host copy.  Waits for the device.
  /// Throws    InvalidArgument if T is not the element type.
  template <class T>
  std::vector<T> to_vector() const;

  bool requires_grad() const { return node_ != nullptr; }
  /// Makes this handle (and later copies of it) a leaf whose gradient is wanted.
  /// Throws    InvalidArgument if the dtype is not floating.
  Tensor& set_requires_grad();
  /// Undefined until backward() has reached this leaf.
  const Tensor& grad() const;
  /// Forgets the gradient of a leaf.  The next backward starts from nothing.
  void zero_grad() const;
  /// Adds d(this)/d(leaf) to the gradient of every leaf; this must have one element.
  /// Releases the graph behind it.  Throws InvalidArgument, also if a saved tensor was changed.
  void backward() const;
  /// The same for any shape, with the upstream gradient `dy` (same shape and dtype).
  void backward(const Tensor& dy) const;
  /// Same data, no history.
  Tensor detach() const;

  /// A view without history: `offset` in elements from this tensor's first one.  The caller keeps
  /// it inside the storage.  The differentiable views are in ops/view.h.
  Tensor as_strided(const Shape& shape, const Strides& strides, int64_t offset = 0) const;

  const std::shared_ptr<Storage>& storage() const { return storage_; }
  const std::shared_ptr<Node>& node() const { return node_; }
  /// The same data with this history.
  Tensor with_node(std::shared_ptr<Node> node) const;

 private:
  static Tensor from_bytes(const void* values, int64_t count, DType dtype, const Shape& shape,
                           Device device);

  Shape shape_;
  Strides strides_{};
  int64_t offset_ = 0;
  DType dtype_ = DType::f32;
  std::shared_ptr<Storage> storage_;
  std::shared_ptr<Node> node_;
};

/// An uninitialised tensor of the same shape, dtype and device.
Tensor empty_like(const Tensor& x);

}  // namespace crucible
