#include "tests/benchmarks/peak.h"

#include <immintrin.h>
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <vector>

namespace crucible::benchmarks {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

constexpr int chains = 12;  // independent, to hide the latency of a multiply-add

[[gnu::target("avx512f")]] void multiply_add_512(long iterations) {
  __m512 v[chains];
  const __m512 m = _mm512_set1_ps(0.999f), c = _mm512_set1_ps(1e-3f);
  for (auto& x : v) x = m;
  for (long i = 0; i < iterations; ++i) {
#pragma GCC unroll 12
    for (int j = 0; j < chains; ++j) v[j] = _mm512_fmadd_ps(v[j], m, c);
  }
  for (auto& x : v) asm volatile("" ::"v"(x));
}

[[gnu::target("avx2,fma")]] void multiply_add_256(long iterations) {
  __m256 v[chains];
  const __m256 m = _mm256_set1_ps(0.999f), c = _mm256_set1_ps(1e-3f);
  for (auto& x : v) x = m;
  for (long i = 0; i < iterations; ++i) {
#pragma GCC unroll 12
    for (int j = 0; j < chains; ++j) v[j] = _mm256_fmadd_ps(v[j], m, c);
  }
  for (auto& x : v) asm volatile("" ::"x"(x));
}

void multiply_add_128(long iterations) {
  __m128 v[chains];
  const __m128 m = _mm_set1_ps(0.999f), c = _mm_set1_ps(1e-3f);
  for (auto& x : v) x = m;
  for (long i = 0; i < iterations; ++i) {
#pragma GCC unroll 12
    for (int j = 0; j < chains; ++j) v[j] = _mm_add_ps(_mm_mul_ps(v[j], m), c);
  }
  for (auto& x : v) asm volatile("" ::"x"(x));
}

struct Kernel {
  void (*run)(long iterations);
  double flops_per_iteration;
};

Kernel widest() {
  if (__builtin_cpu_supports("avx512f")) return {multiply_add_512, 2.0 * 16 * chains};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    return {multiply_add_256, 2.0 * 8 * chains};
  }
  return {multiply_add_128, 2.0 * 4 * chains};
}

double median(std::vector<double>& values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

}  // namespace

double peak_flops(double seconds) {
  static const Kernel kernel = widest();
  constexpr long iterations = 100'000;  // about a millisecond
  std::vector<double> rates;
  const double end = now() + seconds;
  do {
    const double start = now();
#pragma omp parallel
    kernel.run(iterations);
    rates.push_back(iterations * kernel.flops_per_iteration * omp_get_max_threads() /
                    (now() - start));
  } while (now() < end);
  return median(rates);
}

double copy_bandwidth() {
  constexpr long bytes = 256 << 20;
  const auto from = std::make_unique<char[]>(bytes), to = std::make_unique<char[]>(bytes);
  std::vector<double> rates;
  for (int i = 0; i < 7; ++i) {
    const double start = now();
#pragma omp parallel
    {
      const long threads = omp_get_num_threads(), t = omp_get_thread_num();
      const long begin = bytes * t / threads, stop = bytes * (t + 1) / threads;
      std::memcpy(to.get() + begin, from.get() + begin, stop - begin);
    }
    rates.push_back(2.0 * bytes / (now() - start));
  }
  return median(rates);
}

}  // namespace crucible::benchmarks
