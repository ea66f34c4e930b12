/// From stored pixels to what a model sees: crop, resize, flip, normalise.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/rng.h"
#include "core/shape.h"

namespace crucible::data {

/// Pixels of one image, row-major [height, width, channels], owned by someone else.
struct ImageView {
  const uint8_t* pixels;
  int64_t height;
  int64_t width;
  int64_t channels;
};

/// A part of an image, in pixels; edges may fall between pixels.
struct Box {
  double top;
  double left;
  double height;
  double width;
};

enum class Crop {
  none,            ///< The whole image.
  center,          ///< The middle, `center_share` of the shorter side, as a square.
  random_resized,  ///< A random part of random size and shape (Szegedy et al. 2015).
  random_padded,   ///< The image moved by up to `padding` pixels each way, black outside.
};

/// How to make a sample of an image.  The default changes nothing but the scale to [0, 1].
struct ImageTransform {
  Crop crop = Crop::none;
  int64_t size = 0;   ///< Side of the square result; 0 keeps the stored size (not with
                      ///< random_resized or center).
  bool flip = false;  ///< Mirror left to right in one case of two.
  int64_t padding = 4;
  double center_share = 0.875;
  double min_area = 0.08;  ///< random_resized: smallest share of the area; the largest is 1.
  double max_ratio =
      4.0 / 3.0;            ///< random_resized: width / height is in [1 / max_ratio, max_ratio].
  std::vector<float> mean;  ///< Per channel, of values in [0, 1]; empty: 0.
  std::vector<float> std;   ///< Per channel; empty: 1.
};

/// [height, width, channels] of the result for an image of this size.
/// Throws    InvalidArgument if the transform does not fit such images or contradicts itself.
Shape output_shape(const ImageTransform& transform, int64_t height, int64_t width,
                   int64_t channels);

/// Writes the transformed image, output_shape(...) row-major; all random choices come from `rng`.
void apply(const ImageTransform& transform, const ImageView& image, Rng& rng, std::span<float> out);

/// Scales the part `box` of an image to [out_height, out_width, channels]; values stay in [0, 255].
/// Linear interpolation; when shrinking, the filter widens so that every pixel of the box counts.
/// Throws    InvalidArgument if the box is empty or not inside the image.
void resize(const ImageView& image, const Box& box, int64_t out_height, int64_t out_width,
            std::span<float> out);

/// Mean and standard deviation of each channel of images in memory, as shares of 255.
struct ChannelStatistics {
  std::vector<float> mean;
  std::vector<float> std;
};
/// `pixels` is [anything, channels].  A constant channel gets deviation 1.
ChannelStatistics channel_statistics(std::span<const uint8_t> pixels, int64_t channels);

}  // namespace crucible::data
