/// Hands out the tensors of a sample: for one seed the same values on every device.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/primitives.h"
#include "core/rng.h"
#include "core/tensor.h"

namespace crucible::testing {

/// How a tensor lies in memory.
enum class Layout : uint8_t {
  dense,    ///< Row-major without gaps.
  flipped,  ///< First axis innermost, as a full transpose leaves it.
  gapped,   ///< Every second element of a larger tensor, starting at the second.
};

class Maker {
 public:
  Maker(Device device, DType dtype, uint64_t seed) : device_(device), dtype_(dtype), rng_(seed) {}

  Device device() const { return device_; }
  DType dtype() const { return dtype_; }  ///< Of the data under test.

  /// Standard normal values times `deviation`, plus `mean`.
  Tensor normal(const Shape& shape, Layout layout = Layout::dense);
  Tensor normal(const Shape& shape, double mean, double deviation);
  Tensor uniform(const Shape& shape, double low, double high, Layout layout = Layout::dense);
  /// The values given, in row-major order.
  Tensor values(const Shape& shape, const std::vector<double>& values,
                Layout layout = Layout::dense);
  /// Distinct values 1 .. n times `step` in random order: no ties, no value near another.
  Tensor distinct(const Shape& shape, double step = 0.5);
  Tensor integers(const Shape& shape, int64_t low, int64_t high);  ///< i64 in [low, high).
  Tensor labels(const std::vector<int64_t>& values);               ///< i64, 1-d.
  Tensor booleans(const Shape& shape);
  /// The same in another dtype: gains, statistics, scales.
  Tensor uniform_as(DType dtype, const Shape& shape, double low, double high);
  Tensor values_as(DType dtype, const Shape& shape, const std::vector<double>& values,
                   Layout layout = Layout::dense);

  /// A tensor that the primitive writes; its elements start as NaN (or -1), so that one left
  /// unwritten shows.  Strided ones keep their gaps to themselves.
  const Tensor& output(const std::string& name, const Shape& shape);
  const Tensor& output_as(DType dtype, const std::string& name, const Shape& shape,
                          Layout layout = Layout::dense);
  /// `x` is written in place.
  const Tensor& changes(const std::string& name, const Tensor& x);

  struct Output {
    std::string name;
    Tensor tensor;
  };
  const std::vector<Output>& outputs() const { return outputs_; }
  std::string shapes() const;  ///< Of everything handed out so far, for messages.

 private:
  Tensor place(DType dtype, const Shape& shape, const std::vector<double>& values, Layout layout);

  Device device_;
  DType dtype_;
  Rng rng_;
  std::vector<Output> outputs_;
  std::string shapes_;
};

/// All elements in row-major order, read without running any primitive.
std::vector<double> host_values(const Tensor& x);

/// "Softmax" for "softmax", "BatchNormBackward" for "batch_norm_backward".
std::string camel_case(std::string_view snake_case);

}  // namespace crucible::testing
