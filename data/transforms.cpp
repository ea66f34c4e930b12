#include "data/transforms.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/check.h"

namespace crucible::data {
namespace {

/// The input pixels that make one output pixel along one axis, and how much each counts.
struct Taps {
  int64_t first;
  std::vector<float> weights;
};

/// Taps for each of `out` positions over [begin, begin + extent) of an axis of `size` pixels.
std::vector<Taps> taps_of(double begin, double extent, int64_t size, int64_t out) {
  const double step = extent / static_cast<double>(out);
  const double radius = std::max(step, 1.0);  // of the triangle; wider when shrinking
  std::vector<Taps> taps(static_cast<size_t>(out));
  for (int64_t i = 0; i < out; ++i) {
    const double center = begin + (static_cast<double>(i) + 0.5) * step;
    const auto first =
        std::clamp<int64_t>(static_cast<int64_t>(std::floor(center - radius + 0.5)), 0, size - 1);
    const auto last = std::clamp<int64_t>(static_cast<int64_t>(std::ceil(center + radius - 0.5)),
                                          first + 1, size);
    Taps& tap = taps[static_cast<size_t>(i)];
    tap.first = first;
    double sum = 0;
    for (int64_t x = first; x < last; ++x) {
      const double distance = std::abs(static_cast<double>(x) + 0.5 - center) / radius;
      const double weight = std::max(0.0, 1.0 - distance);
      tap.weights.push_back(static_cast<float>(weight));
      sum += weight;
    }
    if (sum > 0) {
      for (float& weight : tap.weights) weight = static_cast<float>(weight / sum);
    } else {  // the center lies beyond the edge of the image: repeat the edge
      std::fill(tap.weights.begin(), tap.weights.end(), 0.0f);
      (center < static_cast<double>(first) ? tap.weights.front() : tap.weights.back()) = 1.0f;
    }
  }
  return taps;
}

/// Part of an image that random_resized keeps; the whole middle if ten draws do not fit.
Box random_box(const ImageTransform& transform, const ImageView& image, Rng& rng) {
  const auto height = static_cast<double>(image.height);
  const auto width = static_cast<double>(image.width);
  const auto log_ratio = static_cast<float>(std::log(transform.max_ratio));
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double area = height * width * rng.uniform(static_cast<float>(transform.min_area), 1.0f);
    const double ratio = std::exp(rng.uniform(-log_ratio, log_ratio));
    const double w = std::round(std::sqrt(area * ratio));
    const double h = std::round(std::sqrt(area / ratio));
    if (w < 1 || h < 1 || w > width || h > height) continue;
    const auto top = static_cast<double>(rng.below(static_cast<int64_t>(height - h) + 1));
    const auto left = static_cast<double>(rng.below(static_cast<int64_t>(width - w) + 1));
    return {top, left, h, w};
  }
  const double w = std::min(width, height * transform.max_ratio);
  const double h = std::min(height, width * transform.max_ratio);
  return {(height - h) / 2, (width - w) / 2, h, w};
}

Box center_box(const ImageTransform& transform, const ImageView& image) {
  const auto height = static_cast<double>(image.height);
  const auto width = static_cast<double>(image.width);
  const double side = std::min(height, width) * transform.center_share;
  return {(height - side) / 2, (width - side) / 2, side, side};
}

/// The image moved by (dy, dx); what comes from outside is black.
void copy_moved(const ImageView& image, int64_t dy, int64_t dx, std::span<float> out) {
  std::fill(out.begin(), out.end(), 0.0f);
  const int64_t channels = image.channels;
  const int64_t left = std::max<int64_t>(0, -dx);
  const int64_t right = std::min(image.width, image.width - dx);
  for (int64_t y = std::max<int64_t>(0, -dy); y < std::min(image.height, image.height - dy); ++y) {
    if (left >= right) break;
    const uint8_t* from = image.pixels + ((y + dy) * image.width + left + dx) * channels;
    std::copy(from, from + (right - left) * channels,
              out.data() + (y * image.width + left) * channels);
  }
}

void flip_rows(float* pixels, const Shape& shape) {
  const int64_t width = shape[1], channels = shape[2];
  for (int64_t y = 0; y < shape[0]; ++y) {
    float* row = pixels + y * width * channels;
    for (int64_t a = 0, b = width - 1; a < b; ++a, --b) {
      std::swap_ranges(row + a * channels, row + (a + 1) * channels, row + b * channels);
    }
  }
}

/// x / 255 - mean, over std.
void normalise(const ImageTransform& transform, int64_t channels, std::span<float> pixels) {
  constexpr int64_t most = 4;
  std::array<float, most> scale{}, shift{};
  for (int64_t c = 0; c < channels; ++c) {
    const float mean = transform.mean.empty() ? 0.0f : transform.mean[static_cast<size_t>(c)];
    const float std = transform.std.empty() ? 1.0f : transform.std[static_cast<size_t>(c)];
    scale[static_cast<size_t>(c)] = 1.0f / (255.0f * std);
    shift[static_cast<size_t>(c)] = -mean / std;
  }
  if (channels == 1) {
    for (float& x : pixels) x = x * scale[0] + shift[0];
    return;
  }
  for (size_t i = 0; i < pixels.size(); i += static_cast<size_t>(channels)) {
    for (size_t c = 0; c < static_cast<size_t>(channels); ++c) {
      pixels[i + c] = pixels[i + c] * scale[c] + shift[c];
    }
  }
}

}  // namespace

Shape output_shape(const ImageTransform& transform, int64_t height, int64_t width,
                   int64_t channels) {
  const ImageTransform& t = transform;
  check(height > 0 && width > 0 && channels > 0 && channels <= 4,
        "image transform: images are {}x{} with {} channels; they need pixels and 1 to 4 channels.",
        height, width, channels);
  for (const auto* list : {&t.mean, &t.std}) {
    check(
        list->empty() || static_cast<int64_t>(list->size()) == channels,
        "image transform: mean or std has {} values, images have {} channels; give one a channel.",
        list->size(), channels);
  }
  for (const float value : t.std) {
    check(value > 0 && std::isfinite(value),
          "image transform: std holds {}; it must be positive and finite.", value);
  }
  check(t.size >= 0 && t.size <= 16384,
        "image transform: size {} is outside [0, 16384]; give the side of the result in pixels.",
        t.size);
  check(t.padding >= 0 && t.padding <= 1024,
        "image transform: padding {} is outside [0, 1024]; give pixels.", t.padding);
  check(
      t.center_share > 0 && t.center_share <= 1 && t.min_area > 0 && t.min_area <= 1 &&
          t.max_ratio >= 1 && t.max_ratio <= 100,
      "image transform: center_share {} or min_area {} is outside (0, 1], or max_ratio {} outside "
      "[1, 100]; correct it.",
      t.center_share, t.min_area, t.max_ratio);
  const bool needs_size = t.crop == Crop::center || t.crop == Crop::random_resized;
  check(!needs_size || t.size > 0,
        "image transform: size is 0, but a center or random_resized crop needs one; set size.");
  check(t.crop != Crop::random_padded || t.size == 0 || (t.size == height && t.size == width),
        "image transform: random_padded keeps the stored size {}x{}, size is {}; set size to 0.",
        height, width, t.size);
  return t.size > 0 ? Shape{t.size, t.size, channels} : Shape{height, width, channels};
}

void apply(const ImageTransform& transform, const ImageView& image, Rng& rng,
           std::span<float> out) {
  const Shape shape = output_shape(transform, image.height, image.width, image.channels);
  check(static_cast<int64_t>(out.size()) == shape.numel(),
        "image transform: the result has {} values, the buffer {}; size it by output_shape.",
        shape.numel(), out.size());
  switch (transform.crop) {
    case Crop::none:
      if (shape[0] == image.height && shape[1] == image.width) {
        copy_moved(image, 0, 0, out);
      } else {
        const Box whole{0, 0, static_cast<double>(image.height), static_cast<double>(image.width)};
        resize(image, whole, shape[0], shape[1], out);
      }
      break;
    case Crop::center:
      resize(image, center_box(transform, image), shape[0], shape[1], out);
      break;
    case Crop::random_resized:
      resize(image, random_box(transform, image, rng), shape[0], shape[1], out);
      break;
    case Crop::random_padded: {
      const int64_t dy = rng.below(2 * transform.padding + 1) - transform.padding;
      const int64_t dx = rng.below(2 * transform.padding + 1) - transform.padding;
      copy_moved(image, dy, dx, out);
      break;
    }
  }
  if (transform.flip && rng.below(2) == 1) flip_rows(out.data(), shape);
  normalise(transform, image.channels, out);
}

void resize(const ImageView& image, const Box& box, int64_t out_height, int64_t out_width,
            std::span<float> out) {
  const auto height = static_cast<double>(image.height);
  const auto width = static_cast<double>(image.width);
  check(box.height > 0 && box.width > 0 && box.top >= 0 && box.left >= 0 &&
            box.top + box.height <= height + 1e-6 && box.left + box.width <= width + 1e-6,
        "resize: box {}x{} at ({}, {}) is not inside an image of {}x{}; correct the box.",
        box.height, box.width, box.top, box.left, image.height, image.width);
  const int64_t channels = image.channels;
  check(static_cast<int64_t>(out.size()) == out_height * out_width * channels,
        "resize: the result is {}x{}x{}, the buffer holds {}; size it to fit.", out_height,
        out_width, channels, out.size());
  const std::vector<Taps> across = taps_of(box.left, box.width, image.width, out_width);
  const std::vector<Taps> down = taps_of(box.top, box.height, image.height, out_height);

  // Rows first: each needed input row is narrowed once, then rows are mixed.
  const int64_t first_row = down.front().first;
  const int64_t last_row = down.back().first + static_cast<int64_t>(down.back().weights.size());
  const int64_t row_length = out_width * channels;
  std::vector<float> rows(static_cast<size_t>((last_row - first_row) * row_length), 0.0f);
  for (int64_t y = first_row; y < last_row; ++y) {
    float* to = rows.data() + (y - first_row) * row_length;
    const uint8_t* from_row = image.pixels + y * image.width * channels;
    for (int64_t x = 0; x < out_width; ++x, to += channels) {
      const Taps& tap = across[static_cast<size_t>(x)];
      const uint8_t* from = from_row + tap.first * channels;
      for (const float weight : tap.weights) {
        for (int64_t c = 0; c < channels; ++c) to[c] += weight * static_cast<float>(from[c]);
        from += channels;
      }
    }
  }
  std::fill(out.begin(), out.end(), 0.0f);
  for (int64_t y = 0; y < out_height; ++y) {
    const Taps& tap = down[static_cast<size_t>(y)];
    float* to = out.data() + y * row_length;
    const float* from = rows.data() + (tap.first - first_row) * row_length;
    for (const float weight : tap.weights) {
      for (int64_t i = 0; i < row_length; ++i) to[i] += weight * from[i];
      from += row_length;
    }
  }
}

ChannelStatistics channel_statistics(std::span<const uint8_t> pixels, int64_t channels) {
  check(channels > 0 && !pixels.empty() && static_cast<int64_t>(pixels.size()) % channels == 0,
        "channel_statistics: {} values are not whole pixels of {} channels; pass whole images.",
        pixels.size(), channels);
  const int64_t count = static_cast<int64_t>(pixels.size()) / channels;
  ChannelStatistics result;
  std::vector<std::array<int64_t, 256>> histogram(static_cast<size_t>(channels));
  for (size_t i = 0; i < pixels.size(); i += histogram.size()) {
    for (size_t c = 0; c < histogram.size(); ++c) ++histogram[c][pixels[i + c]];
  }
  for (const auto& counts : histogram) {
    double sum = 0, squares = 0;
    for (int value = 0; value < 256; ++value) {
      const auto n = static_cast<double>(counts[static_cast<size_t>(value)]);
      sum += n * value;
      squares += n * value * value;
    }
    const double mean = sum / count;
    const double variance = std::max(0.0, squares / count - mean * mean);
    result.mean.push_back(static_cast<float>(mean / 255));
    result.std.push_back(variance > 0 ? static_cast<float>(std::sqrt(variance) / 255) : 1.0f);
  }
  return result;
}

}  // namespace crucible::data
