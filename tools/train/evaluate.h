/// How good a model is on data that it was not trained on.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "data/loader.h"
#include "data/tokenizer.h"
#include "models/module.h"

namespace crucible::train {

struct Evaluation {
  double loss = 0.0;  ///< Mean over all targets, in nats.
  int64_t targets = 0;
  std::optional<double> accuracy;       ///< Share of right answers, for classifiers.
  std::optional<double> bits_per_byte;  ///< For text: total bits over total bytes predicted.
  bool complete = false;                ///< False if `stop` ended it early.
};

struct EvaluateOptions {
  bool classify = true;
  const data::Tokenizer* tokenizer = nullptr;  ///< Says how many bytes tokens stand for.
  int64_t max_batches = 0;                     ///< 0: all.
  std::function<bool()> stop = [] { return false; };
};

/// Evaluates in the mode without dropout and with running statistics, and restores the mode.
/// Draws no random numbers: training goes on as if it had not been.
Evaluation evaluate(models::Module& model, const data::Loader& loader,
                    const EvaluateOptions& options);

}  // namespace crucible::train
