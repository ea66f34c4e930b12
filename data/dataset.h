/// What a data set is: numbered samples that can be read in any order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/dtype.h"
#include "core/rng.h"
#include "core/shape.h"

namespace crucible::data {

/// Shape and element type of the two halves of one sample.
struct SampleSpec {
  Shape input;
  DType input_dtype;
  Shape target;
  DType target_dtype;
};

/// Random access to samples on the host.  A data set knows nothing of models, batches or order.
class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual int64_t size() const = 0;
  virtual SampleSpec sample() const = 0;
  /// Targets are in [0, classes()): the number of classes, or the vocabulary of a token set.
  virtual int64_t classes() const = 0;
  /// One line for people: where the data come from and how much there is.
  virtual std::string description() const = 0;

  /// Writes sample `index`, in [0, size()), row-major, as sample() describes it.
  ///
  /// Every random choice (crop, flip, noise) is drawn from `rng`, so the sample is a function of
  /// the index and the state of `rng` alone.  Safe to call from several threads.
  /// Throws    IoError if this sample is damaged; the others can still be read.
  virtual void read(int64_t index, Rng& rng, std::span<std::byte> input,
                    std::span<std::byte> target) const = 0;
};

using DatasetPtr = std::shared_ptr<const Dataset>;

/// Samples [begin, end) of another data set.
/// Throws    InvalidArgument if the range is not inside `dataset`.
DatasetPtr subset(DatasetPtr dataset, int64_t begin, int64_t end);

}  // namespace crucible::data
