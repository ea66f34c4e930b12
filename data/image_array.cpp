#include "data/image_array.h"

#include <cstring>
#include <utility>

#include "core/check.h"

namespace crucible::data {

ImageArray::ImageArray(std::shared_ptr<const LabelledImages> images, ImageTransform transform)
    : images_(std::move(images)), transform_(std::move(transform)) {
  const LabelledImages& in = *images_;
  shape_ = output_shape(transform_, in.height, in.width, in.channels);
  const Shape stored{in.count, in.height, in.width, in.channels};
  check(static_cast<int64_t>(in.pixels.size()) == stored.numel() &&
            static_cast<int64_t>(in.labels.size()) == in.count,
        "{}: {} pixel values and {} labels do not make {} images of {}x{}x{}; check both.",
        in.origin, in.pixels.size(), in.labels.size(), in.count, in.height, in.width, in.channels);
  for (int64_t i = 0; i < in.count; ++i) {
    const int64_t label = in.labels[static_cast<size_t>(i)];
    check(label >= 0 && label < in.classes,
          "{}: label {} of image {} is outside [0, {}); check the file or the class count.",
          in.origin, label, i, in.classes);
  }
}

std::string ImageArray::description() const {
  const LabelledImages& in = *images_;
  return fmt::format("{}: {} images of {}x{}x{}, {} classes", in.origin, in.count, in.height,
                     in.width, in.channels, in.classes);
}

void ImageArray::read(int64_t index, Rng& rng, std::span<std::byte> input,
                      std::span<std::byte> target) const {
  const LabelledImages& in = *images_;
  const int64_t stride = in.height * in.width * in.channels;
  const ImageView image{in.pixels.data() + index * stride, in.height, in.width, in.channels};
  apply(transform_, image, rng,
        {reinterpret_cast<float*>(input.data()), input.size() / sizeof(float)});
  std::memcpy(target.data(), &in.labels[static_cast<size_t>(index)], sizeof(int64_t));
}

std::shared_ptr<const ImageArray> ImageArray::with(ImageTransform transform) const {
  return std::make_shared<ImageArray>(images_, std::move(transform));
}

}  // namespace crucible::data
