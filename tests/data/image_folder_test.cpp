// Pain log P18: broken images, and loader threads that meet them.
#include "data/image_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>

#include "data/loader.h"
#include "tests/data/made_files.h"

namespace crucible::data {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const ImageTransform small{.crop = Crop::random_resized, .size = 16, .flip = true};

void write_good(const fs::path& root, int count) {
  const Bytes jpeg = jpeg_file(24, 20), png = png_file(20, 24, 3);
  for (int i = 0; i < count; ++i) {
    const std::string name = "good" + std::to_string(i);
    write_bytes(root / (i % 2 ? "cat" : "dog") / (name + (i % 3 ? ".jpg" : ".png")),
                i % 3 ? jpeg : png);
  }
}

/// One damaged file of each kind, below class "cat"; returns their names, sorted.
std::vector<std::string> write_bad(const fs::path& root) {
  const fs::path folder = root / "cat";
  const Bytes jpeg = jpeg_file(64, 64);
  write_bytes(folder / "bad-cut00.jpg", {});
  write_bytes(folder / "bad-cut02.jpg", first_bytes(jpeg, 0.02));
  write_bytes(folder / "bad-cut50.jpg", first_bytes(jpeg, 0.5));
  write_bytes(folder / "bad-cut99.jpg", first_bytes(jpeg, 0.99));
  write_bytes(folder / "bad-huge.jpg", jpeg_claiming(20000, 20000));
  write_bytes(folder / "bad-huge.png", png_claiming(20000, 20000));
  write_bytes(folder / "bad-text.txt", bytes_from("These are not pixels.\n"));
  fs::create_symlink("nowhere.jpg", folder / "bad-link.jpg");
  EXPECT_EQ(mkfifo((folder / "bad-pipe.jpg").c_str(), 0600), 0);
  std::vector<std::string> names{"bad-cut00.jpg", "bad-cut02.jpg", "bad-cut50.jpg",
                                 "bad-cut99.jpg", "bad-huge.jpg",  "bad-huge.png",
                                 "bad-link.jpg",  "bad-pipe.jpg",  "bad-text.txt"};
  if (geteuid() != 0) {  // root reads everything
    write_bytes(folder / "bad-unreadable.jpg", jpeg);
    fs::permissions(folder / "bad-unreadable.jpg", fs::perms::none);
    names.emplace_back("bad-unreadable.jpg");
  }
  return names;
}

/// Unusual files that are images all the same.
void write_unusual(const fs::path& root) {
  const fs::path folder = root / "dog";
  write_bytes(folder / "png-named.jpg", png_file(20, 20, 3));
  write_bytes(folder / "cmyk.jpg", jpeg_file(20, 20, JpegColor::cmyk));
  write_bytes(folder / "grey.jpg", jpeg_file(20, 20, JpegColor::grey));
  write_bytes(folder / "sixteen.png", png_file(20, 20, 3, 16));
  write_bytes(folder / "one.jpg", jpeg_file(1, 1));
}

int64_t count_samples(const Loader& loader) {
  int64_t count = 0;
  for (const auto& [images, labels] : loader.epoch(0)) {
    EXPECT_EQ(images.shape(), (Shape{labels.size(0), 16, 16, 3}));
    count += labels.size(0);
  }
  return count;
}

TEST(ImageFolder, ListsClassesAndFilesByName) {
  const TemporaryDirectory root;
  write_good(root.path(), 4);
  write_bytes(root / "dog/.DS_Store", bytes_from("x"));
  write_bytes(root / ".git/config", bytes_from("x"));
  write_bytes(root / "dog/deeper/a.jpg", jpeg_file(8, 8));
  const FolderListing listing = list_image_folder(root.path());
  EXPECT_THAT(listing.classes, ElementsAre("cat", "dog"));
  std::vector<std::string> names;
  for (const auto& file : listing.files) {
    names.push_back(file.path.lexically_relative(root.path()).string());
    EXPECT_EQ(file.label, names.back().starts_with("dog") ? 1 : 0);
  }
  EXPECT_THAT(names, ElementsAre("cat/good1.jpg", "cat/good3.png", "dog/deeper/a.jpg",
                                 "dog/good0.png", "dog/good2.jpg"));
}

TEST(ImageFolder, RefusesFoldersWithoutImages) {
  const TemporaryDirectory root;
  EXPECT_THAT(refusal([&] { list_image_folder(root.path()); }), HasSubstr("0 sub-folders"));
  fs::create_directory(root / "empty");
  EXPECT_THAT(refusal([&] { list_image_folder(root.path()); }), HasSubstr("1 sub-folders"));
  EXPECT_THAT(refusal([&] { list_image_folder(root / "missing"); }), HasSubstr("missing"));
}

TEST(ImageFolder, ReadsUnusualImages) {
  const TemporaryDirectory root;
  write_good(root.path(), 10);
  write_unusual(root.path());
  const auto dataset = std::make_shared<ImageFolder>(list_image_folder(root.path()), small);
  for (const int workers : {0, 1, 8}) {
    EXPECT_EQ(count_samples(Loader(dataset, {.batch_size = 4, .workers = workers})), 15);
  }
}

TEST(ImageFolder, AugmentationDoesNotDependOnWorkers) {
  const TemporaryDirectory root;
  write_good(root.path(), 20);
  const auto dataset = std::make_shared<ImageFolder>(list_image_folder(root.path()), small);
  std::vector<std::vector<float>> streams;
  for (const int workers : {0, 8}) {
    auto& stream = streams.emplace_back();
    const Loader loader(dataset, {.batch_size = 4, .seed = 3, .workers = workers});
    for (const auto& [images, labels] : loader.epoch(2)) {
      const auto values = images.to_vector<float>();
      stream.insert(stream.end(), values.begin(), values.end());
    }
  }
  EXPECT_EQ(streams[0].size(), 20u * 16 * 16 * 3);
  EXPECT_EQ(streams[0], streams[1]);
}

// Each kind of damage alone among good images: the refusal names its path, soon, on any thread
// count.
TEST(ImageFolder, RefusesEachKindOfDamageByPath) {
  const TemporaryDirectory all;
  for (const std::string& name : write_bad(all.path())) {
    const TemporaryDirectory root;
    write_good(root.path(), 10);
    fs::rename(all.path() / "cat" / name, root.path() / "cat" / name);
    const auto dataset = std::make_shared<ImageFolder>(list_image_folder(root.path()), small);
    ASSERT_EQ(dataset->size(), 11);
    for (const int workers : {0, 1, 8}) {
      const Loader loader(dataset, {.batch_size = 4, .workers = workers});
      const auto start = std::chrono::steady_clock::now();
      EXPECT_THAT(refusal([&] { count_samples(loader); }),
                  HasSubstr((root.path() / "cat" / name).string()));
      EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
    }
  }
}

TEST(ImageFolder, SkipBadCountsAndListsThem) {
  const TemporaryDirectory root;
  write_good(root.path(), 100);
  write_unusual(root.path());
  const auto bad = write_bad(root.path());
  const auto dataset = std::make_shared<ImageFolder>(list_image_folder(root.path()), small);
  for (const int workers : {0, 1, 8}) {
    const Loader loader(
        dataset, {.batch_size = 8, .workers = workers, .skip_bad = true, .max_bad_share = 0.1});
    EXPECT_EQ(count_samples(loader), 105);
    std::vector<std::string> names;
    for (const BadSample& sample : loader.bad_samples()) {
      const auto& path = dataset->listing().files[static_cast<size_t>(sample.index)].path;
      names.push_back(path.filename().string());
      EXPECT_THAT(sample.reason, HasSubstr(path.string()));
    }
    EXPECT_EQ(names, bad);
    EXPECT_THAT(
        refusal([&] {
          count_samples(Loader(
              dataset,
              {.batch_size = 8, .workers = workers, .skip_bad = true, .max_bad_share = 0.05}));
        }),
        AllOf(HasSubstr("share of 0.05"), HasSubstr("bad-")));
  }
}

}  // namespace
}  // namespace crucible::data
