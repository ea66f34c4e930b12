// Softmax: rows are shared over threads, each by one slice kernel.
#include "ops/cpu/level/softmax.h"

#include "ops/cpu/cpu_backend.h"
#include "ops/cpu/level.h"
#include "ops/cpu/parallel.h"

namespace crucible::cpu {

void CpuBackend::kernel(const prim::Softmax& p) {
  visit_dtype(p.x.dtype(), Floats{}, [&]<class T>() {
    const int64_t c = p.x.size(1);
    const auto& table = at_level(v2::softmax, v3::softmax, v4::softmax).of<T>();
    parallel_for(p.x.size(0), costly_grain / std::max<int64_t>(c, 1),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t r = begin; r < end; ++r) {
                     table.forward(p.x.data<T>() + r * c, p.y.data<T>() + r * c, c, p.log);
                   }
                 });
  });
}

void CpuBackend::kernel(const prim::SoftmaxBackward& p) {
  visit_dtype(p.dx.dtype(), Floats{}, [&]<class T>() {
    const int64_t c = p.dx.size(1);
    const auto& table = at_level(v2::softmax, v3::softmax, v4::softmax).of<T>();
    parallel_for(p.dx.size(0), (p.log ? costly_grain : cheap_grain) / std::max<int64_t>(c, 1),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t r = begin; r < end; ++r) {
                     table.backward(p.y.data<T>() + r * c, p.dy.data<T>() + r * c,
                                    p.dx.data<T>() + r * c, c, p.log);
                   }
                 });
  });
}

}  // namespace crucible::cpu
