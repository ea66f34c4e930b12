/// Vectors of the level a file is compiled for: registers of accumulators, loaded from and stored
/// to any floating storage type.  Private to ops/cpu/level/.
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
  return reinterpret_cast<Vector<float>>(__builtin_convertvector(load_bits<Words>(p), DoubleWords)
                                         << 16);
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

/// One element or a register of them, so that one body serves a loop and its tail.
template <class V, class T>
[[gnu::always_inline]] inline V get(const T* p) {
  if constexpr (sizeof(V) == sizeof(Accumulator<T>)) {
    return static_cast<V>(*p);
  } else {
    return load(p);
  }
}
template <class V, class T>
[[gnu::always_inline]] inline void put(T* p, V v) {
  if constexpr (sizeof(V) == sizeof(Accumulator<T>)) {
    *p = T(v);
  } else {
    store(p, v);
  }
}

/// Calls f<V, K>(j) for the columns [0, n): K registers at a time, then one, then single elements.
template <class A, int K, class F>
[[gnu::always_inline]] inline void for_columns(int64_t n, F f) {
  int64_t j = 0;
  for (; j + K * lanes<A> <= n; j += K * lanes<A>) f.template operator()<Vector<A>, K>(j);
  for (; j + lanes<A> <= n; j += lanes<A>) f.template operator()<Vector<A>, 1>(j);
  for (; j < n; ++j) f.template operator()<A, 1>(j);
}
/// Elements from one f<V, K> register to the next.
template <class A, class V>
constexpr int64_t width = sizeof(V) / sizeof(A);

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
