#include "ops/autocast.h"

#include "ops/cast.h"
#include "ops/op.h"

namespace crucible {
namespace {

thread_local std::optional<DType> scope_dtype;

const OpInfo cast_op{"cast"};

// The 16-bit copy of a parameter, as a function of the parameter.
Tensor narrow_parameter(const Tensor& x) {
  x.node()->narrow_copy->refresh();
  return record(cast_op, x.node()->narrow, {x},
                [](const Tensor& dy, const Needs& needs) -> Gradients {
                  const Tensor dx = needs.destination(0);
                  run(prim::Copy{.x = dy, .y = dx});
                  return {dx};
                });
}

}  // namespace

AutocastScope::AutocastScope(std::optional<DType> dtype)
    : previous_(std::exchange(scope_dtype, dtype)) {
  if (dtype && *dtype != DType::f16 && *dtype != DType::bf16) {
    scope_dtype = previous_;
    fail("autocast: {} is no dtype of mixed precision; use f16 or bf16.", name_of(*dtype));
  }
}

AutocastScope::~AutocastScope() {
  scope_dtype = previous_;
}

std::optional<DType> AutocastScope::current() {
  return scope_dtype;
}

Tensor autocast(const OpInfo& op, const Tensor& x) {
  if (!scope_dtype || op.autocast == Autocast::keep || !x.defined()) return x;
  const bool casts = is_floating(x.dtype()) && x.dtype() != DType::f64;
  const DType to = op.autocast == Autocast::narrow ? *scope_dtype : DType::f32;
  if (!casts || x.dtype() == to) return x;
  const Node* node = x.node().get();
  if (node && node->narrow.defined() && node->narrow.dtype() == to) return narrow_parameter(x);
  return cast(x, to);
}

std::pair<Tensor, Tensor> autocast_pair(const OpInfo& op, const Tensor& a, const Tensor& b) {
  const Tensor u = autocast(op, a), v = autocast(op, b);
  const bool mixed = scope_dtype && u.dtype() != v.dtype() && is_floating(u.dtype()) &&
                     is_floating(v.dtype()) && u.dtype() != DType::f64 && v.dtype() != DType::f64;
  if (!mixed) return {u, v};
  return {cast(u, DType::f32), cast(v, DType::f32)};
}

}  // namespace crucible
