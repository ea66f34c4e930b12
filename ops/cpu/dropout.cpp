// Dropout: the mask is a function of position, so nothing is stored and backward is the same code.
#include <cmath>

#include "ops/cpu/cpu_backend.h"
#include "ops/cpu/words.h"

namespace crucible::cpu {

void CpuBackend::kernel(const prim::Dropout& p) {
  visit_dtype(p.y.dtype(), Floats{}, [&]<class T>() {
    using A = Accumulator<T>;
    const T* x = p.x.data<T>();
    T* y = p.y.data<T>();
    // uniform >= p, in integers: (word >> 8) 2^-24 >= p.
    const uint32_t threshold = static_cast<uint32_t>(std::ceil(p.p * 0x1p24));
    const A scale = static_cast<A>(1.0 / (1.0 - p.p));
    for_words(p.y.numel(), p.rng, [&](const uint32_t* words, int64_t first, int64_t count) {
      A in[block_elements];
      read_run(x + first, 1, in, count);
      for (int64_t i = 0; i < count; ++i) {
        in[i] = (words[i] >> 8) >= threshold ? in[i] * scale : A(0);
      }
      read_run(in, 1, y + first, count);
    });
  });
}

}  // namespace crucible::cpu
