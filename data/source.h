/// Opening whatever a path points to.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "data/dataset.h"
#include "data/tokenizer.h"

namespace crucible::data {

enum class SourceKind { idx, cifar10, cifar100, image_folder, text, tokens };
std::string_view name_of(SourceKind kind);

struct SourceOptions {
  int64_t seq_len = 256;     ///< Text and token files.
  double held_out = 0.1;     ///< Share of text or one token file that is kept for testing: its end.
  int64_t vocabulary = 0;    ///< Token files; 0: what is usual for their format.
  int64_t image_size = 224;  ///< Image folders.
  /// Training samples get the augmentation usual for their kind: CIFAR is moved by up to 4 pixels
  /// and mirrored, folders are cropped at random and mirrored, windows of tokens start at random
  /// offsets; IDX (digits may not be mirrored) gets none.  Test samples never do.
  bool augment = true;
  std::filesystem::path vocab_json;  ///< With merges_txt: text as GPT-2 BPE; without: as bytes.
  std::filesystem::path merges_txt;
};

struct Source {
  SourceKind kind;
  DatasetPtr train;
  DatasetPtr test;         ///< Null if there is nothing to test on.
  TokenizerPtr tokenizer;  ///< Text only, else null.
};

/// Looks at a path and opens it: a directory with the files of MNIST, CIFAR-10 or CIFAR-100, with
/// train.bin and val.bin, with images in a folder a class (perhaps below train/ and val/ or test/),
/// or with text files; or one text or .bin token file. Throws    IoError if it is missing, empty,
/// damaged or none of these; InvalidArgument for options.
Source open_source(const std::filesystem::path& path, const SourceOptions& options = {});

}  // namespace crucible::data
