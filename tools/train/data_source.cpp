#include "tools/train/data_source.h"

#include <algorithm>
#include <filesystem>
#include <memory>

#include "core/check.h"
#include "data/idx.h"
#include "data/image_array.h"
#include "data/source.h"
#include "data/synthetic.h"
#include "tools/train/settings.h"

namespace crucible::train {
namespace {

namespace fs = std::filesystem;

bool holds_text(const std::string& kind) {
  return kind == "text" || kind == "tokens";
}

std::string augment_text(const data::ImageTransform& t) {
  std::string text = t.crop == data::Crop::random_padded    ? fmt::format("crop {}", t.padding)
                     : t.crop == data::Crop::random_resized ? "random resized crop"
                                                            : "";
  if (t.flip) text += text.empty() ? "flip" : " + flip";
  return text.empty() ? "none" : text;
}

/// Applies --augment crop and crop-flip, which only images in memory can take.
void augment_by_hand(const std::string& wanted, DataSource& source) {
  const auto images = std::dynamic_pointer_cast<const data::ImageArray>(source.train);
  if (!images) {
    check(wanted == "auto" || wanted == "none",
          "train: --augment {} needs images of IDX or CIFAR files: the data are {}; choose auto or "
          "none.",
          wanted, source.kind);
    source.augment = wanted == "none"                ? "none"
                     : source.kind == "image_folder" ? "random resized crop + flip"
                                                     : "random offset";
    return;
  }
  data::ImageTransform transform = images->transform();
  if (wanted == "crop" || wanted == "crop-flip") {
    transform.crop = data::Crop::random_padded;
    transform.padding =
        std::max<int64_t>(std::min(images->images().height, images->images().width) / 8, 1);
    transform.flip = wanted == "crop-flip";
    source.train = images->with(transform);
  }
  source.augment = augment_text(transform);
}

DataSource synthetic(const Options& o) {
  DataSource source{.kind = "synthetic", .augment = "none"};
  const int64_t count = o.synthetic_samples.value_or(10000);
  const int64_t tests = std::max<int64_t>(count / 10, 1);
  const auto seed = static_cast<uint64_t>(o.seed.value_or(42));
  if (is_gpt(o.model)) {
    data::SyntheticTokenOptions options{.count = count,
                                        .seq_len = sequence_length(o),
                                        .vocabulary = gpt_config(o).vocabulary,
                                        .seed = seed};
    source.train = std::make_shared<data::SyntheticTokens>(options);
    options.count = tests;
    options.split = 1;
    source.test = std::make_shared<data::SyntheticTokens>(options);
    return source;
  }
  const bool large =
      is_resnet(o.model) && o.model != "resnet" &&
      std::string("resnet20 resnet32 resnet44 resnet56").find(o.model) == std::string::npos;
  const int64_t side = o.image_size.value_or(large ? 224 : 32);
  data::SyntheticImageOptions options{
      .count = count, .height = side, .width = side, .channels = 3, .classes = 10, .seed = seed};
  source.train = std::make_shared<data::SyntheticImages>(options);
  options.count = tests;
  options.split = 1;
  source.test = std::make_shared<data::SyntheticImages>(options);
  return source;
}

DataSource files(const Options& o, const fs::path& path) {
  data::SourceOptions options;
  if (is_gpt(o.model)) {
    options.seq_len = sequence_length(o);
    options.vocabulary = o.vocab.value_or(0);
    if (o.tokenizer && *o.tokenizer != "bytes") {
      options.vocab_json = fs::path(*o.tokenizer) / "vocab.json";
      options.merges_txt = fs::path(*o.tokenizer) / "merges.txt";
    }
  }
  options.image_size = o.image_size.value_or(224);
  const std::string augment = o.augment.value_or("auto");
  options.augment = augment == "auto";
  data::Source opened = data::open_source(path, options);

  DataSource source{.kind = std::string(data::name_of(opened.kind)),
                    .train = opened.train,
                    .test = opened.test,
                    .tokenizer = opened.tokenizer};
  check(holds_text(source.kind) == is_gpt(o.model), "train: {} holds {}, but {} learns from {}.",
        path.string(), source.kind == "image_folder" ? "images" : source.kind, o.model,
        is_gpt(o.model) ? "text or tokens; give such a file, or choose mlp or resnet"
                        : "images; give a directory of them, or choose gpt");
  std::string expected = o.dataset.value_or("auto");
  std::replace(expected.begin(), expected.end(), '-', '_');
  check(expected == "auto" || expected == source.kind ||
            (expected == "fashion_mnist" && source.kind == "idx"),
        "train: {} holds {}, not the {} that --dataset asks for; change one of them.",
        path.string(), source.kind, o.dataset.value_or(""));
  check(
      !o.image_size || source.kind == "image_folder",
      "train: --image-size {} does not apply to {} files, whose images have a size; leave it out.",
      o.image_size.value_or(0), source.kind);
  check(!o.tokenizer || source.kind == "text",
        "train: --tokenizer {} does not apply to {} files; leave it out.", o.tokenizer.value_or(""),
        source.kind);
  augment_by_hand(augment, source);
  return source;
}

/// Empty: synthetic data.
fs::path chosen_path(const Options& o) {
  if (o.data_dir) return *o.data_dir;
  const std::string dataset = o.dataset.value_or("auto");
  if (dataset == "synthetic" || (dataset == "auto" && is_gpt(o.model))) return {};
  const auto fashion = data::find_fashion_mnist();
  if (dataset == "auto") {
    const bool suits = is_mlp(o.model) || is_resnet(o.model);
    return fashion && suits && !o.image_size && !o.synthetic_samples ? *fashion : fs::path();
  }
  check(dataset == "fashion-mnist", "train: --dataset {} needs --data-dir; name where it is.",
        dataset);
  check<IoError>(fashion.has_value(),
                 "train: --dataset fashion-mnist: the files were not found; install Debian's "
                 "package dataset-fashion-mnist, or name their directory with --data-dir.");
  return *fashion;
}

}  // namespace

void check_data_path(const Options& o) {
  check(!o.data_dir || o.dataset != "synthetic",
        "train: --data-dir {} and --dataset synthetic contradict each other; leave one out.",
        o.data_dir.value_or(""));
  if (is_gpt(o.model)) sequence_length(o);
  const fs::path path = chosen_path(o);
  check(path.empty() || !o.synthetic_samples,
        "train: --synthetic-samples {} applies to synthetic data only: {} is used; leave it out.",
        o.synthetic_samples.value_or(0), path.string());
  check(!path.empty() || !o.tokenizer, "train: --tokenizer {} needs text; name it with --data-dir.",
        o.tokenizer.value_or(""));
  check(!path.empty() || o.augment.value_or("none") == "none" || o.augment == "auto",
        "train: --augment {} does not apply to synthetic data; leave it out.",
        o.augment.value_or(""));
  if (path.empty()) return;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  check<IoError>(fs::exists(status), "train: --data-dir {} does not exist; check the path.",
                 path.string());
  check<IoError>(is_gpt(o.model) || fs::is_directory(status),
                 "train: --data-dir {} is a file; {} needs a directory.", path.string(), o.model);
  if (fs::is_directory(status)) {
    const bool empty = fs::is_empty(path, error);
    check<IoError>(!error, "train: --data-dir {} cannot be read: {}; check its permissions.",
                   path.string(), error.message());
    check<IoError>(!empty, "train: --data-dir {} is empty; name a directory with data.",
                   path.string());
  }
}

DataSource open_data(const Options& o) {
  const fs::path path = chosen_path(o);
  return path.empty() ? synthetic(o) : files(o, path);
}

}  // namespace crucible::train
