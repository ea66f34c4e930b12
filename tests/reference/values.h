/// How reference kernels read and write tensors: whole, in row-major order, as numbers.
#pragma once

#include <span>
#include <vector>

#include "core/tensor.h"
#include "tests/reference/real.h"

namespace crucible::reference {

/// Offsets in elements of all elements of `x`, in row-major order.
std::vector<int64_t> offsets(const Tensor& x);

/// All elements of `x`; an undefined tensor gives none.
std::vector<Real> read(const Tensor& x);
std::vector<int64_t> read_integers(const Tensor& x);
/// The element of a 0-d tensor, or `otherwise` if it is undefined.
Real read_scalar(const Tensor& x, double otherwise);

/// Rounds to the dtype of `y`: to nearest even if floating; else toward zero, saturating, NaN to 0.
/// An undefined tensor is left alone.
void write(const Tensor& y, std::span<const Real> values);
void write_integers(const Tensor& y, std::span<const int64_t> values);

/// `x` after it went through memory as `dtype`: one more rounding of that type.
Real stored(Real x, DType dtype);
/// The distance between neighbouring values of `dtype` at the magnitude of `value`.
double spacing(DType dtype, double value);

/// While alive, write() keeps the error of every element it stores.
class KeepErrors {
 public:
  KeepErrors();
  ~KeepErrors();
  KeepErrors(const KeepErrors&) = delete;
  KeepErrors& operator=(const KeepErrors&) = delete;
  /// The errors of the tensor last written at this address, in row-major order.
  const std::vector<double>* of(const Tensor& y) const;
};

}  // namespace crucible::reference
