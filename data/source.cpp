#include "data/source.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/check.h"
#include "core/file.h"
#include "data/bpe.h"
#include "data/cifar.h"
#include "data/idx.h"
#include "data/image_folder.h"
#include "data/text.h"
#include "data/token_bin.h"

namespace crucible::data {
namespace {

namespace fs = std::filesystem;

bool path_exists(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

/// Both splits normalised by the training images.
Source images_in_memory(SourceKind kind, std::shared_ptr<const LabelledImages> train,
                        std::shared_ptr<const LabelledImages> test, ImageTransform augmentation) {
  const auto [mean, std] = channel_statistics(train->pixels, train->channels);
  augmentation.mean = mean;
  augmentation.std = std;
  Source source{.kind = kind};
  if (test) {
    check<IoError>(
        test->height == train->height && test->width == train->width,
        "{}: images are {}x{}, those of the training split {}x{}; the files do not belong "
        "together.",
        test->origin, test->height, test->width, train->height, train->width);
    source.test =
        std::make_shared<ImageArray>(std::move(test), ImageTransform{.mean = mean, .std = std});
  }
  source.train = std::make_shared<ImageArray>(std::move(train), std::move(augmentation));
  return source;
}

Source open_idx(const fs::path& directory) {
  auto train = load_idx_split(directory, "train");
  const auto test = has_idx_split(directory, "test")
                        ? load_idx_split(directory, "test", train->classes)
                        : nullptr;
  return images_in_memory(SourceKind::idx, std::move(train), test, {});
}

Source open_cifar(const fs::path& directory, CifarKind kind, const SourceOptions& options) {
  ImageTransform augmentation;
  if (options.augment) augmentation = {.crop = Crop::random_padded, .flip = true};
  return images_in_memory(kind == CifarKind::cifar10 ? SourceKind::cifar10 : SourceKind::cifar100,
                          load_cifar(directory, kind, "train"), load_cifar(directory, kind, "test"),
                          augmentation);
}

Source open_image_folder(const fs::path& directory, const SourceOptions& options) {
  const ImageTransform plain =
      imagenet_normalised({.crop = Crop::center, .size = options.image_size});
  const ImageTransform augmented =
      imagenet_normalised({.crop = Crop::random_resized, .size = options.image_size, .flip = true});
  const bool split = is_folder(directory / "train");
  FolderListing train = list_image_folder(split ? directory / "train" : directory);
  Source source{.kind = SourceKind::image_folder};
  for (const char* name : {"val", "test"}) {
    if (!split || source.test || !is_folder(directory / name)) continue;
    FolderListing test = list_image_folder(directory / name);
    check<IoError>(test.classes == train.classes,
                   "{}: its {} class folders are not the {} of train; give both the same.",
                   (directory / name).string(), test.classes.size(), train.classes.size());
    source.test = std::make_shared<ImageFolder>(std::move(test), plain);
  }
  source.train =
      std::make_shared<ImageFolder>(std::move(train), options.augment ? augmented : plain);
  return source;
}

/// The beginning of a sequence to train on, its end to test on.
Source split_tokens(SourceKind kind, const TokenSourcePtr& tokens, const SourceOptions& options) {
  check(options.held_out >= 0 && options.held_out < 1,
        "data: held_out {} is outside [0, 1); give the share of the text to test on.",
        options.held_out);
  const int64_t size = tokens->size();
  const auto held_out = static_cast<int64_t>(options.held_out * static_cast<double>(size));
  const bool has_test = held_out > options.seq_len;
  const int64_t cut = has_test ? size - held_out : size;
  Source source{.kind = kind};
  source.train = std::make_shared<TokenWindows>(
      tokens,
      TokenWindowOptions{.seq_len = options.seq_len, .end = cut, .random_offset = options.augment});
  if (has_test) {
    source.test = std::make_shared<TokenWindows>(
        tokens, TokenWindowOptions{.seq_len = options.seq_len, .begin = cut});
  }
  return source;
}

Source open_text(const fs::path& path, const SourceOptions& options) {
  check(options.vocab_json.empty() == options.merges_txt.empty(),
        "data: only one of vocab_json \"{}\" and merges_txt \"{}\" is given; give both or neither.",
        options.vocab_json.string(), options.merges_txt.string());
  const TokenizerPtr tokenizer = options.vocab_json.empty()
                                     ? std::make_shared<const ByteTokenizer>()
                                     : load_gpt2_bpe(options.vocab_json, options.merges_txt);
  Source source = split_tokens(SourceKind::text, load_text(path, *tokenizer), options);
  source.tokenizer = tokenizer;
  return source;
}

Source open_token_pair(const fs::path& directory, const SourceOptions& options) {
  const auto open = [&](const char* name, bool random_offset) {
    return std::make_shared<TokenWindows>(
        std::make_shared<TokenFile>(directory / name, options.vocabulary),
        TokenWindowOptions{.seq_len = options.seq_len, .random_offset = random_offset});
  };
  Source source{.kind = SourceKind::tokens};
  source.train = open("train.bin", options.augment);
  source.test = open("val.bin", false);
  check<IoError>(source.train->classes() == source.test->classes(),
                 "{}: train.bin and val.bin are of different formats; give both the same.",
                 directory.string());
  return source;
}

bool has_image_name(const fs::path& path) {
  std::string extension = path.extension().string();
  for (char& c : extension) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return extension == ".jpg" || extension == ".jpeg" || extension == ".png";
}

/// Whether a file in a sub-folder is called like an image; one name among the first many settles
/// it.
bool has_image_folders(const fs::path& directory) {
  int64_t looked_at = 0;
  std::error_code error;
  fs::recursive_directory_iterator it(directory, error), end;
  for (; !error && it != end && looked_at < 100'000; it.increment(error), ++looked_at) {
    if (it.depth() > 0 && has_image_name(it->path())) return true;
  }
  return false;
}

Source open_directory(const fs::path& path, const SourceOptions& options) {
  if (has_idx_split(path, "train")) return open_idx(path);
  if (path_exists(path / "train.bin") && path_exists(path / "val.bin")) {
    return open_token_pair(path, options);
  }
  for (const char* below : {"", "cifar-10-batches-bin", "cifar-100-binary"}) {
    const fs::path directory = *below ? path / below : path;
    if (const auto kind = find_cifar(directory)) return open_cifar(directory, *kind, options);
  }
  if (has_image_folders(path)) return open_image_folder(path, options);
  if (has_text(path)) return open_text(path, options);
  fail<IoError>(
      "{}: holds no data that is known; give a directory with IDX (MNIST) or CIFAR files, "
      "train.bin "
      "and val.bin, one folder of images a class, or text files.",
      path.string());
}

Source open_file(const fs::path& path, const SourceOptions& options) {
  if (path.extension() == ".bin") {
    return split_tokens(SourceKind::tokens, std::make_shared<TokenFile>(path, options.vocabulary),
                        options);
  }
  const InputFile file(path);
  std::vector<std::byte> head(static_cast<size_t>(std::min<int64_t>(file.size(), 4096)));
  file.read_at(0, head);
  check<IoError>(!head.empty(), "{}: is empty; give a text file or a .bin file of tokens.",
                 file.path().string());
  const bool text = std::find(head.begin(), head.end(), std::byte{0}) == head.end();
  check<IoError>(
      text,
      "{}: is neither text nor a .bin file of tokens; for a data set of several files give "
      "their directory.",
      file.path().string());
  return open_text(path, options);
}

}  // namespace

std::string_view name_of(SourceKind kind) {
  constexpr std::array<std::string_view, 6> names{"idx",          "cifar10", "cifar100",
                                                  "image_folder", "text",    "tokens"};
  return names[static_cast<size_t>(kind)];
}

Source open_source(const fs::path& path, const SourceOptions& options) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  check<IoError>(fs::exists(status), "{}: cannot be found{}{}; check the path.", path.string(),
                 error ? ": " : "", error ? error.message() : "");
  return fs::is_directory(status) ? open_directory(path, options) : open_file(path, options);
}

}  // namespace crucible::data
