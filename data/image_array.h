/// Labelled images of one size, held in memory as bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/transforms.h"

namespace crucible::data {

/// Pixels and labels as a reader of a file format delivers them.
struct LabelledImages {
  std::string origin;  ///< For people: "Fashion-MNIST train", a path.
  int64_t count = 0;
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 0;
  int64_t classes = 0;
  std::vector<uint8_t> pixels;  ///< [count, height, width, channels]
  std::vector<int64_t> labels;  ///< [count], in [0, classes)
};

/// The data set over such images: inputs f32 [H, W, C], targets i64 [].
class ImageArray : public Dataset {
 public:
  /// Throws    InvalidArgument if sizes disagree, a label is outside [0, classes), or the transform
  ///           does not fit.
  ImageArray(std::shared_ptr<const LabelledImages> images, ImageTransform transform);

  int64_t size() const override { return images_->count; }
  SampleSpec sample() const override { return {shape_, DType::f32, Shape{}, DType::i64}; }
  int64_t classes() const override { return images_->classes; }
  std::string description() const override;
  void read(int64_t index, Rng& rng, std::span<std::byte> input,
            std::span<std::byte> target) const override;

  const LabelledImages& images() const { return *images_; }
  const ImageTransform& transform() const { return transform_; }
  /// The same images, shared, under another transform.
  std::shared_ptr<const ImageArray> with(ImageTransform transform) const;

 private:
  std::shared_ptr<const LabelledImages> images_;
  ImageTransform transform_;
  Shape shape_;
};

}  // namespace crucible::data
