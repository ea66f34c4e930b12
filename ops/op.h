/// Private: what every op does before it calls a primitive.  Never included by a public header.
#pragma once

#include <array>
#include <span>
#include <utility>

#include "core/autograd.h"
#include "core/backend.h"
#include "core/check.h"

namespace crucible {

/// `x` itself if it is contiguous, else a contiguous copy without history.
Tensor contiguous_data(const Tensor& x);

/// `x` in the dtype that the current AutocastScope wants for `op`, differentiably.
Tensor autocast(const OpInfo& op, const Tensor& x);
/// The same for two operands that must be of one dtype: where they are not, both in f32.
std::pair<Tensor, Tensor> autocast_pair(const OpInfo& op, const Tensor& a, const Tensor& b);

/// Checks that `x` is defined and floating, and returns it contiguous and as autocast wants it
/// (differentiably).
/// Throws    InvalidArgument naming the op and the argument.
Tensor prepare(const OpInfo& op, const Tensor& x, std::string_view argument = "x");

/// Checks that `x` is defined.
void check_defined(const OpInfo& op, const Tensor& x, std::string_view argument);
/// Checks that `a` and `b` have one dtype and device.
void check_same_kind(const OpInfo& op, const Tensor& a, const Tensor& b);
/// `axis` counted from the start.
/// Throws    InvalidArgument if it is outside [-rank, rank).
int normalize_axis(const OpInfo& op, int axis, int rank);

/// A view of `x` with the sizes of `shape` (to which x broadcasts); stride 0 where x is repeated.
Tensor expand_data(const Tensor& x, const Shape& shape);
/// `x` summed down to `shape`, which broadcasts to x's shape.  Without history.
Tensor sum_to_data(const Tensor& x, const Shape& shape);
/// A view of the same elements under another shape; `x` is contiguous.
Tensor reshape_data(const Tensor& x, const Shape& shape);

}  // namespace crucible
