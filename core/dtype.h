/// Element types and the run-time to compile-time switch over them.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

#include "core/half.h"

namespace crucible {

enum class DType : uint8_t { f64, f32, f16, bf16, i64, i32, u8, boolean };

/// Bytes of one element.
constexpr int64_t size_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
    case DType::i64:
      return 8;
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::f16:
    case DType::bf16:
      return 2;
    case DType::u8:
    case DType::boolean:
      return 1;
  }
  return 0;
}

/// "f32", "bf16", "i64", "bool", ...
constexpr std::string_view name_of(DType dtype) {
  constexpr std::string_view names[] = {"f64", "f32", "f16", "bf16", "i64", "i32", "u8", "bool"};
  return names[static_cast<int>(dtype)];
}

constexpr bool is_floating(DType dtype) {
  return dtype <= DType::bf16;
}

template <class T>
struct DTypeOf;
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::f64;
};
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::f32;
};
template <>
struct DTypeOf<Float16> {
  static constexpr DType value = DType::f16;
};
template <>
struct DTypeOf<BFloat16> {
  static constexpr DType value = DType::bf16;
};
template <>
struct DTypeOf<int64_t> {
  static constexpr DType value = DType::i64;
};
template <>
struct DTypeOf<int32_t> {
  static constexpr DType value = DType::i32;
};
template <>
struct DTypeOf<uint8_t> {
  static constexpr DType value = DType::u8;
};
template <>
struct DTypeOf<bool> {
  static constexpr DType value = DType::boolean;
};
/// The DType of a C++ element type.
template <class T>
inline constexpr DType dtype_of = DTypeOf<T>::value;

/// The type that sums of T are kept in: double for double, float for the other floating types.
template <class T>
struct AccumulatorOf {
  using type = float;
};
template <>
struct AccumulatorOf<double> {
  using type = double;
};
template <class T>
using Accumulator = typename AccumulatorOf<T>::type;

/// A set of element types for `visit_dtype`.
template <class... T>
struct DTypes {};
using Floats = DTypes<double, float, Float16, BFloat16>;
using Numbers = DTypes<double, float, Float16, BFloat16, int64_t, int32_t, uint8_t>;
using AllDTypes = DTypes<double, float, Float16, BFloat16, int64_t, int32_t, uint8_t, bool>;

/// Calls `f.operator()<T>()` for the T in the set whose DType is `dtype`.
/// Returns   whether the set holds that type; if not, f is not called.
template <class... T, class F>
bool visit_dtype(DType dtype, DTypes<T...>, F&& f) {
  return ((dtype == dtype_of<T> ? (f.template operator()<T>(), true) : false) || ...);
}

}  // namespace crucible
