#include "core/shape.h"

#include <fmt/ranges.h>

#include "core/check.h"

namespace crucible {

Shape::Shape(std::initializer_list<int64_t> sizes) {
  assign({sizes.begin(), sizes.size()});
}

Shape::Shape(std::span<const int64_t> sizes) {
  assign(sizes);
}

void Shape::assign(std::span<const int64_t> sizes) {
  check(sizes.size() <= max_rank, "shape: {} axes are too many: {}; a tensor has at most {}.",
        sizes.size(), fmt::format("[{}]", fmt::join(sizes, ", ")), max_rank);
  rank_ = static_cast<int>(sizes.size());
  bool empty = false;
  int64_t product = 1;  // of the non-zero sizes, so that [2^32, 2^32, 0] is refused too
  for (int i = 0; i < rank_; ++i) {
    check(sizes[i] >= 0, "shape: size {} of axis {} is negative: [{}]; sizes start at 0.", sizes[i],
          i, fmt::join(sizes, ", "));
    sizes_[i] = sizes[i];
    empty |= sizes[i] == 0;
    check(!__builtin_mul_overflow(product, std::max<int64_t>(sizes[i], 1), &product),
          "shape: the element count of [{}] passes 2^63 - 1; use smaller sizes.",
          fmt::join(sizes, ", "));
  }
  numel_ = empty ? 0 : product;
}

Shape Shape::with(int axis, int64_t size) const {
  std::array<int64_t, max_rank> s = sizes_;
  s[axis] = size;
  return Shape(std::span<const int64_t>(s.data(), rank_));
}

Shape Shape::without(int axis) const {
  std::array<int64_t, max_rank> s = sizes_;
  std::copy(s.begin() + axis + 1, s.end(), s.begin() + axis);
  return Shape(std::span<const int64_t>(s.data(), rank_ - 1));
}

Shape Shape::insert(int axis, int64_t size) const {
  std::array<int64_t, max_rank + 1> s{};
  std::copy(begin(), begin() + axis, s.begin());
  s[axis] = size;
  std::copy(begin() + axis, end(), s.begin() + axis + 1);
  return Shape(std::span<const int64_t>(s.data(), rank_ + 1));
}

Strides row_major(const Shape& shape) {
  Strides strides{};
  int64_t step = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    strides[i] = step;
    step *= std::max<int64_t>(shape[i], 1);
  }
  return strides;
}

Shape broadcast_shapes(std::string_view who, const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  std::array<int64_t, Shape::max_rank> sizes{};
  for (int i = 1; i <= rank; ++i) {
    const int64_t sa = i <= a.rank() ? a[a.rank() - i] : 1;
    const int64_t sb = i <= b.rank() ? b[b.rank() - i] : 1;
    check(sa == sb || sa == 1 || sb == 1,
          "{}: shapes do not broadcast: {} and {}; sizes {} and {} at axis {} from the end must be "
          "equal or one of them 1.",
          who, to_string(a), to_string(b), sa, sb, i);
    sizes[rank - i] = sa == 1 ? sb : sa;
  }
  return Shape(std::span<const int64_t>(sizes.data(), rank));
}

std::string to_string(const Shape& shape) {
  return fmt::format("[{}]", fmt::join(shape.begin(), shape.end(), ", "));
}

}  // namespace crucible
