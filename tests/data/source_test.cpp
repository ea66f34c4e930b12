// Opening data by path, and the formats that only need a directory: CIFAR, text.
#include "data/source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "data/cifar.h"
#include "data/idx.h"
#include "data/loader.h"
#include "data/text.h"
#include "tests/data/made_files.h"

namespace crucible::data {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// Records with labels 0, 1, ... and pixels red = 10, green = 20, blue = index.
Bytes cifar_file(int count, bool hundred = false, int first_label = 0) {
  Bytes bytes;
  for (int i = 0; i < count; ++i) {
    if (hundred) bytes.push_back(std::byte{19});
    bytes.push_back(static_cast<std::byte>(first_label + i));
    bytes.insert(bytes.end(), 1024, std::byte{10});
    bytes.insert(bytes.end(), 1024, std::byte{20});
    bytes.insert(bytes.end(), 1024, static_cast<std::byte>(i));
  }
  return bytes;
}

void write_cifar10(const std::filesystem::path& directory) {
  for (int i = 1; i <= 5; ++i) {
    write_bytes(directory / ("data_batch_" + std::to_string(i) + ".bin"), cifar_file(4));
  }
  write_bytes(directory / "test_batch.bin", cifar_file(6));
}

TEST(Cifar, ReadsPlanesAsChannels) {
  LabelledImages images;
  parse_cifar(cifar_file(3), CifarKind::cifar10, "x", images);
  EXPECT_EQ(images.labels, (std::vector<int64_t>{0, 1, 2}));
  ASSERT_EQ(images.pixels.size(), 3u * 3072);
  EXPECT_EQ(images.pixels[3072 * 2 + 30], 10);
  EXPECT_EQ(images.pixels[3072 * 2 + 31], 20);
  EXPECT_EQ(images.pixels[3072 * 2 + 32], 2);
}

TEST(Cifar, TakesTheFineLabels) {
  LabelledImages images;
  parse_cifar(cifar_file(2, true, 98), CifarKind::cifar100, "x", images);
  EXPECT_EQ(images.labels, (std::vector<int64_t>{98, 99}));
  EXPECT_EQ(images.classes, 100);
}

TEST(Cifar, RefusesPartsOfRecordsAndWildLabels) {
  LabelledImages images;
  const auto why = [&](const Bytes& bytes, CifarKind kind) {
    return refusal([&] { parse_cifar(bytes, kind, "some/file", images); });
  };
  EXPECT_THAT(why(first_bytes(cifar_file(3), 0.5), CifarKind::cifar10),
              AllOf(HasSubstr("some/file: holds 4609 bytes"), HasSubstr("3073")));
  EXPECT_THAT(why({}, CifarKind::cifar10), HasSubstr("holds 0 bytes"));
  EXPECT_THAT(why(cifar_file(11), CifarKind::cifar10), HasSubstr("label of record 10 is 10"));
  EXPECT_THAT(why(cifar_file(3), CifarKind::cifar100), HasSubstr("3074"));
}

TEST(Source, OpensCifar) {
  const TemporaryDirectory directory;
  write_cifar10(directory.path());
  const Source source = open_source(directory.path());
  EXPECT_EQ(source.kind, SourceKind::cifar10);
  EXPECT_EQ(source.train->size(), 20);
  EXPECT_EQ(source.test->size(), 6);
  EXPECT_EQ(source.train->sample().input, (Shape{32, 32, 3}));

  const TemporaryDirectory hundred;
  write_bytes(hundred / "cifar-100-binary/train.bin", cifar_file(5, true));
  write_bytes(hundred / "cifar-100-binary/test.bin", cifar_file(5, true));
  EXPECT_EQ(open_source(hundred.path()).kind, SourceKind::cifar100);

  std::filesystem::remove(directory / "data_batch_3.bin");
  EXPECT_THAT(refusal([&] { open_source(directory.path()); }), HasSubstr("data_batch_3.bin"));
}

TEST(Source, OpensIdx) {
  const TemporaryDirectory directory;
  std::vector<uint8_t> pixels(12);
  for (size_t i = 0; i < 12; ++i) pixels[i] = static_cast<uint8_t>(20 * i);
  write_bytes(directory / "train-images-idx3-ubyte", idx_file(2051, {3, 2, 2}, pixels));
  write_bytes(directory / "train-labels-idx1-ubyte", idx_file(2049, {3}, {0, 1, 1}));
  const Source alone = open_source(directory.path());
  EXPECT_EQ(alone.kind, SourceKind::idx);
  EXPECT_EQ(alone.train->classes(), 2);
  EXPECT_EQ(alone.test, nullptr);

  write_bytes(directory / "t10k-images-idx3-ubyte", idx_file(2051, {1, 2, 2}, {0, 0, 0, 9}));
  write_bytes(directory / "t10k-labels-idx1-ubyte", idx_file(2049, {1}, {2}));
  EXPECT_THAT(refusal([&] { open_source(directory.path()); }), HasSubstr("label 2"));
  write_bytes(directory / "t10k-labels-idx1-ubyte", idx_file(2049, {1}, {1}));
  EXPECT_EQ(open_source(directory.path()).test->size(), 1);
  write_bytes(directory / "t10k-images-idx3-ubyte", idx_file(2051, {1, 1, 4}, {0, 0, 0, 9}));
  EXPECT_THAT(refusal([&] { open_source(directory.path()); }), HasSubstr("images are 1x4"));

  // Normalised by the training images: their mean is 0, their deviation 1.
  double sum = 0, squares = 0;
  for (const auto& [images, labels] : Loader(alone.train, {.batch_size = 3}).epoch(0)) {
    for (const float x : images.to_vector<float>()) {
      sum += x;
      squares += x * x;
    }
  }
  EXPECT_NEAR(sum / 12, 0, 1e-5);
  EXPECT_NEAR(squares / 12, 1, 1e-5);
}

TEST(Source, OpensImageFolders) {
  const TemporaryDirectory directory;
  for (const char* name : {"train/a/1.png", "train/b/2.png", "val/a/3.png", "val/b/4.png"}) {
    write_bytes(directory / name, png_file(30, 20, 3));
  }
  const Source source = open_source(directory.path(), {.image_size = 24});
  EXPECT_EQ(source.kind, SourceKind::image_folder);
  EXPECT_EQ(source.train->size(), 2);
  EXPECT_EQ(source.test->size(), 2);
  EXPECT_EQ(source.train->sample().input, (Shape{24, 24, 3}));
  const Source plain = open_source(directory / "train");
  EXPECT_EQ(plain.train->classes(), 2);
  EXPECT_EQ(plain.test, nullptr);

  std::filesystem::rename(directory / "val/b", directory / "val/c");
  EXPECT_THAT(refusal([&] { open_source(directory.path()); }), HasSubstr("class folders"));
}

TEST(Source, OpensTextFilesAndFolders) {
  const TemporaryDirectory directory;
  std::string text;
  for (int i = 0; i < 100; ++i) text += "line " + std::to_string(i) + "\n";
  write_bytes(directory / "b", bytes_from(text));
  write_bytes(directory / "a", bytes_from("first\n"));
  write_bytes(directory / "b.dat", bytes_from(std::string_view("\0\0\2index", 8)));
  write_bytes(directory / ".hidden", bytes_from("no"));
  std::filesystem::create_symlink("b", directory / "b.u8");
  EXPECT_EQ(read_text(directory.path()), "first\n" + text);

  const Source folder = open_source(directory.path(), {.seq_len = 16});
  EXPECT_EQ(folder.kind, SourceKind::text);
  EXPECT_EQ(folder.train->classes(), 256);
  ASSERT_NE(folder.tokenizer, nullptr);
  EXPECT_EQ(folder.tokenizer->vocabulary(), 256);
  const auto bytes = static_cast<int64_t>(text.size()) + 6;
  EXPECT_EQ(folder.test->size(), (bytes / 10 - 1) / 16);

  const Source file = open_source(directory / "b", {.seq_len = 16, .held_out = 0});
  EXPECT_EQ(file.test, nullptr);
  EXPECT_EQ(file.train->size(), (bytes - 7) / 16);
  EXPECT_THAT(refusal([&] { open_source(directory / "b", {.vocab_json = "x.json"}); }),
              HasSubstr("only one of"));
  EXPECT_THAT(refusal([&] { open_source(directory / "b", {.held_out = 1}); }),
              HasSubstr("held_out 1"));
}

TEST(Source, OpensTokenFiles) {
  const TemporaryDirectory directory;
  write_bytes(directory / "train.bin", Bytes(2000, std::byte{1}));
  write_bytes(directory / "val.bin", Bytes(200, std::byte{1}));
  const Source pair = open_source(directory.path(), {.seq_len = 16});
  EXPECT_EQ(pair.kind, SourceKind::tokens);
  EXPECT_EQ(pair.train->size(), 62);
  EXPECT_EQ(pair.test->size(), 6);
  const Source single = open_source(directory / "train.bin", {.seq_len = 16, .vocabulary = 300});
  EXPECT_EQ(single.train->size(), 56);
  EXPECT_EQ(single.test->size(), 6);
  EXPECT_EQ(single.train->classes(), 300);
}

TEST(Source, AugmentsTrainingSamplesAlone) {
  const TemporaryDirectory directory;
  std::string text;
  for (int i = 0; i < 2000; ++i) text.push_back(static_cast<char>('a' + i * i % 23));
  write_bytes(directory / "text/a.txt", bytes_from(text));
  write_cifar10(directory / "cifar");
  for (const char* name : {"text", "cifar"}) {
    for (const bool augment : {false, true}) {
      const Source source = open_source(directory / name, {.seq_len = 16, .augment = augment});
      for (const DatasetPtr& split : {source.train, source.test}) {
        const SampleSpec spec = split->sample();
        const auto bytes = static_cast<size_t>(spec.input.numel() * size_of(spec.input_dtype));
        std::set<Bytes> seen;
        for (uint64_t stream = 0; stream < 20; ++stream) {
          Rng rng(1, stream);
          Bytes input(bytes), target(bytes);
          split->read(1, rng, input, target);
          seen.insert(input);
        }
        const bool varies = augment && split == source.train;
        EXPECT_EQ(seen.size() > 1, varies) << name;
      }
    }
  }
}

TEST(Source, RefusesWhatItDoesNotKnow) {
  const TemporaryDirectory directory;
  const auto why = [&](std::string_view name) {
    return refusal([&] { open_source(directory / name); });
  };
  EXPECT_THAT(why("missing"), HasSubstr("missing: cannot be found"));
  std::filesystem::create_directory(directory / "empty");
  EXPECT_THAT(why("empty"), HasSubstr("holds no data that is known"));
  write_bytes(directory / "photo", png_file(4, 4, 3));
  EXPECT_THAT(why("photo"), HasSubstr("neither text nor"));
  write_bytes(directory / "nothing.txt", {});
  EXPECT_THAT(why("nothing.txt"), HasSubstr("is empty"));
  write_bytes(directory / "odd.bin", bytes_from("odd"));
  EXPECT_THAT(why("odd.bin"), HasSubstr("holds 3 bytes"));
}

TEST(Source, OpensDebiansFortunes) {
  const std::filesystem::path directory = "/usr/share/games/fortunes";
  if (!std::filesystem::exists(directory / "fortunes")) GTEST_SKIP() << "fortunes is not installed";
  const Source source = open_source(directory, {.seq_len = 256});
  EXPECT_EQ(source.kind, SourceKind::text);
  EXPECT_GT(source.train->size(), 1000);
  EXPECT_EQ(read_text(directory).find('\0'), std::string::npos);
}

TEST(Source, OpensDebiansFashionMnist) {
  const auto directory = find_fashion_mnist();
  if (!directory) GTEST_SKIP() << "dataset-fashion-mnist is not installed";
  const Source source = open_source(*directory);
  EXPECT_EQ(source.train->size(), 60000);
  EXPECT_EQ(source.test->size(), 10000);
  EXPECT_EQ(source.train->classes(), 10);
}

}  // namespace
}  // namespace crucible::data
