/// Sizes of a tensor, its strides, and the broadcasting rule.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

namespace crucible {

/// Up to eight sizes, outermost first.  An empty shape is a 0-d tensor of one element.
class Shape {
 public:
  static constexpr int max_rank = 8;

  Shape() = default;
  /// Throws    InvalidArgument for a negative size, more than eight sizes, or 2^63 elements or
  /// more.
  Shape(std::initializer_list<int64_t> sizes);
  explicit Shape(std::span<const int64_t> sizes);

  int rank() const { return rank_; }
  /// Product of the sizes; 1 for rank 0.
  int64_t numel() const { return numel_; }
  int64_t operator[](int axis) const { return sizes_[axis]; }
  const int64_t* begin() const { return sizes_.data(); }
  const int64_t* end() const { return sizes_.data() + rank_; }
  std::span<const int64_t> sizes() const { return {sizes_.data(), static_cast<size_t>(rank_)}; }

  /// A copy with size `size` at `axis` in [0, rank).
  Shape with(int axis, int64_t size) const;
  /// A copy without `axis` in [0, rank).
  Shape without(int axis) const;
  /// A copy with `size` put before `axis` in [0, rank].
  Shape insert(int axis, int64_t size) const;

  friend bool operator==(const Shape& a, const Shape& b) {
    return std::ranges::equal(a.sizes(), b.sizes());
  }

 private:
  void assign(std::span<const int64_t> sizes);

  std::array<int64_t, max_rank> sizes_{};
  int64_t numel_ = 1;
  int rank_ = 0;
};

/// Elements (not bytes) between neighbours along each axis.
using Strides = std::array<int64_t, Shape::max_rank>;

/// Strides of a row-major array without gaps.
Strides row_major(const Shape& shape);

/// The shape that a and b broadcast to: aligned at the last axis, sizes equal or one of them 1.
/// Throws    InvalidArgument naming `who` if they do not broadcast.
Shape broadcast_shapes(std::string_view who, const Shape& a, const Shape& b);

/// "[2, 3]"
std::string to_string(const Shape& shape);

}  // namespace crucible
