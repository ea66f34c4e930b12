#include "data/dataset.h"

#include <utility>

#include "core/check.h"

namespace crucible::data {
namespace {

class Subset : public Dataset {
 public:
  Subset(DatasetPtr dataset, int64_t begin, int64_t end)
      : dataset_(std::move(dataset)), begin_(begin), size_(end - begin) {}

  int64_t size() const override { return size_; }
  SampleSpec sample() const override { return dataset_->sample(); }
  int64_t classes() const override { return dataset_->classes(); }
  std::string description() const override {
    return fmt::format("samples {} to {} of {}", begin_, begin_ + size_, dataset_->description());
  }
  void read(int64_t index, Rng& rng, std::span<std::byte> input,
            std::span<std::byte> target) const override {
    dataset_->read(begin_ + index, rng, input, target);
  }

 private:
  DatasetPtr dataset_;
  int64_t begin_;
  int64_t size_;
};

}  // namespace

DatasetPtr subset(DatasetPtr dataset, int64_t begin, int64_t end) {
  check(0 <= begin && begin <= end && end <= dataset->size(),
        "subset: [{}, {}) is not inside [0, {}); give a range of the data set.", begin, end,
        dataset->size());
  return std::make_shared<Subset>(std::move(dataset), begin, end);
}

}  // namespace crucible::data
