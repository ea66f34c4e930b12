// One loop per functor and type.  Bytes an element: 2 streams for unary, 3 for unary backward and
// binary, 4 for binary backward.  16-bit data arrives widened.
#include "ops/cpu/level/elementwise.h"

namespace crucible::cpu::CRUCIBLE_LEVEL {
namespace {

using namespace crucible::elementwise;

template <class A, class F>
void unary(const A* x, A* y, int64_t n, A a, A b) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = F::forward(x[i], a, b);
}

template <class A, class F>
void unary_backward(const A* saved, const A* dy, A* dx, int64_t n, A a, A b) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) dx[i] = F::backward(saved[i], dy[i], a, b);
}

template <class A, class F>
void binary(const A* a, const A* b, A* y, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = F::forward(a[i], b[i]);
}

template <class A, class F>
void binary_backward_a(const A* a, const A* b, const A* dy, A* d, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) d[i] = F::grad_a(a[i], b[i], dy[i]);
}

template <class A, class F>
void binary_backward_b(const A* a, const A* b, const A* dy, A* d, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) d[i] = F::grad_b(a[i], b[i], dy[i]);
}

// In the order of UnaryOp and BinaryOp.
template <class A, class... U>
struct UnaryTable {
  template <class... B>
  static constexpr ElementwiseOf<A> with() {
    return {{unary<A, U>...},
            {unary_backward<A, U>...},
            {binary<A, B>...},
            {binary_backward_a<A, B>...},
            {binary_backward_b<A, B>...}};
  }
};

template <class A>
constexpr ElementwiseOf<A> table() {
  return UnaryTable<A, Neg, Abs, Exp, Log, Sqrt, Square, Relu, Gelu, GeluTanh, Sigmoid, Tanh, Silu,
                    Clamp, Affine,
                    Power>::template with<Add, Sub, Mul, Div, Pow, Maximum, Minimum>();
}

}  // namespace

extern const ElementwiseKernels elementwise{table<float>(), table<double>()};

}  // namespace crucible::cpu::CRUCIBLE_LEVEL
