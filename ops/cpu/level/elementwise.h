/// The elementwise functors of core/elementwise.h over slices [n]; one table a level.
#pragma once

#include <cstdint>

#include "core/elementwise.h"

namespace crucible::cpu {

constexpr int unary_ops = static_cast<int>(UnaryOp::power) + 1;
constexpr int binary_ops = static_cast<int>(BinaryOp::minimum) + 1;

template <class A>
struct ElementwiseOf {
  /// y = op(x); y may be x.
  void (*unary[unary_ops])(const A* x, A* y, int64_t n, A a, A b);
  /// dx = dy * op'; `saved` is what the op's backward reads, x or y; dx may be dy.
  void (*unary_backward[unary_ops])(const A* saved, const A* dy, A* dx, int64_t n, A a, A b);
  void (*binary[binary_ops])(const A* a, const A* b, A* y, int64_t n);
  void (*binary_backward_a[binary_ops])(const A* a, const A* b, const A* dy, A* d, int64_t n);
  void (*binary_backward_b[binary_ops])(const A* a, const A* b, const A* dy, A* d, int64_t n);
};

struct ElementwiseKernels {
  ElementwiseOf<float> f32;
  ElementwiseOf<double> f64;
};

namespace v2 {
extern const ElementwiseKernels elementwise;
}
namespace v3 {
extern const ElementwiseKernels elementwise;
}
namespace v4 {
extern const ElementwiseKernels elementwise;
}

}  // namespace crucible::cpu
