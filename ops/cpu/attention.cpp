// Attention: one task a batch and head, shared over the threads; the work is in
// level/attention.cpp.
#include "ops/cpu/level/attention.h"
#include "core/primitives.h"
#include "ops/cpu/cpu_backend.h"
#include "ops/cpu/level.h"
#include "ops/cpu/onednn.h"
#include "ops/cpu/parallel.h"

namespace crucible::cpu {
namespace {

template <class T>
const AttentionOf<T>& kernels() {
  const AttentionKernels& all = at_level(v2::attention, v3::attention, v4::attention);
  if constexpr (std::is_same_v<T, double>) {
    return all.f64;
  } else if constexpr (std::is_same_v<T, float>) {
    return all.f32;
  } else if constexpr (std::is_same_v<T, Float16>) {
    return all.f16;
  } else {
    return all.bf16;
  }
}

// The first element of batch `b` and head `h` of a [B, T, H, D] tensor.
template <class T>
T* of_head(const Tensor& x, int64_t b, int64_t h) {
  return x.data<T>() + b * x.stride(0) + h * x.stride(2);
}

// What forward and backward have in common.
template <class T, class P>
AttentionHead<T> head_of(const P& p, int64_t b, int64_t h) {
  const int64_t t = p.q.size(1), s = p.k.size(1), heads = p.q.size(2);
  AttentionHead<T> head{.t = t,
                        .s = s,
                        .d = p.q.size(3),
                        .scale = static_cast<Accumulator<T>>(p.scale),
                        .causal = p.causal,
                        .mask = nullptr,
                        .mask_row = 0,
                        .mask_column = 0,
                        .q = of_head<T>(p.q, b, h),
                        .k = of_head<T>(p.k, b, h),
                        .v = of_head<T>(p.v, b, h),
                        .q_row = p.q.stride(1),
                        .k_row = p.k.stride(1),
                        .v_row = p.v.stride(1),
                        .o = of_head<T>(p.o, b, h),
                        .o_row = p.o.stride(1),
                        .lse = p.lse.template data<Accumulator<T>>() + (b * heads + h) * t,
                        .scratch = nullptr};
  if (p.mask.defined()) {
    head.mask = p.mask.template data<bool>() + b * p.mask.stride(0) + h * p.mask.stride(1);
    head.mask_row = p.mask.stride(2);
    head.mask_column = p.mask.stride(3);
  }
  return head;
}

// Calls run(batch, head, scratch) for every head, one head at a time on a thread.
template <class T, class P, class F>
void for_each_head(const P& p, Allocator& allocator, F&& run) {
  const int64_t heads = p.q.size(2), count = p.q.size(0) * heads;
  const int64_t elements = attention_scratch(p.k.size(1), p.q.size(3));
  const int64_t threads = count == 1 ? 1 : omp_get_max_threads();
  const Workspace scratch(allocator,
                          threads * elements * static_cast<int64_t>(sizeof(Accumulator<T>)));
  auto* const base = static_cast<Accumulator<T>*>(scratch.data());
#pragma omp parallel for schedule(dynamic) if (threads > 1)
  for (int64_t i = 0; i < count; ++i) {
    run(i / heads, i % heads, base + omp_get_thread_num() * elements);
  }
}

}  // namespace

void CpuBackend::kernel(const prim::Attention& p) {
  if (p.o.numel() == 0) return;
  visit_dtype(p.o.dtype(), Floats{}, [&]<class T>() {
    for_each_head<T>(p, allocator_, [&](int64_t b, int64_t h, Accumulator<T>* scratch) {
      AttentionHead<T> head = head_of<T>(p, b, h);
      head.scratch = scratch;
      kernels<T>().forward(head);
    });
  });
}

void CpuBackend::kernel(const prim::AttentionBackward& p) {
  if (p.output().numel() == 0) return;
  visit_dtype(p.dq.dtype(), Floats{}, [&]<class T>() {
    for_each_head<T>(p, allocator_, [&](int64_t b, int64_t h, Accumulator<T>* scratch) {
      AttentionHead<T> head = head_of<T>(p, b, h);
      head.scratch = scratch;
      head.doutput = of_head<T>(p.doutput, b, h);
      head.doutput_row = p.doutput.stride(1);
      head.dq = of_head<T>(p.dq, b, h);
      head.dk = of_head<T>(p.dk, b, h);
      head.dv = of_head<T>(p.dv, b, h);
      head.dq_row = p.dq.stride(1);
      head.dk_row = p.dk.stride(1);
      head.dv_row = p.dv.stride(1);
      kernels<T>().backward(head);
    });
  });
}

}  // namespace crucible::cpu
