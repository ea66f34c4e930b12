/// Which data a run uses: what the flags name, else Fashion-MNIST where found, else synthetic.
#pragma once

#include <string>

#include "data/dataset.h"
#include "data/tokenizer.h"
#include "tools/train/options.h"

namespace crucible::train {

struct DataSource {
  std::string kind;  ///< "idx", "cifar10", ..., "synthetic".
  data::DatasetPtr train;
  data::DatasetPtr test;  ///< Null if there is nothing to test on.
  data::TokenizerPtr tokenizer;
  std::string augment;  ///< What happens to training images, in words: "none", "crop+flip".

  bool synthetic() const { return kind == "synthetic"; }
};

/// Looks whether the path named by the flags can be what the model needs, without reading it.
/// Throws    InvalidArgument, IoError.
void check_data_path(const Options& options);

/// Throws    IoError if files are missing or damaged; InvalidArgument if they do not suit the
/// model.
DataSource open_data(const Options& options);

}  // namespace crucible::train
