// Single primitives on the CPU at the shapes of the reference models, as a share of the f32
// multiply-add peak that is measured right before each (for pooling and the like: bytes a second).
//
//   primitives_benchmark --benchmark_filter=Convolution --benchmark_min_time=0.5
#include <benchmark/benchmark.h>

#include <functional>
#include <string>
#include <vector>

#include "core/allocator.h"
#include "core/backend.h"
#include "core/cost.h"
#include "core/storage.h"
#include "tests/benchmarks/peak.h"

namespace crucible::benchmarks {
namespace {

Tensor filled(const Shape& shape, DType dtype = DType::f32,
              MemoryTag tag = MemoryTag::activations) {
  const MemoryTagScope scope(tag);
  const Tensor t = Tensor::empty(shape, dtype);
  uint32_t state = 12345;
  visit_dtype(dtype, Floats{}, [&]<class T>() {
    for (int64_t i = 0; i < t.numel(); ++i) {
      state = state * 1664525u + 1013904223u;
      t.data<T>()[i] = T(static_cast<float>(static_cast<int32_t>(state)) * 0x1p-31f);
    }
  });
  return t;
}

// The same counters everywhere, as the CSV output demands; `of_peak` is 0 where no matrix is.
template <class P>
void report(benchmark::State& state, const P& p, double peak) {
  using benchmark::Counter;
  const Cost c = cost(Primitive(p));
  const auto per_second = [&](double amount) {
    return Counter(amount, Counter::kIsIterationInvariantRate);
  };
  state.counters["FLOPs"] = per_second(c.flops);
  state.counters["of_peak"] = per_second(c.matrix ? c.flops / peak : 0.0);
  state.counters["bytes"] = per_second(static_cast<double>(c.read_bytes + c.written_bytes));
}

// Runs `p` once an iteration.
template <class P>
void measure(benchmark::State& state, const P& p) {
  const double peak = peak_flops(0.03);
  run(p);
  for (auto _ : state) run(p);
  report(state, p, peak);
}

void add(const std::string& name, std::function<void(benchmark::State&)> body) {
  benchmark::RegisterBenchmark(name.c_str(), std::move(body))->UseRealTime();
}

// The three products of a linear layer with `rows` rows; the weight is a parameter.
void add_linear(const std::string& label, int64_t rows, int64_t in, int64_t out) {
  const std::string name = "Matmul/" + label + "/" + std::to_string(rows) + "x" +
                           std::to_string(in) + "->" + std::to_string(out);
  add(name + "/forward", [=](benchmark::State& state) {
    const Tensor x = filled({1, rows, in}),
                 w = filled({1, out, in}, DType::f32, MemoryTag::parameters), bias = filled({out}),
                 y = filled({1, rows, out});
    measure(state, prim::Matmul{.a = x, .b = w, .transpose_b = true, .bias = bias, .y = y});
  });
  // A training step packs the weight anew, once a layout.
  add(name + "/forward_fresh", [=](benchmark::State& state) {
    const Tensor x = filled({1, rows, in}),
                 w = filled({1, out, in}, DType::f32, MemoryTag::parameters), bias = filled({out}),
                 y = filled({1, rows, out});
    const prim::Matmul p{.a = x, .b = w, .transpose_b = true, .bias = bias, .y = y};
    const double peak = peak_flops(0.03);
    run(p);
    for (auto _ : state) {
      w.storage()->bump_version();
      run(p);
    }
    report(state, p, peak);
  });
  add(name + "/data_gradient", [=](benchmark::State& state) {
    const Tensor dy = filled({1, rows, out}),
                 w = filled({1, out, in}, DType::f32, MemoryTag::parameters),
                 dx = filled({1, rows, in});
    measure(state, prim::Matmul{.a = dy, .b = w, .y = dx});
  });
  add(name + "/weight_gradient", [=](benchmark::State& state) {
    const Tensor x = filled({1, rows, in}), dy = filled({1, rows, out}), dw = filled({1, out, in});
    measure(state, prim::Matmul{.a = dy, .b = x, .transpose_a = true, .y = dw});
  });
}

void add_convolution(const std::string& label, int64_t n, int64_t h, int64_t c, int64_t o,
                     int64_t kernel, int64_t stride, DType dtype = DType::f32) {
  const Window window{{kernel, kernel}, {stride, stride}, {kernel / 2, kernel / 2}, {1, 1}};
  const int64_t ho = (h + 2 * (kernel / 2) - kernel) / stride + 1;
  const Shape xs{n, h, h, c}, ws{o, kernel, kernel, c}, ys{n, ho, ho, o};
  const std::string name = "Convolution/" + label + "/" + std::to_string(h) + "px/" +
                           std::to_string(c) + "->" + std::to_string(o) + "/k" +
                           std::to_string(kernel) + "s" + std::to_string(stride) + "/" +
                           std::string(name_of(dtype));
  add(name + "/forward", [=](benchmark::State& state) {
    const Tensor x = filled(xs, dtype), w = filled(ws, dtype, MemoryTag::parameters),
                 y = filled(ys, dtype);
    measure(state, prim::Convolution{.x = x, .w = w, .window = window, .y = y});
  });
  add(name + "/data_gradient", [=](benchmark::State& state) {
    const Tensor dx = filled(xs, dtype), w = filled(ws, dtype, MemoryTag::parameters),
                 dy = filled(ys, dtype);
    measure(state, prim::ConvolutionDataGradient{.dy = dy, .w = w, .window = window, .dx = dx});
  });
  add(name + "/filter_gradient", [=](benchmark::State& state) {
    const Tensor x = filled(xs, dtype), dw = filled(ws, dtype), dy = filled(ys, dtype);
    measure(state, prim::ConvolutionFilterGradient{.x = x, .dy = dy, .window = window, .dw = dw});
  });
}

// Causal self-attention on a packed projection, as in a GPT.
void add_attention(int64_t b, int64_t t, int64_t h, int64_t d, DType dtype) {
  const std::string name = "Attention/b" + std::to_string(b) + "t" + std::to_string(t) + "h" +
                           std::to_string(h) + "d" + std::to_string(d) + "/" +
                           std::string(name_of(dtype));
  const auto part = [=](const Tensor& packed, int64_t i) {
    return packed.as_strided({b, t, h, d}, {t * 3 * h * d, 3 * h * d, d, 1}, i * h * d);
  };
  for (const bool backward : {false, true}) {
    add(name + (backward ? "/backward" : "/forward"), [=](benchmark::State& state) {
      const Tensor qkv = filled({b, t, 3 * h * d}, dtype), grad = filled({b, t, 3 * h * d}, dtype);
      const Tensor q = part(qkv, 0), k = part(qkv, 1), v = part(qkv, 2), dq = part(grad, 0),
                   dk = part(grad, 1), dv = part(grad, 2), o = filled({b, t, h, d}, dtype),
                   dy = filled({b, t, h, d}, dtype), lse = filled({b, h, t});
      const prim::Attention p{
          .q = q, .k = k, .v = v, .causal = true, .scale = 0.17, .lse = lse, .o = o};
      run(p);
      if (!backward) return measure(state, p);
      measure(state, prim::AttentionBackward{.q = q,
                                             .k = k,
                                             .v = v,
                                             .causal = true,
                                             .scale = 0.17,
                                             .o = o,
                                             .lse = lse,
                                             .doutput = dy,
                                             .dq = dq,
                                             .dk = dk,
                                             .dv = dv});
    });
  }
}

void add_pool() {
  const Window window{{3, 3}, {2, 2}, {1, 1}, {1, 1}};
  add("Pool/max/112px/64", [=](benchmark::State& state) {
    const Tensor x = filled({8, 112, 112, 64}), y = filled({8, 56, 56, 64});
    measure(state, prim::Pool{.op = PoolOp::max, .window = window, .x = x, .y = y});
  });
  add("Pool/max/112px/64/backward", [=](benchmark::State& state) {
    const Tensor x = filled({8, 112, 112, 64}), dy = filled({8, 56, 56, 64}), dx = empty_like(x);
    measure(state,
            prim::PoolBackward{.op = PoolOp::max, .window = window, .x = x, .dy = dy, .dx = dx});
  });
}

void add_all() {
  for (const int64_t rows : {64, 1024}) {
    add_linear("mlp", rows, 784, 512);
    add_linear("mlp", rows, 512, 512);
    add_linear("mlp", rows, 512, 10);
  }
  add_linear("gpt", 2048, 256, 768);
  add_linear("gpt", 2048, 256, 256);
  add_linear("gpt", 2048, 256, 1024);
  add_linear("gpt", 2048, 1024, 256);
  add_convolution("resnet18", 64, 32, 3, 64, 3, 1);
  add_convolution("resnet18", 64, 32, 64, 64, 3, 1);
  add_convolution("resnet18", 64, 32, 64, 128, 3, 2);
  add_convolution("resnet18", 64, 32, 64, 128, 1, 2);
  add_convolution("resnet18", 64, 16, 128, 128, 3, 1);
  add_convolution("resnet18", 64, 8, 256, 256, 3, 1);
  add_convolution("resnet18", 64, 4, 512, 512, 3, 1);
  add_convolution("resnet18", 64, 4, 512, 512, 3, 1, DType::bf16);
  add_convolution("resnet20", 128, 28, 1, 16, 3, 1);
  add_convolution("resnet20", 128, 28, 16, 16, 3, 1);
  add_convolution("resnet20", 128, 14, 32, 32, 3, 1);
  add_convolution("resnet20", 128, 7, 64, 64, 3, 1);
  add_convolution("resnet50", 8, 224, 3, 64, 7, 2);
  add_convolution("resnet50", 8, 56, 64, 256, 1, 1);
  add_convolution("resnet50", 8, 28, 512, 128, 1, 1);
  add_convolution("resnet50", 8, 14, 1024, 256, 1, 1);
  add_convolution("resnet50", 8, 14, 256, 256, 3, 1);
  add_convolution("resnet50", 8, 14, 1024, 2048, 1, 2);
  for (const DType dtype : {DType::f32, DType::bf16}) add_attention(8, 256, 8, 32, dtype);
  add_attention(2, 1024, 12, 64, DType::f32);
  add_pool();
}

}  // namespace
}  // namespace crucible::benchmarks

int main(int argc, char** argv) {
  crucible::benchmarks::add_all();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
