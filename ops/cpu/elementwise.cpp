// Elementwise primitives: resolves dtypes and strides, and feeds slices to the kernels of the
// level.  Operands that are contiguous f32 or f64 are read in place; others (16-bit, broadcast,
// permuted) pass through first-level cache buffers of block_elements.
#include "ops/cpu/level/elementwise.h"

#include "core/check.h"
#include "ops/cpu/cpu_backend.h"
#include "ops/cpu/parallel.h"
#include "ops/cpu/strided.h"

namespace crucible::cpu {
namespace {

template <class A>
const ElementwiseOf<A>& kernels() {
  const ElementwiseKernels& all = at_level(v2::elementwise, v3::elementwise, v4::elementwise);
  if constexpr (std::is_same_v<A, double>) {
    return all.f64;
  } else {
    return all.f32;
  }
}

bool is_costly(UnaryOp op) {
  switch (op) {
    case UnaryOp::exp:
    case UnaryOp::log:
    case UnaryOp::gelu:
    case UnaryOp::gelu_tanh:
    case UnaryOp::sigmoid:
    case UnaryOp::tanh:
    case UnaryOp::silu:
    case UnaryOp::power:
      return true;
    default:
      return false;
  }
}

// Calls slice(inputs..., y, count) over blocks of contiguous A, for inputs read by `readers` and an
// output y [n] of T.
template <class T, class A, class Slice, class... Inputs>
void map(int64_t n, int64_t grain, T* y, Slice&& slice, const Inputs&... readers) {
  parallel_for(
      n, grain,
      [&](int64_t begin, int64_t end) {
        if constexpr (std::is_same_v<T, A>) {
          if ((readers.contiguous() && ...)) {
            slice(readers.read(begin, end - begin, nullptr)..., y + begin, end - begin);
            return;
          }
        }
        A buffers[sizeof...(Inputs)][block_elements];
        [[maybe_unused]] A out[block_elements];
        for (int64_t i = begin; i < end; i += block_elements) {
          const int64_t count = std::min(block_elements, end - i);
          A(*buffer)[block_elements] = buffers;
          // A braced list is evaluated left to right.
          const A* const in[] = {readers.read(i, count, *buffer++)...};
          const auto call = [&]<size_t... I>(A * to, std::index_sequence<I...>) {
            slice(in[I]..., to, count);
          };
          if constexpr (std::is_same_v<T, A>) {
            call(y + i, std::index_sequence_for<Inputs...>{});
          } else {
            call(out, std::index_sequence_for<Inputs...>{});
            read_run(out, 1, y + i, count);
          }
        }
      },
      16);
}

int64_t apply(BinaryOp op, int64_t a, int64_t b) {
  // Unsigned arithmetic wraps where signed overflow would be undefined.
  const uint64_t u = static_cast<uint64_t>(a), v = static_cast<uint64_t>(b);
  switch (op) {
    case BinaryOp::add:
      return static_cast<int64_t>(u + v);
    case BinaryOp::sub:
      return static_cast<int64_t>(u - v);
    case BinaryOp::mul:
      return static_cast<int64_t>(u * v);
    case BinaryOp::maximum:
      return std::max(a, b);
    default:
      return std::min(a, b);
  }
}

// Compares in A, which holds every value of T exactly.
template <class A, class T>
void compare(const prim::Compare& p) {
  const auto run = [&](auto holds) {
    const Reader<T, A> a(p.a), b(p.b);
    const Walk out(p.y);
    bool* y = p.y.data<bool>();
    parallel_for(p.y.numel(), cheap_grain, [&](int64_t begin, int64_t end) {
      A left[block_elements], right[block_elements];
      for (int64_t i = begin; i < end; i += block_elements) {
        const int64_t count = std::min(block_elements, end - i);
        const A* u = a.read(i, count, left);
        const A* v = b.read(i, count, right);
        out.runs(i, count, [&](int64_t offset, int64_t stride, int64_t n) {
          for (int64_t j = 0; j < n; ++j) y[offset + j * stride] = holds(u[j], v[j]);
          u += n;
          v += n;
        });
      }
    });
  };
  switch (p.op) {
    case CompareOp::eq:
      return run([](A u, A v) { return u == v; });
    case CompareOp::ne:
      return run([](A u, A v) { return u != v; });
    case CompareOp::lt:
      return run([](A u, A v) { return u < v; });
    case CompareOp::le:
      return run([](A u, A v) { return u <= v; });
    case CompareOp::gt:
      return run([](A u, A v) { return u > v; });
    case CompareOp::ge:
      return run([](A u, A v) { return u >= v; });
  }
}

// Chooses between elements of any type of the size of U.
template <class U>
void choose(const prim::Where& p) {
  const Walk condition(p.condition), a(p.a), b(p.b), out(p.y);
  const auto gather = [](const Walk& walk, const U* from, int64_t begin, int64_t count, U* to) {
    walk.runs(begin, count, [&](int64_t offset, int64_t stride, int64_t n) {
      read_run(from + offset, stride, to, n);
      to += n;
    });
  };
  parallel_for(p.y.numel(), cheap_grain, [&](int64_t begin, int64_t end) {
    U left[block_elements], right[block_elements];
    uint8_t take[block_elements];
    for (int64_t i = begin; i < end; i += block_elements) {
      const int64_t count = std::min(block_elements, end - i);
      gather(a, reinterpret_cast<const U*>(p.a.raw_data()), i, count, left);
      gather(b, reinterpret_cast<const U*>(p.b.raw_data()), i, count, right);
      uint8_t* to = take;
      condition.runs(i, count, [&](int64_t offset, int64_t stride, int64_t n) {
        read_run(p.condition.data<uint8_t>() + offset, stride, to, n);
        to += n;
      });
      for (int64_t j = 0; j < count; ++j) left[j] = take[j] ? left[j] : right[j];
      const U* from = left;
      out.runs(i, count, [&](int64_t offset, int64_t stride, int64_t n) {
        U* y = reinterpret_cast<U*>(p.y.raw_data()) + offset;
        for (int64_t j = 0; j < n; ++j) y[j * stride] = from[j];
        from += n;
      });
    }
  });
}

}  // namespace

void CpuBackend::kernel(const prim::Unary& p) {
  visit_dtype(p.y.dtype(), Floats{}, [&]<class T>() {
    using A = Accumulator<T>;
    const auto slice = kernels<A>().unary[static_cast<int>(p.op)];
    const A a = static_cast<A>(p.params.a), b = static_cast<A>(p.params.b);
    map<T, A>(
        p.y.numel(), is_costly(p.op) ? costly_grain : cheap_grain, p.y.data<T>(),
        [=](const A* x, A* y, int64_t n) { slice(x, y, n, a, b); }, Reader<T, A>(p.x));
  });
}

void CpuBackend::kernel(const prim::UnaryBackward& p) {
  const elementwise::Uses uses = backward_uses(p.op);
  const Tensor& saved = uses == elementwise::Uses::x   ? p.x
                        : uses == elementwise::Uses::y ? p.y
                                                       : p.dy;
  visit_dtype(p.dx.dtype(), Floats{}, [&]<class T>() {
    using A = Accumulator<T>;
    const auto slice = kernels<A>().unary_backward[static_cast<int>(p.op)];
    const A a = static_cast<A>(p.params.a), b = static_cast<A>(p.params.b);
    map<T, A>(
        p.dx.numel(), is_costly(p.op) ? costly_grain : cheap_grain, p.dx.data<T>(),
        [=](const A* s, const A* dy, A* dx, int64_t n) { slice(s, dy, dx, n, a, b); },
        Reader<T, A>(saved), Reader<T, A>(p.dy));
  });
}

void CpuBackend::kernel(const prim::Binary& p) {
  if (p.y.dtype() == DType::i64) {
    using I = int64_t;
    map<I, I>(
        p.y.numel(), cheap_grain, p.y.data<I>(),
        [op = p.op](const I* a, const I* b, I* y, int64_t n) {
          for (int64_t i = 0; i < n; ++i) y[i] = apply(op, a[i], b[i]);
        },
        Reader<I, I>(p.a), Reader<I, I>(p.b));
    return;
  }
  visit_dtype(p.y.dtype(), Floats{}, [&]<class T>() {
    using A = Accumulator<T>;
    map<T, A>(p.y.numel(), p.op == BinaryOp::pow ? costly_grain : cheap_grain, p.y.data<T>(),
              kernels<A>().binary[static_cast<int>(p.op)], Reader<T, A>(p.a), Reader<T, A>(p.b));
  });
}

void CpuBackend::kernel(const prim::BinaryBackward& p) {
  visit_dtype(p.d.dtype(), Floats{}, [&]<class T>() {
    using A = Accumulator<T>;
    const auto& table = kernels<A>();
    const int op = static_cast<int>(p.op);
    map<T, A>(p.d.numel(), p.op == BinaryOp::pow ? costly_grain : cheap_grain, p.d.data<T>(),
              p.of == prim::BinaryBackward::Of::a ? table.binary_backward_a[op]
                                                  : table.binary_backward_b[op],
              Reader<T, A>(p.a), Reader<T, A>(p.b), Reader<T, A>(p.dy));
  });
}

void CpuBackend::kernel(const prim::Compare& p) {
  visit_dtype(p.a.dtype(), AllDTypes{}, [&]<class T>() {
    if constexpr (std::is_same_v<T, double>) {
      compare<double, T>(p);
    } else if constexpr (std::is_integral_v<T>) {
      compare<int64_t, T>(p);
    } else {
      compare<float, T>(p);
    }
  });
}

void CpuBackend::kernel(const prim::Where& p) {
  switch (size_of(p.y.dtype())) {
    case 1:
      return choose<uint8_t>(p);
    case 2:
      return choose<uint16_t>(p);
    case 4:
      return choose<uint32_t>(p);
    default:
      return choose<uint64_t>(p);
  }
}

}  // namespace crucible::cpu
