#include "tools/train/resume.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/file.h"
#include "models/weights.h"

namespace crucible::train {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// Settings without which the rest of a run would not be the same run.
constexpr const char* identity_keys[] = {
    "model",       "param_count", "hidden",  "layers",    "heads",      "width",
    "context",     "vocab",       "dropout", "precision", "data_kind",  "train_samples",
    "input_shape", "classes",     "seq_len", "augment",   "batch_size", "grad_accum_steps",
    "seed",        "opt",         "skip_bad"};

/// Settings that change nothing about what is learned.
constexpr const char* silent_keys[] = {"output",       "data_source",    "stop_after", "workers",
                                       "log_interval", "log_sample_ids", "mem_limit"};

bool contains(std::span<const char* const> keys, const std::string& key) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

std::string identity_hash(const std::string& settings) {
  const Json all = Json::parse(settings);
  Json identity;
  for (const char* key : identity_keys) identity[key] = all.value(key, Json());
  const std::string text = identity.dump();
  return fmt::format("{:08x}", crc32(std::as_bytes(std::span(text))));
}

/// Compares saved settings with present ones; returns those that changed and may.
std::vector<std::string> compare_settings(const fs::path& folder, const std::string& saved_text,
                                          const std::string& present_text) {
  const Json saved = Json::parse(saved_text, nullptr, false);
  check<IoError>(saved.is_object(), "{}: state.json has no settings; resume from another one.",
                 folder.string());
  const Json present = Json::parse(present_text);
  std::vector<std::string> changed;
  for (const auto& [key, value] : present.items()) {
    const Json before = saved.value(key, Json());
    if (before == value || contains(silent_keys, key)) continue;
    check(!contains(identity_keys, key),
          "train: --resume {}: {} was {}, is {}; use the saved value or start a new run.",
          folder.string(), key, before.dump(), value.dump());
    changed.push_back(fmt::format("{} was {}, is {}", key, before.dump(), value.dump()));
  }
  return changed;
}

bool looks_like_checkpoint(const fs::path& path) {
  return path.filename().string().starts_with("step-");
}

/// Run folders of a model below runs/, newest first.
std::vector<fs::path> runs_of(const std::string& model) {
  std::vector<std::pair<fs::file_time_type, fs::path>> found;
  std::error_code error;
  for (fs::directory_iterator it("runs", error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    const size_t model_begin = name.find('-');
    if (model_begin == std::string::npos) continue;
    if (name.substr(model_begin + 1, name.rfind('-') - model_begin - 1) != model) continue;
    std::error_code ignored;
    found.emplace_back(fs::last_write_time(it->path() / "checkpoints", ignored), it->path());
  }
  std::sort(found.rbegin(), found.rend());
  std::vector<fs::path> paths;
  for (auto& [time, path] : found) paths.push_back(std::move(path));
  return paths;
}

ResumePoint newest_of(const fs::path& run) {
  return {run, models::open_newest_checkpoint(run / "checkpoints")};
}

ResumePoint find_automatically(const Options& o) {
  std::error_code error;
  if (o.output) {
    return fs::is_directory(fs::path(*o.output) / "checkpoints", error)
               ? newest_of(*o.output)
               : ResumePoint{*o.output, {}};
  }
  for (const fs::path& run : runs_of(o.model)) {
    ResumePoint point = newest_of(run);
    if (point.checkpoint) return point;
  }
  return {};
}

}  // namespace

ResumePoint find_checkpoint(const Options& o) {
  if (!o.resume) return {};
  if (*o.resume == "auto") return find_automatically(o);
  fs::path path = *o.resume;
  while (path.has_relative_path() && path.filename().empty()) path = path.parent_path();
  std::error_code error;
  check<IoError>(fs::is_directory(path, error),
                 "train: --resume {} is not a folder; name a run folder or a checkpoint.",
                 path.string());
  if (looks_like_checkpoint(path)) {
    return {path.parent_path().parent_path(), models::open_checkpoint(path)};
  }
  const bool run = fs::is_directory(path / "checkpoints", error);
  ResumePoint point{run ? path : path.parent_path(),
                    models::open_newest_checkpoint(run ? path / "checkpoints" : path)};
  check<IoError>(point.checkpoint.has_value(),
                 "train: --resume {} holds no checkpoint; name a run folder or a checkpoint.",
                 path.string());
  return point;
}

models::CheckpointContents capture(const models::Module& model, const optim::Optimizer& optimizer,
                                   const optim::GradScaler* scaler, const data::Loader& loader,
                                   const Position& position, const std::string& settings,
                                   int64_t metrics_bytes) {
  models::CheckpointContents contents;
  models::TrainingState& state = contents.state;
  state.step = optimizer.applied_steps();
  state.epoch = position.epoch;
  state.batch_in_epoch = position.next_batch;
  state.counters = {{"optimizer.applied", optimizer.applied_steps()},
                    {"epoch.targets", position.totals.targets},
                    {"epoch.correct", position.totals.correct},
                    {"metrics.bytes", metrics_bytes},
                    {"loader.dataset_size", loader.dataset().size()},
                    {"loader.batch_size", loader.options().batch_size},
                    {"loader.world_size", loader.options().world_size},
                    {"loader.seed", static_cast<int64_t>(loader.options().seed)},
                    {"loader.shuffle", loader.options().shuffle},
                    {"loader.drop_last", loader.options().drop_last}};
  state.values = {{"epoch.loss_sum", position.totals.loss_sum}};
  if (scaler) {
    const optim::GradScaler::State& s = scaler->state();
    state.values["scaler.scale"] = s.scale;
    state.counters["scaler.good_updates"] = s.good_updates;
    state.counters["scaler.consecutive_skips"] = s.consecutive_skips;
    state.counters["scaler.skipped"] = s.skipped;
  }
  state.texts = {{"settings", settings}};
  state.random = {{"dropout", const_cast<models::Module&>(model).parameters().rng()}};
  state.settings_hash = identity_hash(settings);
  contents.model = model.parameters().state();
  contents.optimizer = optimizer.state();
  return contents;
}

Restored restore(const models::Checkpoint& checkpoint, const std::string& settings,
                 models::Module& model, optim::Optimizer& optimizer, optim::GradScaler* scaler,
                 const data::Loader& loader) {
  const models::TrainingState& state = checkpoint.state;
  const auto find = [&](const auto& map, const char* key) {
    const auto it = map.find(key);
    check<IoError>(it != map.end(), "{}: state.json lacks {}; resume from another checkpoint.",
                   checkpoint.folder.string(), key);
    return it->second;
  };
  const auto counter = [&](const char* key) { return find(state.counters, key); };

  Restored restored;
  restored.changed = compare_settings(checkpoint.folder, find(state.texts, "settings"), settings);
  loader.check_resume({.epoch = state.epoch,
                       .next_batch = state.batch_in_epoch,
                       .dataset_size = counter("loader.dataset_size"),
                       .batch_size = counter("loader.batch_size"),
                       .world_size = counter("loader.world_size"),
                       .seed = static_cast<uint64_t>(counter("loader.seed")),
                       .shuffle = counter("loader.shuffle") != 0,
                       .drop_last = counter("loader.drop_last") != 0});
  restored.position = {.epoch = state.epoch,
                       .next_batch = state.batch_in_epoch,
                       .totals = {.loss_sum = find(state.values, "epoch.loss_sum"),
                                  .targets = counter("epoch.targets"),
                                  .correct = counter("epoch.correct")}};
  restored.metrics_bytes = counter("metrics.bytes");
  const RngState dropout = find(state.random, "dropout");
  const int64_t applied = counter("optimizer.applied");
  check<IoError>(applied >= 0, "{}: state.json says {} updates; resume from another checkpoint.",
                 checkpoint.folder.string(), applied);

  if (scaler) {
    scaler->restore({.scale = find(state.values, "scaler.scale"),
                     .good_updates = counter("scaler.good_updates"),
                     .consecutive_skips = counter("scaler.consecutive_skips"),
                     .skipped = counter("scaler.skipped")});
  }
  models::load_tensors(checkpoint.model, model.parameters().state());
  models::load_tensors(checkpoint.optimizer, optimizer.state());
  optimizer.set_applied_steps(applied);
  model.parameters().rng() = dropout;
  return restored;
}

}  // namespace crucible::train
