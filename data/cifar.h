/// CIFAR-10 and CIFAR-100 in their binary version.
///
/// Layout    records of one label byte (CIFAR-100: coarse, then fine) and 3072 bytes of pixels,
///           planes red, green, blue of 32x32.  Source: Krizhevsky 2009, "Learning multiple layers
///           of features from tiny images".
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "data/image_array.h"

namespace crucible::data {

enum class CifarKind { cifar10, cifar100 };

/// Appends the records of one file in memory to `into`, pixels as NHWC, fine labels.
/// Throws    IoError if it does not hold whole records or a label is out of range.
void parse_cifar(std::span<const std::byte> bytes, CifarKind kind, std::string_view file,
                 LabelledImages& into);

/// Which of the two a directory holds, judged by its file names; nothing if neither.
std::optional<CifarKind> find_cifar(const std::filesystem::path& directory);

/// All images of one split, "train" or "test".
/// Throws    IoError if a file is missing or damaged, InvalidArgument for the split.
std::shared_ptr<const LabelledImages> load_cifar(const std::filesystem::path& directory,
                                                 CifarKind kind, std::string_view split);

}  // namespace crucible::data
