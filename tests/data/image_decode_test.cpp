#include "data/image_decode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/made_files.h"

namespace crucible::data {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

int pixel(const RgbImage& image, int64_t y, int64_t x, int64_t c) {
  return image.pixels[static_cast<size_t>((y * image.width + x) * 3 + c)];
}

std::string why(const Bytes& bytes, int64_t max_pixels = int64_t{1} << 26) {
  return refusal([&] { decode_image(bytes, "some/file.jpg", max_pixels); });
}

TEST(ImageDecode, JpegKeepsPixels) {
  for (const bool progressive : {false, true}) {
    const RgbImage image = decode_image(jpeg_file(40, 30, JpegColor::rgb, progressive), "x");
    ASSERT_EQ(image.width, 40);
    ASSERT_EQ(image.height, 30);
    ASSERT_EQ(image.pixels.size(), 3600u);
    for (int64_t c = 0; c < 3; ++c) EXPECT_NEAR(pixel(image, 10, 20, c), 100 + c * 50, 8) << c;
  }
}

TEST(ImageDecode, GreyJpegIsRepeated) {
  const RgbImage image = decode_image(jpeg_file(40, 30, JpegColor::grey), "x");
  EXPECT_NEAR(pixel(image, 10, 20, 0), 100, 4);
  EXPECT_EQ(pixel(image, 10, 20, 1), pixel(image, 10, 20, 0));
  EXPECT_EQ(pixel(image, 10, 20, 2), pixel(image, 10, 20, 0));
}

// The file says C, M, Y, K = 100, 150, 200, 30 there; libjpeg writes an Adobe marker, so 255 is no
// ink.
TEST(ImageDecode, CmykJpegIsConverted) {
  const RgbImage image = decode_image(jpeg_file(40, 30, JpegColor::cmyk), "x");
  for (int64_t c = 0; c < 3; ++c) {
    EXPECT_NEAR(pixel(image, 10, 20, c), (100 + c * 50) * 50 / 255, 8) << c;
  }
}

TEST(ImageDecode, PngOfEveryKindGivesTheSamePixels) {
  for (const int channels : {1, 2, 3, 4}) {
    for (const int bits : {8, 16}) {
      const RgbImage image = decode_image(png_file(40, 30, channels, bits), "x");
      ASSERT_EQ(image.pixels.size(), 3600u) << channels << " x " << bits;
      for (int64_t c = 0; c < 3; ++c) EXPECT_EQ(pixel(image, 10, 20, c), 40);
    }
  }
}

TEST(ImageDecode, OnePixelIsAnImage) {
  EXPECT_EQ(decode_image(png_file(1, 1, 3), "x").pixels.size(), 3u);
  EXPECT_EQ(decode_image(jpeg_file(1, 1), "x").pixels.size(), 3u);
}

TEST(ImageDecode, RefusesACutAnywhere) {
  for (const Bytes& whole : {jpeg_file(40, 30), jpeg_file(40, 30, JpegColor::rgb, true),
                             jpeg_file(24, 24, JpegColor::cmyk), png_file(40, 30, 3)}) {
    for (size_t size = 0; size < whole.size(); ++size) {
      const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
      ASSERT_THAT(why(cut), HasSubstr("some/file.jpg: ")) << size << " of " << whole.size();
    }
    EXPECT_EQ(why(whole), "accepted");
  }
}

TEST(ImageDecode, RefusesHugeHeadersBeforeAllocating) {
  for (const Bytes& bytes : {png_claiming(20000, 20000), jpeg_claiming(20000, 20000)}) {
    EXPECT_THAT(why(bytes), AllOf(HasSubstr("20000x20000"), HasSubstr("67108864 pixels")));
  }
  EXPECT_THAT(why(png_claiming(65536, 1)), HasSubstr("65536x1"));
  EXPECT_THAT(why(png_claiming(0x7fffffff, 0x7fffffff)), HasSubstr("2147483647x2147483647"));
  EXPECT_THAT(why(jpeg_file(11, 10), 100), HasSubstr("11x10, decoded are at most 100 pixels"));
}

TEST(ImageDecode, RefusesADamagedChecksum) {
  Bytes bytes = png_file(40, 30, 3);
  bytes[bytes.size() - 20] ^= std::byte{1};
  EXPECT_THAT(why(bytes), HasSubstr("cut or damaged"));
}

TEST(ImageDecode, RefusesOtherFiles) {
  EXPECT_THAT(why(bytes_from("not an image")), HasSubstr("neither JPEG nor PNG (12 bytes)"));
  EXPECT_THAT(why({}), HasSubstr("(0 bytes)"));
}

}  // namespace
}  // namespace crucible::data
