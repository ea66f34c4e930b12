#include "data/image_folder.h"

#include <algorithm>
#include <cstring>

#include "core/check.h"
#include "core/file.h"
#include "data/image_decode.h"

namespace crucible::data {
namespace {

namespace fs = std::filesystem;

bool hidden(const fs::path& path) {
  return path.filename().string().starts_with('.');
}

/// Files below `folder`, sorted.  Links to folders are not followed: they may form a loop.
std::vector<fs::path> files_below(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  fs::recursive_directory_iterator it(folder, error), end;
  while (!error && it != end) {
    if (hidden(it->path())) {
      it.disable_recursion_pending();
    } else if (std::error_code ignored; !it->is_directory(ignored)) {
      files.push_back(it->path());
    }
    it.increment(error);
  }
  check<IoError>(!error, "{}: cannot be listed: {}; check its permissions.", folder.string(),
                 error.message());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

FolderListing list_image_folder(const fs::path& root) {
  std::vector<fs::path> folders;
  std::error_code error;
  for (fs::directory_iterator it(root, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    if (!hidden(it->path()) && it->is_directory(ignored)) folders.push_back(it->path());
  }
  check<IoError>(!error, "{}: cannot be listed: {}; check the path and its permissions.",
                 root.string(), error.message());
  std::sort(folders.begin(), folders.end());
  FolderListing listing{.root = root};
  for (const fs::path& folder : folders) {
    const auto label = static_cast<int64_t>(listing.classes.size());
    listing.classes.push_back(folder.filename().string());
    for (fs::path& path : files_below(folder)) listing.files.push_back({std::move(path), label});
  }
  check<IoError>(
      !listing.files.empty(),
      "{}: has no files in {} sub-folders; give a folder with one sub-folder of images a "
      "class.",
      root.string(), listing.classes.size());
  return listing;
}

ImageFolder::ImageFolder(FolderListing listing, ImageTransform transform, int64_t max_pixels)
    : listing_(std::move(listing)), transform_(std::move(transform)), max_pixels_(max_pixels) {
  check(
      transform_.size > 0,
      "image folder: the transform has no size, but images of a folder differ in size; set size.");
  shape_ = output_shape(transform_, transform_.size, transform_.size, 3);
}

std::string ImageFolder::description() const {
  return fmt::format("{}: {} image files, {} classes, as {}x{}x3", listing_.root.string(), size(),
                     classes(), shape_[0], shape_[1]);
}

void ImageFolder::read(int64_t index, Rng& rng, std::span<std::byte> input,
                       std::span<std::byte> target) const {
  constexpr int64_t largest_file_bytes = int64_t{1} << 28;
  const FolderListing::File& file = listing_.files[static_cast<size_t>(index)];
  const RgbImage image =
      decode_image(read_file(file.path, largest_file_bytes), file.path.string(), max_pixels_);
  apply(transform_, {image.pixels.data(), image.height, image.width, 3}, rng,
        {reinterpret_cast<float*>(input.data()), input.size() / sizeof(float)});
  std::memcpy(target.data(), &file.label, sizeof file.label);
}

ImageTransform imagenet_normalised(ImageTransform transform) {
  transform.mean = {0.485f, 0.456f, 0.406f};
  transform.std = {0.229f, 0.224f, 0.225f};
  return transform;
}

}  // namespace crucible::data
