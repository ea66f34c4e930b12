#include "models/weights.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <unordered_set>

#include "core/check.h"
#include "models/layout.h"

namespace crucible::models {

namespace {

using Convertible = DTypes<float, Float16, BFloat16>;

bool convertible(DType dtype) {
  return visit_dtype(dtype, Convertible{}, []<class T>() {});
}

std::vector<std::byte> converted(std::span<const std::byte> from, DType from_dtype,
                                 DType to_dtype) {
  const auto n = static_cast<int64_t>(from.size()) / size_of(from_dtype);
  std::vector<std::byte> to(static_cast<size_t>(n * size_of(to_dtype)));
  visit_dtype(from_dtype, Convertible{}, [&]<class From>() {
    visit_dtype(to_dtype, Convertible{}, [&]<class To>() {
      const auto* x = reinterpret_cast<const From*>(from.data());
      auto* y = reinterpret_cast<To*>(to.data());
      for (int64_t i = 0; i < n; ++i) y[i] = To(static_cast<float>(x[i]));
    });
  });
  return to;
}

// What goes where, decided from names and shapes alone.
struct Plan {
  struct Copy {
    const NamedTensor* target;
    const TensorEntry* entry;
  };
  std::vector<Copy> copies;
  std::vector<std::string> missing, unexpected, mismatched;
};

Plan make_plan(const SafetensorsFile& file, std::span<const NamedTensor> targets,
               const LoadOptions& options) {
  Plan plan;
  std::unordered_set<std::string_view> used;
  for (const NamedTensor& target : targets) {
    const Tensor& t = target.tensor;
    check(t.defined() && t.is_contiguous(),
          "load: tensor {} is undefined or strided; give a "
          "contiguous one.",
          target.name);
    const TensorEntry* entry = file.find(options.file_prefix + target.name);
    if (entry == nullptr) {
      plan.missing.push_back(target.name);
      continue;
    }
    check(used.insert(entry->name).second, "load: tensor {} is asked for twice; list it once.",
          target.name);
    const Shape wanted = exported_shape(t.shape(), target.layout);
    const bool same_dtype =
        entry->dtype == t.dtype() ||
        (options.convert_dtype && convertible(entry->dtype) && convertible(t.dtype()));
    if (entry->shape == wanted && same_dtype) {
      plan.copies.push_back({&target, entry});
    } else {
      plan.mismatched.push_back(fmt::format("{}: file {} {}, model {} {}", target.name,
                                            safetensors_name(entry->dtype), to_string(entry->shape),
                                            safetensors_name(t.dtype()), to_string(wanted)));
    }
  }
  for (const TensorEntry& entry : file.tensors()) {
    if (used.contains(entry.name) || (options.may_skip && options.may_skip(entry.name))) continue;
    plan.unexpected.push_back(entry.name);
  }
  return plan;
}

// "2 missing (a, b)"; at most three names.
std::string counted(const std::vector<std::string>& names, std::string_view what) {
  const auto first = std::span(names).first(std::min<size_t>(names.size(), 3));
  return fmt::format("{} {}{}{}{}", names.size(), what, names.empty() ? "" : " (",
                     fmt::join(first, "; "),
                     names.empty()      ? ""
                     : names.size() > 3 ? "; ...)"
                                        : ")");
}

void refuse(const SafetensorsFile& file, const Plan& plan, std::string_view remedy) {
  fail("{}: the weights do not match the model: {}, {}, {}, {} match; {}.",
       file.file().path().native(), counted(plan.missing, "missing"),
       counted(plan.unexpected, "unexpected"), counted(plan.mismatched, "mismatched"),
       plan.copies.size(), remedy);
}

}  // namespace

LoadReport load_tensors(const SafetensorsFile& file, std::span<const NamedTensor> targets,
                        const LoadOptions& options) {
  const Plan plan = make_plan(file, targets, options);
  const bool complete = plan.missing.empty() && plan.unexpected.empty() && plan.mismatched.empty();
  if (!complete && !options.partial) {
    refuse(file, plan, "check the model's settings, or load only what fits with --partial");
  }
  if (plan.copies.empty() && !targets.empty()) {
    refuse(file, plan, "nothing fits, check that it is the right file");
  }

  LoadReport report;
  report.unread = plan.unexpected;
  std::unordered_set<const NamedTensor*> loaded;
  std::vector<std::byte> bytes;
  for (const auto& [target, entry] : plan.copies) {
    bytes.resize(static_cast<size_t>(entry->nbytes()));
    file.read(*entry, bytes);
    if (entry->dtype != target->tensor.dtype()) {
      bytes = converted(bytes, entry->dtype, target->tensor.dtype());
    }
    import_bytes(bytes, target->layout, target->tensor);
    loaded.insert(target);
    ++report.loaded;
  }
  for (const NamedTensor& target : targets) {
    if (!loaded.contains(&target)) report.untouched.push_back(target.name);
  }
  return report;
}

LoadReport load_weights(const std::filesystem::path& path, std::span<const NamedTensor> targets,
                        const LoadOptions& options) {
  return load_tensors(SafetensorsFile(path), targets, options);
}

void save_weights(const std::filesystem::path& path, std::span<const NamedTensor> tensors) {
  SafetensorsWriter writer(Metadata{{"format", "pt"}});
  for (const NamedTensor& tensor : tensors) writer.add(tensor);
  write_file_atomically(path, [&](OutputFile& out) { writer.write(out); });
}

}  // namespace crucible::models
