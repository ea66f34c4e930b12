/// Weights in and out of a model: every tensor is accounted for, or nothing is loaded.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/named_tensor.h"
#include "models/safetensors.h"

namespace crucible::models {

struct LoadOptions {
  /// Load what fits in name, shape and dtype, and leave the rest of the model as it is.
  bool partial = false;
  /// Convert between f32, f16 and bf16, rounding to nearest even.
  bool convert_dtype = false;
  /// What the file puts before each name of the model, e.g. "transformer.".
  std::string file_prefix;
  /// Names in the file that need no place in the model, e.g. GPT-2's "h.0.attn.bias" masks.
  std::function<bool(std::string_view)> may_skip;
};

/// What a load did.  Every tensor of the model is loaded or listed; every tensor of the file too.
struct LoadReport {
  int64_t loaded = 0;
  std::vector<std::string>
      untouched;  ///< In the model, not loaded: absent from the file or not fitting.
  std::vector<std::string> unread;  ///< In the file, without a place in the model.
};

/// Copies tensors of `file` into contiguous `targets` of the same names, permuted to our layouts.
/// Nothing is changed unless all names, shapes and dtypes have been found to fit.
///
/// Throws    InvalidArgument with counts and the first names of what is missing, unexpected or does
///           not match; with `partial`, only if nothing fits.
///           IoError if the file cannot be read; tensors loaded before keep their new values.
LoadReport load_tensors(const SafetensorsFile& file, std::span<const NamedTensor> targets,
                        const LoadOptions& options = {});

/// The same from a path.
LoadReport load_weights(const std::filesystem::path& path, std::span<const NamedTensor> targets,
                        const LoadOptions& options = {});

/// Writes tensors as one file, atomically, with the names and layouts of torchvision and Hugging
/// Face. The metadata says `format: pt`, which Hugging Face's loader insists on. Throws
/// InvalidArgument, IoError; an existing file is then as before.
void save_weights(const std::filesystem::path& path, std::span<const NamedTensor> tensors);

}  // namespace crucible::models
