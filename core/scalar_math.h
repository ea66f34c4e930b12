/// The transcendental leaves of the elementwise functors, for host loops and device kernels alike.
///
/// The float versions are polynomials without branches or table look-ups, so that compilers
/// vectorise loops over them; the double versions are the library's.  Everything here is forced
/// inline: the same file is compiled for several x86-64 levels, and no out-of-line copy of one
/// level may serve another.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#if defined(__CUDACC__)
#define CRUCIBLE_HD __host__ __device__ __forceinline__
#else
#define CRUCIBLE_HD [[gnu::always_inline]] inline
#endif

namespace crucible::scalar {

CRUCIBLE_HD double exp(double x) {
  return std::exp(x);
}
CRUCIBLE_HD double log(double x) {
  return std::log(x);
}
CRUCIBLE_HD double tanh(double x) {
  return std::tanh(x);
}
CRUCIBLE_HD double erf(double x) {
  return std::erf(x);
}
CRUCIBLE_HD double sigmoid(double x) {
  return 1.0 / (1.0 + std::exp(-x));
}
CRUCIBLE_HD double pow(double x, double y) {
  return std::pow(x, y);
}
CRUCIBLE_HD double sqrt(double x) {
  return std::sqrt(x);
}
CRUCIBLE_HD float sqrt(float x) {
  return std::sqrt(x);
}
CRUCIBLE_HD float pow(float x, float y) {
  return std::pow(x, y);
}
CRUCIBLE_HD float log(float x) {
  return std::log(x);
}

/// e^x within 1.5 ulp.  Below -87.3 exactly 0, never a subnormal, which would slow what follows;
/// above 88.7 infinity; NaN stays NaN.
/// Source    range reduction by ln 2 in two parts (Cody and Waite 1980); (e^r - 1 - r) / r^2 on
///           |r| <= ln 2 / 2 as the polynomial of least largest relative error, 3e-9.
CRUCIBLE_HD float exp(float x) {
  float t = x < -87.3f ? -87.3f : x;
  t = t > 88.8f ? 88.8f : t;  // a NaN passes both comparisons
  const float n = (t * 1.44269504f + 12582912.0f) - 12582912.0f;
  const float r = (t - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.38145394e-3f;
  p = p * r + 8.36874545e-3f;
  p = p * r + 4.1668389e-2f;
  p = p * r + 1.66665211e-1f;
  p = p * r + 4.9999994e-1f;
  p = p * r * r + r + 1.0f;
  // 2^n in two factors, so that n = 128 does not overflow the exponent field before p scales it.
  const int32_t whole = static_cast<int32_t>(n);
  const float half = std::bit_cast<float>(((whole >> 1) + 127) << 23);
  const float rest = std::bit_cast<float>(((whole - (whole >> 1)) + 127) << 23);
  const float y = p * half * rest;
  return x < -87.3f ? 0.0f : x != x ? x : y;
}

CRUCIBLE_HD float sigmoid(float x) {
  return 1.0f / (1.0f + exp(-x));
}

/// tanh within 4 ulp: a series near 0, (1 - e) / (1 + e) with e = exp(-2 |x|) elsewhere.
CRUCIBLE_HD float tanh(float x) {
  const float a = std::fabs(x);
  const float e = exp(-2.0f * a);
  const float far = std::copysign((1.0f - e) / (1.0f + e), x);
  const float s = x * x;
  float p = -5.70498872745e-3f;
  p = p * s + 2.06390887954e-2f;
  p = p * s - 5.37397155531e-2f;
  p = p * s + 1.33314422036e-1f;
  p = p * s - 3.33332819422e-1f;
  const float near = p * s * x + x;
  return a < 0.625f ? near : far;
}

/// erf within 1e-7 absolute, and within 3 ulp for |x| < 0.92.
/// Source    erf(x) / x - 1 in x^2 near 0, 1 - exp(q(x)) with q = log erfc elsewhere; both
///           polynomials of least largest error (4e-10 and 2e-9 of the result).
CRUCIBLE_HD float erf(float x) {
  const float a = std::fabs(x);
  const float t = a > 4.0f ? 4.0f : a;  // erf(4) rounds to 1
  float q = 1.97181653e-4f;
  q = q * t - 3.05560674e-3f;
  q = q * t + 2.22770851e-2f;
  q = q * t - 1.04037352e-1f;
  q = q * t - 6.37059748e-1f;
  q = q * t - 1.12774956f;
  q = q * t - 1.77495502e-4f;
  const float far = std::copysign(1.0f - exp(q), x);
  const float s = x * x;
  float p = 8.3719031e-5f;
  p = p * s - 8.14312953e-4f;
  p = p * s + 5.20106964e-3f;
  p = p * s - 2.68594138e-2f;
  p = p * s + 1.12836957e-1f;
  p = p * s - 3.76126349e-1f;
  p = p * s + 1.28379166e-1f;
  const float near = p * x + x;
  return a < 0.92f ? near : far;
}

}  // namespace crucible::scalar
