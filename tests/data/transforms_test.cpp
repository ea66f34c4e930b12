#include "data/transforms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <set>

#include "tests/data/made_files.h"

namespace crucible::data {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;

std::vector<float> resized(const std::vector<uint8_t>& pixels, int64_t height, int64_t width,
                           int64_t channels, const Box& box, int64_t out_height,
                           int64_t out_width) {
  std::vector<float> out(static_cast<size_t>(out_height * out_width * channels));
  resize({pixels.data(), height, width, channels}, box, out_height, out_width, out);
  return out;
}

std::vector<uint8_t> numbered(int64_t count) {
  std::vector<uint8_t> pixels(static_cast<size_t>(count));
  std::iota(pixels.begin(), pixels.end(), uint8_t{0});
  return pixels;
}

TEST(Transforms, ResizeToTheSameSizeChangesNothing) {
  const auto pixels = numbered(6 * 5 * 3);
  EXPECT_EQ(resized(pixels, 6, 5, 3, {0, 0, 6, 5}, 6, 5),
            std::vector<float>(pixels.begin(), pixels.end()));
}

TEST(Transforms, ResizeCutsTheBox) {
  const auto pixels = numbered(4 * 4);
  EXPECT_THAT(resized(pixels, 4, 4, 1, {1, 2, 2, 2}, 2, 2), ElementsAre(6, 7, 10, 11));
}

TEST(Transforms, ResizeKeepsAConstant) {
  const std::vector<uint8_t> pixels(37 * 23 * 3, 77);
  for (const auto& [h, w] : {std::pair{16, 16}, {64, 64}, {1, 1}, {37, 5}}) {
    EXPECT_THAT(resized(pixels, 37, 23, 3, {0.5, 0.25, 36.5, 22}, h, w),
                Each(FloatNear(77, 1e-3f)));
  }
}

// Between two pixels, at centers 0.5 and 1.5: four outputs at 0.25, 0.75, 1.25, 1.75.
TEST(Transforms, EnlargingInterpolatesLinearly) {
  EXPECT_THAT(resized({0, 100}, 1, 2, 1, {0, 0, 1, 2}, 1, 4),
              ElementsAre(0, FloatNear(25, 1e-4f), FloatNear(75, 1e-4f), 100));
}

// A triangle of radius 2 over 4 pixels to 2: weights 3 3 1 0 and their mirror, over 7 (edge cut).
TEST(Transforms, ShrinkingCountsEveryPixel) {
  EXPECT_THAT(
      resized({70, 0, 7, 14}, 1, 4, 1, {0, 0, 1, 4}, 1, 2),
      ElementsAre(FloatNear((210 + 0 + 7) / 7.0f, 1e-4f), FloatNear((0 + 21 + 42) / 7.0f, 1e-4f)));
}

TEST(Transforms, NormalisesPerChannel) {
  const std::vector<uint8_t> pixels{0, 255, 51, 102, 0, 255};
  const ImageTransform transform{.mean = {0.5f, 0.25f, 0.0f}, .std = {0.5f, 0.25f, 1.0f}};
  std::vector<float> out(6);
  Rng rng(1);
  apply(transform, {pixels.data(), 1, 2, 3}, rng, out);
  const std::vector<float> expected{-1, 3, 0.2f, -0.2f, -1, 1};
  for (size_t i = 0; i < 6; ++i) EXPECT_NEAR(out[i], expected[i], 1e-6) << i;
}

TEST(Transforms, PaddedCropMovesTheImage) {
  const auto pixels = numbered(9);
  std::set<std::vector<float>> seen;
  for (uint64_t i = 0; i < 500; ++i) {
    Rng rng(7, i);
    std::vector<float> out(9);
    apply({.crop = Crop::random_padded, .padding = 1}, {pixels.data(), 3, 3, 1}, rng, out);
    // The value at the center tells the move; every other pixel must agree with it.
    const int center = static_cast<int>(std::lround(out[4] * 255));
    const int dy = center / 3 - 1, dx = center % 3 - 1;
    for (int y = 0; y < 3; ++y) {
      for (int x = 0; x < 3; ++x) {
        const bool inside = y + dy >= 0 && y + dy < 3 && x + dx >= 0 && x + dx < 3;
        const float expected = inside ? static_cast<float>((y + dy) * 3 + x + dx) / 255 : 0;
        ASSERT_NEAR(out[static_cast<size_t>(y * 3 + x)], expected, 1e-6);
      }
    }
    seen.insert(out);
  }
  EXPECT_EQ(seen.size(), 9u);
}

TEST(Transforms, PaddingBeyondTheImageIsBlack) {
  const std::vector<uint8_t> pixels(4, 255);
  for (uint64_t i = 0; i < 200; ++i) {
    Rng rng(1, i);
    std::vector<float> out(4);
    apply({.crop = Crop::random_padded, .padding = 50}, {pixels.data(), 2, 2, 1}, rng, out);
    for (const float x : out) EXPECT_TRUE(x == 0 || std::abs(x - 1) < 1e-6);
  }
}

TEST(Transforms, FlipMirrorsHalfOfTheTime) {
  const std::vector<uint8_t> pixels{0, 0, 0, 10, 20, 30, 255, 255, 255};
  int flipped = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    Rng rng(1, i);
    std::vector<float> out(9);
    apply({.flip = true}, {pixels.data(), 1, 3, 3}, rng, out);
    EXPECT_NEAR(out[4] * 255, 20, 1e-3);
    flipped += out[0] > 0.5f;
    EXPECT_NE(out[0] > 0.5f, out[8] > 0.5f);
  }
  EXPECT_NEAR(flipped, 500, 50);  // 3.2 deviations
}

TEST(Transforms, RandomResizedStaysInsideAndVaries) {
  const auto pixels = numbered(250);
  std::set<float> firsts;
  for (const auto& [h, w] : {std::pair{10, 25}, {25, 10}, {250, 1}, {1, 250}}) {
    for (uint64_t i = 0; i < 100; ++i) {
      Rng rng(3, i);
      std::vector<float> out(64);
      apply({.crop = Crop::random_resized, .size = 8}, {pixels.data(), h, w, 1}, rng, out);
      for (const float x : out) ASSERT_TRUE(x >= 0 && x <= 249.01f / 255);
      firsts.insert(out[0]);
    }
  }
  EXPECT_GT(firsts.size(), 100u);
}

TEST(Transforms, CenterTakesTheMiddle) {
  std::vector<uint8_t> pixels(16 * 32, 0);
  for (int64_t y = 1; y < 15; ++y) {
    for (int64_t x = 9; x < 23; ++x) pixels[static_cast<size_t>(y * 32 + x)] = 200;
  }
  std::vector<float> out(14 * 14);
  Rng rng(1);
  apply({.crop = Crop::center, .size = 14}, {pixels.data(), 16, 32, 1}, rng, out);
  EXPECT_THAT(out, Each(FloatNear(200.0f / 255, 1e-5f)));
}

TEST(Transforms, RefusesWhatContradictsItself) {
  const auto why = [](const ImageTransform& transform) {
    return refusal([&] { output_shape(transform, 28, 28, 1); });
  };
  EXPECT_THAT(why({.crop = Crop::center}), HasSubstr("size is 0"));
  EXPECT_THAT(why({.crop = Crop::random_padded, .size = 32}), HasSubstr("size is 32"));
  EXPECT_THAT(why({.size = -1}), HasSubstr("size -1"));
  EXPECT_THAT(why({.mean = {0.1f, 0.2f, 0.3f}}), HasSubstr("3 values"));
  EXPECT_THAT(why({.std = {0.0f}}), HasSubstr("std holds 0"));
  EXPECT_THAT(why({.crop = Crop::random_resized, .size = 8, .min_area = 0}),
              HasSubstr("min_area 0"));
}

TEST(Transforms, StatisticsOfChannels) {
  const std::vector<uint8_t> pixels{0, 5, 255, 5};
  const auto [mean, std] = channel_statistics(pixels, 2);
  EXPECT_THAT(mean, ElementsAre(0.5f, FloatNear(5.0f / 255, 1e-7f)));
  EXPECT_THAT(std, ElementsAre(0.5f, 1.0f));
}

}  // namespace
}  // namespace crucible::data
