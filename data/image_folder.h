/// Folders of JPEG and PNG images, one sub-folder a class.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "data/dataset.h"
#include "data/transforms.h"

namespace crucible::data {

/// What a folder holds.  Order depends on names alone, not on the file system.
struct FolderListing {
  struct File {
    std::filesystem::path path;
    int64_t label;
  };
  std::filesystem::path root;
  std::vector<std::string> classes;  ///< Names of the sub-folders, sorted.
  std::vector<File> files;           ///< Sorted by class, then by path.
};

/// Lists every file below each sub-folder.  Names that begin with a dot are skipped, nothing else:
/// a file that is no image must be seen when it is read, not vanish. Throws    IoError if `root` is
/// not a readable directory or holds no class with a file.
FolderListing list_image_folder(const std::filesystem::path& root);

/// The data set over a listing: inputs f32 [size, size, 3], targets i64 [].  Files are read and
/// decoded when asked for.
class ImageFolder : public Dataset {
 public:
  /// Throws    InvalidArgument if the transform has no size or contradicts itself.
  ImageFolder(FolderListing listing, ImageTransform transform,
              int64_t max_pixels = int64_t{1} << 26);

  int64_t size() const override { return static_cast<int64_t>(listing_.files.size()); }
  SampleSpec sample() const override { return {shape_, DType::f32, Shape{}, DType::i64}; }
  int64_t classes() const override { return static_cast<int64_t>(listing_.classes.size()); }
  std::string description() const override;
  /// Throws    IoError naming the file if it cannot be read or decoded.
  void read(int64_t index, Rng& rng, std::span<std::byte> input,
            std::span<std::byte> target) const override;

  const FolderListing& listing() const { return listing_; }

 private:
  FolderListing listing_;
  ImageTransform transform_;
  int64_t max_pixels_;
  Shape shape_;
};

/// Mean and deviation of ImageNet's training images, which published weights expect.
ImageTransform imagenet_normalised(ImageTransform transform);

}  // namespace crucible::data
