#include "models/checkpoint.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/file.h"

namespace crucible::models {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr int format_version = 1;
constexpr int64_t max_state_bytes = 1 << 20;
constexpr int max_depth = 8;
constexpr std::string_view prefix = "step-";
constexpr const char* model_file = "model.safetensors";
constexpr const char* optimizer_file = "optimizer.safetensors";
constexpr const char* state_file = "state.json";

// ---- Names of folders ---------------------------------------------------------------------------

enum class Kind { committed, set_aside, temporary };

struct Folder {
  int64_t step;
  Kind kind;
  fs::path path;
};

// `step-<digits>`, alone or followed by `.old-<pid>` or `.tmp-<pid>`; anything else is not ours.
std::optional<Folder> parse_folder(const fs::path& path) {
  const std::string name = path.filename().string();
  if (!name.starts_with(prefix)) return {};
  Folder folder{0, Kind::committed, path};
  const char* end = name.data() + name.size();
  const char* digits = name.data() + prefix.size();
  const auto [rest, error] = std::from_chars(digits, end, folder.step);
  if (error != std::errc() || folder.step < 0 || rest - digits < 8) return {};
  std::string_view suffix(rest, end);
  if (suffix.empty()) return folder;
  if (!suffix.starts_with(".tmp-") && !suffix.starts_with(".old-")) return {};
  folder.kind = suffix[1] == 't' ? Kind::temporary : Kind::set_aside;
  suffix.remove_prefix(5);
  const bool numeric = std::ranges::all_of(suffix, [](char c) { return c >= '0' && c <= '9'; });
  return numeric && !suffix.empty() ? std::optional(folder) : std::nullopt;
}

// Newest first; of one step, the committed one first.
std::vector<Folder> list_folders(const fs::path& root) {
  std::vector<Folder> folders;
  std::error_code error;
  if (!fs::exists(root, error)) return folders;
  for (fs::directory_iterator it(root, error), end; !error && it != end; it.increment(error)) {
    if (auto folder = parse_folder(it->path())) folders.push_back(std::move(*folder));
  }
  check<IoError>(!error, "{}: the folder of checkpoints cannot be listed: {}; check the path.",
                 root.native(), error.message());
  std::ranges::sort(folders, [](const Folder& a, const Folder& b) {
    return a.step != b.step ? a.step > b.step : a.kind < b.kind;
  });
  return folders;
}

// Runs a step of clean-up, whose failure is worth a warning but not the checkpoint.
template <class F>
void tidy(std::vector<std::string>& warnings, F&& f) {
  try {
    f();
  } catch (const IoError& error) {
    warnings.emplace_back(error.what());
  }
}

// Removes a set so that it never looks whole while parts of it are gone.
void discard(const fs::path& root, const Folder& folder) {
  if (folder.kind == Kind::temporary) return remove_tree(folder.path);
  const fs::path trash = root / fmt::format("{}{:08}.tmp-{}", prefix, folder.step, ::getpid());
  remove_tree(trash);
  rename_durably(folder.path, trash);
  remove_tree(trash);
}

// ---- state.json ---------------------------------------------------------------------------------

// JSON has no infinities and no NaN.
json to_json(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

json to_json(const TrainingState& state) {
  json values = json::object(), random = json::object();
  for (const auto& [name, value] : state.values) values[name] = to_json(value);
  for (const auto& [name, rng] : state.random) {
    random[name] = {{"seed", rng.seed}, {"stream", rng.stream}, {"offset", rng.offset}};
  }
  return {{"format", format_version},
          {"step", state.step},
          {"epoch", state.epoch},
          {"batch_in_epoch", state.batch_in_epoch},
          {"counters", state.counters},
          {"values", values},
          {"texts", state.texts},
          {"random", random},
          {"settings_hash", state.settings_hash}};
}

// Reads fields out of a state.json; each must be there and of its type.
struct StateReader {
  const fs::path& path;

  const json& field(const json& object, const std::string& key) const {
    if (!object.is_object() || !object.contains(key)) wrong(key);
    return object[key];
  }
  template <class T>
  T number(const json& object, const std::string& key) const {
    const json& value = field(object, key);
    const bool fits = std::is_signed_v<T>
                          ? value.is_number_integer() &&
                                !(value.is_number_unsigned() &&
                                  value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX))
                          : value.is_number_unsigned();
    if (!fits) wrong(key);
    return value.get<T>();
  }
  std::string text(const json& object, const std::string& key) const {
    const json& value = field(object, key);
    if (!value.is_string()) wrong(key);
    return value.get<std::string>();
  }
  double real(const json& object, const std::string& key) const {
    const json& value = field(object, key);
    if (value.is_number()) return value.get<double>();
    constexpr double infinity = std::numeric_limits<double>::infinity();
    if (value == "inf") return infinity;
    if (value == "-inf") return -infinity;
    if (value != "nan") wrong(key);
    return std::numeric_limits<double>::quiet_NaN();
  }
  // Calls f(object, key) for each key of the object in `key`.
  template <class Map, class F>
  void each(const json& object, const std::string& key, Map& map, F&& f) const {
    const json& inner = field(object, key);
    if (!inner.is_object()) wrong(key);
    for (const auto& [name, value] : inner.items()) map[name] = f(inner, name);
  }
  [[noreturn]] void wrong(const std::string& key) const {
    fail<IoError>("{}: field {} is missing or of the wrong type; the file is damaged.",
                  path.native(), key);
  }
};

TrainingState state_from_json(const json& object, const StateReader& read) {
  TrainingState state;
  state.step = read.number<int64_t>(object, "step");
  state.epoch = read.number<int64_t>(object, "epoch");
  state.batch_in_epoch = read.number<int64_t>(object, "batch_in_epoch");
  if (state.step < 0 || state.epoch < 0 || state.batch_in_epoch < 0) read.wrong("step");
  read.each(object, "counters", state.counters,
            [&](const json& o, const std::string& key) { return read.number<int64_t>(o, key); });
  read.each(object, "values", state.values,
            [&](const json& o, const std::string& key) { return read.real(o, key); });
  read.each(object, "texts", state.texts,
            [&](const json& o, const std::string& key) { return read.text(o, key); });
  read.each(object, "random", state.random, [&](const json& o, const std::string& key) {
    const json& rng = read.field(o, key);
    return RngState{read.number<uint64_t>(rng, "seed"), read.number<uint64_t>(rng, "stream"),
                    read.number<uint64_t>(rng, "offset")};
  });
  state.settings_hash = read.text(object, "settings_hash");
  return state;
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::string hex(uint32_t crc) {
  return fmt::format("{:08x}", crc);
}

// The checked contents of state.json: the object under "state", whose own checksum lies beside it.
json read_state(const fs::path& path) {
  const std::vector<std::byte> bytes = read_file(path, max_state_bytes);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto bounded = [&](int depth, json::parse_event_t, json&) {
    check<IoError>(depth <= max_depth, "{}: nested deeper than {}; the file is damaged.",
                   path.native(), max_depth);
    return true;
  };
  json whole;
  std::string crc;
  try {
    whole = json::parse(text, bounded);
    crc = hex(crc32(bytes_of(whole.at("state").dump())));
  } catch (const json::exception&) {
    fail<IoError>("{}: not the JSON of a checkpoint; the file is damaged.", path.native());
  }
  const std::string stored = StateReader{path}.text(whole, "crc32");
  check<IoError>(stored == crc, "{}: CRC-32 is {}, {} is stored; the file is damaged.",
                 path.native(), crc, stored);
  return whole["state"];
}

// ---- The tensors --------------------------------------------------------------------------------

// Writes one file of tensors.  Returns what state.json must say about it.
json write_tensors(const fs::path& path, std::span<const NamedTensor> tensors) {
  SafetensorsWriter writer(Metadata{{"format", "pt"}});
  for (const NamedTensor& tensor : tensors) writer.add(tensor);
  OutputFile file(path);
  writer.write(file);
  file.finish();
  return {{"bytes", file.size()}, {"crc32", hex(file.crc32())}};
}

SafetensorsFile open_tensors(const fs::path& path, const json& expected, const StateReader& read) {
  const auto bytes = read.number<int64_t>(expected, "bytes");
  const std::string crc = read.text(expected, "crc32");
  {
    const InputFile file(path);
    check<IoError>(file.size() == bytes,
                   "{}: {} bytes, {} were saved; the file is damaged or of another checkpoint.",
                   path.native(), file.size(), bytes);
    const std::string found = hex(file.crc32());
    check<IoError>(found == crc,
                   "{}: CRC-32 is {}, {} was saved; the file is damaged or of another checkpoint.",
                   path.native(), found, crc);
  }
  return SafetensorsFile(path);
}

}  // namespace

SavedCheckpoint save_checkpoint(const fs::path& root, const CheckpointContents& contents,
                                int keep_last) {
  const int64_t step = contents.state.step;
  check(step >= 0 && keep_last >= 1,
        "checkpoint: step {} or number to keep {} is out of range; give at least 0 and 1.", step,
        keep_last);
  SavedCheckpoint saved{root / fmt::format("{}{:08}", prefix, step), {}};
  for (const Folder& folder : list_folders(root)) {
    if (folder.kind == Kind::temporary) tidy(saved.warnings, [&] { discard(root, folder); });
  }

  FolderCommit commit(saved.folder);
  json state = to_json(contents.state);
  state["files"] = {
      {model_file, write_tensors(commit.folder() / model_file, contents.model)},
      {optimizer_file, write_tensors(commit.folder() / optimizer_file, contents.optimizer)}};
  std::string text;
  try {
    const std::string crc = hex(crc32(bytes_of(state.dump())));
    text = json{{"crc32", crc}, {"state", std::move(state)}}.dump(2) + "\n";
  } catch (const json::exception&) {
    fail("checkpoint: a text of the training state is not UTF-8; rename it.");
  }
  check(static_cast<int64_t>(text.size()) <= max_state_bytes,
        "checkpoint: the training state takes {} bytes of JSON; keep at most {}.", text.size(),
        max_state_bytes);
  OutputFile file(commit.folder() / state_file);
  file.write(bytes_of(text));
  file.finish();
  commit.commit();

  int kept = 0;
  tidy(saved.warnings, [&] {
    for (const Folder& folder : list_folders(root)) {
      const bool keep = folder.kind == Kind::committed && (folder.step > step || kept < keep_last);
      kept += folder.kind == Kind::committed && folder.step <= step;
      if (!keep) tidy(saved.warnings, [&] { discard(root, folder); });
    }
  });
  return saved;
}

Checkpoint open_checkpoint(const fs::path& folder) {
  const fs::path path = folder / state_file;
  const StateReader read{path};
  const json object = read_state(path);
  const auto version = read.number<int64_t>(object, "format");
  check<IoError>(version == format_version,
                 "{}: format {} is not {}; use the version of crucible that wrote it.",
                 path.native(), version, format_version);
  TrainingState state = state_from_json(object, read);
  const json& files = read.field(object, "files");
  return {folder,
          std::move(state),
          open_tensors(folder / model_file, read.field(files, model_file), read),
          open_tensors(folder / optimizer_file, read.field(files, optimizer_file), read),
          {}};
}

std::optional<Checkpoint> open_newest_checkpoint(const fs::path& root) {
  std::vector<std::string> warnings;
  for (const Folder& folder : list_folders(root)) {
    if (folder.kind == Kind::temporary) continue;
    try {
      Checkpoint checkpoint = open_checkpoint(folder.path);
      check<IoError>(checkpoint.state.step == folder.step,
                     "{}: it holds step {}; the folder was renamed.", folder.path.native(),
                     checkpoint.state.step);
      for (std::string& warning : warnings) {
        warning += fmt::format(" Going back to {}.", folder.path.native());
      }
      checkpoint.warnings = std::move(warnings);
      return checkpoint;
    } catch (const IoError& error) {
      warnings.emplace_back(error.what());
    }
  }
  check<IoError>(
      warnings.empty(),
      "{}: none of {} checkpoints is whole, the newest because: {} Start anew elsewhere.",
      root.native(), warnings.size(), warnings.empty() ? "" : warnings.front());
  return std::nullopt;
}

}  // namespace crucible::models
