/// Vectors of the level a file is compiled for: registers of accumulators, loaded from and stored to
/// any floating storage type.  Private to ops/cpu/level/.
#pragma once

#include <cstdint>

#include "core/dtype.h"

#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace crucible::cpu::CRUCIBLE_LEVEL {
namespace {

#if defined(__AVX512F__)
constexpr int vector_bytes = 64;
#elif defined(__AVX__)
constexpr int vector_bytes = 32;
#else
constexpr int vector_bytes = 16;
#endif

template <class A>
struct VectorOf;
template <>
struct VectorOf<float> {
  typedef float type __attribute__((vector_size(vector_bytes)));
};
template <>
struct VectorOf<double> {
  typedef double type __attribute__((vector_size(vector_bytes)));
};
/// As many A as a register holds.
template <class A>
using Vector = typename VectorOf<A>::type;
template <class A>
constexpr int lanes = vector_bytes / sizeof(A);

typedef uint16_t Words __attribute__((vector_size(vector_bytes / 2)));
typedef uint32_t DoubleWords __attribute__((vector_size(vector_bytes)));

template <class V, class T>
[[gnu::always_inline]] inline V load_bits(const T* p) {
  V v;
  __builtin_memcpy(&v, static_cast<const void*>(p), sizeof v);
  return v;
}
template <class V, class T>
[[gnu::always_inline]] inline void store_bits(T* p, V v) {
  __builtin_memcpy(static_cast<void*>(p), &v, sizeof v);
}

[[gnu::always_inline]] inline Vector<float> load(const float* p) {
  return load_bits<Vector<float>>(p);
}
[[gnu::always_inline]] inline Vector<double> load(const double* p) {
  return load_bits<Vector<double>>(p);
}
[[gnu::always_inline]] inline Vector<float> load(const BFloat16* p) {
  return reinterpret_cast<Vector<float>>(
      __builtin_convertvector(load_bits<Words>(p), DoubleWords) << 16);
}
[[gnu::always_inline]] inline void store(float* p, Vector<float> v) {
  store_bits(p, v);
}
[[gnu::always_inline]] inline void store(double* p, Vector<double> v) {
  store_bits(p, v);
}
[[gnu::always_inline]] inline void store(BFloat16* p, Vector<float> v) {
  const DoubleWords u = reinterpret_cast<DoubleWords>(v);
  const DoubleWords rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  const DoubleWords nan = (u >> 16) | 0x40u;
  store_bits(p, __builtin_convertvector((u & 0x7fffffffu) > 0x7f800000u ? nan : rounded, Words));
}

#if defined(__AVX512F__)
[[gnu::always_inline]] inline Vector<float> load(const Float16* p) {
  return reinterpret_cast<Vector<float>>(_mm512_cvtph_ps(load_bits<__m256i>(p)));
}
[[gnu::always_inline]] inline void store(Float16* p, Vector<float> v) {
  store_bits(p, _mm512_cvtps_ph(reinterpret_cast<__m512>(v), _MM_FROUND_TO_NEAREST_INT));
}
#elif defined(__F16C__)
[[gnu::always_inline]] inline Vector<float> load(const Float16* p) {
  return reinterpret_cast<Vector<float>>(_mm256_cvtph_ps(load_bits<__m128i>(p)));
}
[[gnu::always_inline]] inline void store(Float16* p, Vector<float> v) {
  store_bits(p, _mm256_cvtps_ph(reinterpret_cast<__m256>(v), _MM_FROUND_TO_NEAREST_INT));
}
#else
[[gnu::always_inline]] inline Vector<float> load(const Float16* p) {
  Vector<float> v;
  for (int i = 0; i < lanes<float>; ++i) v[i] = p[i];
  return v;
}
[[gnu::always_inline]] inline void store(Float16* p, Vector<float> v) {
  for (int i = 0; i < lanes<float>; ++i) p[i] = Float16(v[i]);
}
#endif

/// The first `count` elements, the other lanes `rest`.
template <class T>
[[gnu::always_inline]] inline auto load_part(const T* p, int64_t count, Accumulator<T> rest) {
  Vector<Accumulator<T>> v = rest - Vector<Accumulator<T>>{};
  for (int64_t i = 0; i < count; ++i) v[i] = static_cast<Accumulator<T>>(p[i]);
  return v;
}
template <class T>
[[gnu::always_inline]] inline void store_part(T* p, Vector<Accumulator<T>> v, int64_t count) {
  for (int64_t i = 0; i < count; ++i) p[i] = T(v[i]);
}

template <class A>
[[gnu::always_inline]] inline Vector<A> splat(A value) {
  return value - Vector<A>{};
}

template <class A>
[[gnu::always_inline]] inline A sum_of(Vector<A> v) {
  A sum = v[0];
  for (int i = 1; i < lanes<A>; ++i) sum += v[i];
  return sum;
}

}  // namespace
}  // namespace crucible::cpu::CRUCIBLE_LEVEL
