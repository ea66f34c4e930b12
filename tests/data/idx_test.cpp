// Pain log P16: IDX and .gz files that are not what they claim.
#include "data/idx.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/file.h"
#include "data/gzip.h"
#include "tests/data/made_files.h"

namespace crucible::data {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr uint32_t images_magic = 2051, labels_magic = 2049;

std::vector<uint8_t> values(int64_t count) {
  std::vector<uint8_t> result(static_cast<size_t>(count));
  for (size_t i = 0; i < result.size(); ++i)
    result[i] = static_cast<uint8_t>((i * 7 + i / 100) % 251);
  return result;
}

/// Sixty images of 5x4.
Bytes images_file() {
  return idx_file(images_magic, {60, 5, 4}, values(60 * 20));
}

std::string refusal_of(const Bytes& bytes, std::string_view name = "images-idx3-ubyte") {
  const TemporaryDirectory directory;
  const auto path = directory / name;
  write_bytes(path, bytes);
  const std::string text = refusal([&] { load_idx(path, 3); });
  EXPECT_THAT(text, HasSubstr(path.string()));
  return text;
}

std::string refusal_of_gz(const Bytes& bytes) {
  return refusal_of(bytes, "images-idx3-ubyte.gz");
}

TEST(Idx, ReadsPlainAndGzipAlike) {
  const TemporaryDirectory directory;
  write_bytes(directory / "a", images_file());
  write_bytes(directory / "a.gz", gzip(images_file()));
  const IdxArray plain = load_idx(directory / "a", 3);
  const IdxArray packed = load_idx(directory / "a.gz", 3);
  EXPECT_EQ(plain.sizes, (std::vector<int64_t>{60, 5, 4}));
  EXPECT_EQ(plain.values, values(60 * 20));
  EXPECT_EQ(packed.sizes, plain.sizes);
  EXPECT_EQ(packed.values, plain.values);
}

TEST(Idx, RefusesCutGzip) {
  const Bytes whole = gzip(images_file());
  for (const double share : {0.01, 0.5, 0.99}) {
    EXPECT_THAT(refusal_of_gz(first_bytes(whole, share)), HasSubstr("download it again"));
  }
  for (size_t size = 0; size < whole.size(); ++size) {
    const std::span<const std::byte> cut(whole.data(), size);
    EXPECT_NE(refusal([&] { parse_idx(cut, 3, Packing::gzip, "x"); }), "accepted") << size;
  }
}

TEST(Idx, RefusesGzipWithFlippedChecksum) {
  Bytes bytes = gzip(images_file());
  bytes[bytes.size() - 6] ^= std::byte{1};
  EXPECT_THAT(refusal_of_gz(bytes), HasSubstr("damaged"));
}

TEST(Idx, RefusesBytesAfterTheGzipEnd) {
  EXPECT_THAT(refusal_of_gz(joined(gzip(images_file()), bytes_from("tail"))),
              HasSubstr("after its end"));
}

TEST(Idx, ReadsAllGzipMembers) {
  const Bytes whole = images_file();
  const size_t half = whole.size() / 2;
  const Bytes members =
      joined(gzip(std::span(whole).first(half)), gzip(std::span(whole).subspan(half)));
  EXPECT_EQ(parse_idx(members, 3, Packing::gzip, "x").values, values(60 * 20));
  EXPECT_THAT(refusal_of_gz(joined(gzip(whole), gzip(whole))), HasSubstr("more than the"));
}

TEST(Idx, RefusesGzipUnderAPlainName) {
  EXPECT_THAT(refusal_of(gzip(images_file())), HasSubstr("rename it"));
}

TEST(Idx, RefusesPlainUnderAGzipName) {
  EXPECT_THAT(refusal_of_gz(images_file()), HasSubstr("not gzip"));
}

TEST(Idx, RefusesEmptyFiles) {
  EXPECT_THAT(refusal_of({}), HasSubstr("holds 0 bytes"));
  EXPECT_THAT(refusal_of_gz({}), HasSubstr("byte 0 of 0"));
}

TEST(Idx, RefusesAnErrorPage) {
  const Bytes page = bytes_from("<!DOCTYPE html><html><body>404 Not Found</body></html>");
  EXPECT_THAT(refusal_of(page), AllOf(HasSubstr("magic number is 1008813135"), HasSubstr("2051")));
  EXPECT_THAT(refusal_of_gz(page), HasSubstr("not gzip"));
}

TEST(Idx, RefusesSwappedMagicNumbers) {
  EXPECT_THAT(refusal_of(idx_file(labels_magic, {60}, values(60))),
              AllOf(HasSubstr("2049"), HasSubstr("expected 2051")));
}

TEST(Idx, RefusesCountsThatDoNotMatchTheData) {
  EXPECT_THAT(refusal_of(idx_file(images_magic, {61, 5, 4}, values(60 * 20))),
              AllOf(HasSubstr("[61, 5, 4]"), HasSubstr("1200 bytes")));
  EXPECT_THAT(refusal_of(idx_file(images_magic, {59, 5, 4}, values(60 * 20))),
              AllOf(HasSubstr("1180 bytes"), HasSubstr("1200 are there")));
  EXPECT_THAT(refusal_of_gz(gzip(idx_file(images_magic, {61, 5, 4}, values(60 * 20)))),
              HasSubstr("[61, 5, 4]"));
  EXPECT_THAT(refusal_of_gz(gzip(idx_file(images_magic, {59, 5, 4}, values(60 * 20)))),
              HasSubstr("more than the 1196 bytes"));
}

TEST(Idx, RefusesZeroRowsAndHugeCounts) {
  EXPECT_THAT(refusal_of(idx_file(images_magic, {60, 0, 4}, {})), HasSubstr("size 0 of axis 1"));
  for (const uint32_t count : {0x80000000u, 0xffffffffu}) {
    const Bytes file = idx_file(images_magic, {count, count, count}, values(1200));
    EXPECT_THAT(refusal_of(file), HasSubstr("more than the 1200 bytes"));
    EXPECT_THAT(refusal_of_gz(gzip(file)), HasSubstr("cut or damaged"));
  }
}

TEST(Idx, RefusesDifferentNumbersOfImagesAndLabels) {
  const TemporaryDirectory directory;
  write_bytes(directory / "train-images-idx3-ubyte", images_file());
  write_bytes(directory / "train-labels-idx1-ubyte.gz",
              gzip(idx_file(labels_magic, {10}, std::vector<uint8_t>(10, 3))));
  EXPECT_THAT(refusal([&] { load_idx_split(directory.path(), "train"); }),
              AllOf(HasSubstr(directory.path().string()), HasSubstr("60 images but 10 labels")));
}

TEST(Idx, RefusesLabelsBeyondTheClasses) {
  const TemporaryDirectory directory;
  write_bytes(directory / "t10k-images-idx3-ubyte", images_file());
  write_bytes(directory / "t10k-labels-idx1-ubyte",
              idx_file(labels_magic, {60}, std::vector<uint8_t>(60, 10)));
  EXPECT_THAT(refusal([&] { load_idx_split(directory.path(), "test", 10); }),
              HasSubstr("label 10, expected [0, 10)"));
  EXPECT_EQ(load_idx_split(directory.path(), "test")->classes, 11);
}

TEST(Idx, NamesAMissingFileAndAnUnknownSplit) {
  const TemporaryDirectory directory;
  EXPECT_THAT(refusal([&] { load_idx_split(directory.path(), "train"); }),
              HasSubstr("neither train-images-idx3-ubyte nor"));
  EXPECT_THAT(refusal([&] { load_idx_split(directory.path(), "valid"); }), HasSubstr("\"valid\""));
}

TEST(Gzip, NeverHoldsMoreThanItsLimit) {
  const Bytes bomb = gzip(Bytes(std::size_t{64} << 20));
  ASSERT_LT(bomb.size(), 100'000u);
  EXPECT_THAT(refusal([&] { gunzip(bomb, 1000, "bomb"); }), HasSubstr("more than the 1000 bytes"));
  EXPECT_EQ(gunzip_prefix(bomb, 12, "bomb").size(), 12u);
}

class FashionMnist : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!find_fashion_mnist()) GTEST_SKIP() << "dataset-fashion-mnist is not installed";
  }
};

TEST_F(FashionMnist, HasTheKnownSizesAndStatistics) {
  const auto test = fashion_mnist("test");
  EXPECT_EQ(test->size(), 10000);
  EXPECT_EQ(test->classes(), 10);
  EXPECT_EQ(test->sample().input, (Shape{28, 28, 1}));
  std::vector<int64_t> counts(10);
  for (const int64_t label : test->images().labels) ++counts[static_cast<size_t>(label)];
  EXPECT_EQ(counts, std::vector<int64_t>(10, 1000));
  const auto train = fashion_mnist("train");
  EXPECT_EQ(train->size(), 60000);
  const auto statistics = channel_statistics(train->images().pixels, 1);
  EXPECT_NEAR(statistics.mean[0], train->transform().mean[0], 5e-5);
  EXPECT_NEAR(statistics.std[0], train->transform().std[0], 5e-5);
}

TEST_F(FashionMnist, FilesCutOrFlippedAreRefused) {
  const auto path = *find_fashion_mnist() / "t10k-images-idx3-ubyte.gz";
  Bytes bytes = read_file(path, 1 << 28);
  for (const double share : {0.01, 0.5, 0.99}) {
    EXPECT_THAT(refusal_of_gz(first_bytes(bytes, share)), HasSubstr("cut"));
  }
  bytes[bytes.size() - 5] ^= std::byte{0x80};
  EXPECT_THAT(refusal_of_gz(bytes), HasSubstr("damaged"));
}

}  // namespace
}  // namespace crucible::data
