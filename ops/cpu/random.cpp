// Random fills.  Normals by Box and Muller 1958; the angle is reduced exactly before it is scaled,
// so that sine and cosine cost two short series.
#include <cmath>
#include <numbers>

#include "ops/cpu/cpu_backend.h"
#include "ops/cpu/words.h"

namespace crucible::cpu {
namespace {

// cos and sin of 2 pi v for v in [0, 1), a multiple of 2^-24.
void turn(float v, float& cosine, float& sine) {
  const float quarter = std::floor(v * 4.0f + 0.5f);
  const float angle = (v - quarter * 0.25f) * 6.28318530717958648f;  // in [-pi / 4, pi / 4]
  const float s = angle * angle;
  // Taylor; the first terms left out are below 2e-9 and 2e-10.
  const float c =
      1.0f + s * (-0.5f + s * (1.0f / 24 + s * (-1.0f / 720 + s * (1.0f / 40320 - s / 3628800))));
  const float t =
      angle + angle * s * (-1.0f / 6 + s * (1.0f / 120 + s * (-1.0f / 5040 + s * (1.0f / 362880))));
  const int turns = static_cast<int>(quarter) & 3;
  const float a = turns & 1 ? t : c, b = turns & 1 ? c : t;
  cosine = turns == 1 || turns == 2 ? -a : a;
  sine = turns >= 2 ? -b : b;
}

// Two standard normals from two words.
void normal_pair(const uint32_t* words, float* z) {
  const float u = static_cast<float>((words[0] >> 8) + 1) * 0x1p-24f;  // (0, 1]
  const float radius = std::sqrt(-2.0f * std::log(u));
  float cosine, sine;
  turn(to_uniform(words[1]), cosine, sine);
  z[0] = radius * cosine;
  z[1] = radius * sine;
}
void normal_pair(const uint32_t* words, double* z) {
  const double u = static_cast<double>((words[0] >> 8) + 1) * 0x1p-24;
  const double radius = std::sqrt(-2.0 * std::log(u));
  const double angle = 2.0 * std::numbers::pi * static_cast<double>(to_uniform(words[1]));
  z[0] = radius * std::cos(angle);
  z[1] = radius * std::sin(angle);
}

}  // namespace

void CpuBackend::kernel(const prim::Random& p) {
  visit_dtype(p.y.dtype(), Floats{}, [&]<class T>() {
    using A = Accumulator<T>;
    T* y = p.y.data<T>();
    const bool normal = p.kind == prim::Random::Kind::normal;
    const A base = static_cast<A>(p.a), factor = static_cast<A>(normal ? p.b : p.b - p.a);
    for_words(p.y.numel(), p.rng, [&](const uint32_t* words, int64_t first, int64_t count) {
      A z[block_elements];
      A values[block_elements];
      if (normal) {
        for (int64_t i = 0; i < count; i += 2) normal_pair(words + i, z + i);
      } else {
        for (int64_t i = 0; i < count; ++i) z[i] = static_cast<A>(to_uniform(words[i]));
      }
      for (int64_t i = 0; i < count; ++i) values[i] = base + factor * z[i];
      read_run(values, 1, y + first, count);
    });
  });
}

}  // namespace crucible::cpu
