#include "core/registry.h"

#include <charconv>
#include <map>
#include <mutex>

#include "core/check.h"

namespace crucible {
namespace {

struct Registry {
  std::mutex mutex;
  std::map<DeviceType, BackendFactory> factories;
  std::map<std::pair<DeviceType, int>, std::unique_ptr<Backend>> backends;
};

// Leaked on purpose: tensors in static storage may outlive any destruction order.
Registry& registry() {
  static Registry* instance = new Registry;
  return *instance;
}

RunObserver::Function observer;

// Passes every primitive through the observer, if there is one.
class ObservedBackend final : public Backend {
 public:
  explicit ObservedBackend(std::unique_ptr<Backend> inner) : inner_(std::move(inner)) {}
  void run(const Primitive& primitive) override {
    if (!observer) [[likely]] {
      inner_->run(primitive);
    } else {
      observer(primitive, [this](const Primitive& p) { inner_->run(p); });
    }
  }
  Allocator& allocator() override { return inner_->allocator(); }
  void copy_to_host(void* to, const void* from, int64_t bytes) override {
    inner_->copy_to_host(to, from, bytes);
  }
  void copy_from_host(void* to, const void* from, int64_t bytes) override {
    inner_->copy_from_host(to, from, bytes);
  }
  void synchronize() override { inner_->synchronize(); }

 private:
  std::unique_ptr<Backend> inner_;
};

constexpr std::string_view type_names[] = {"cpu", "cuda", "plan", "reference"};

}  // namespace

void register_backend(DeviceType type, BackendFactory factory) {
  std::lock_guard lock(registry().mutex);
  registry().factories[type] = std::move(factory);
}

Backend& backend(Device device) {
  static Backend* cpu = nullptr;  // the common case, without a lock
  if (device == Device::cpu() && cpu) return *cpu;
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  auto& slot = r.backends[{device.type, device.index}];
  if (!slot) {
    const auto factory = r.factories.find(device.type);
    check<DeviceError>(factory != r.factories.end(),
                       "{} is not available: this build has no {} backend; use --device cpu.",
                       to_string(device), type_names[static_cast<int>(device.type)]);
    slot = std::make_unique<ObservedBackend>(factory->second(device.index));
  }
  if (device == Device::cpu()) cpu = slot.get();
  return *slot;
}

RunObserver::RunObserver(Function function) {
  check(!observer, "RunObserver: another observer is active; there can be one at a time.");
  observer = std::move(function);
}

RunObserver::~RunObserver() {
  observer = nullptr;
}

Device Device::best() {
  try {
    backend(Device::cuda(0));
    return Device::cuda(0);
  } catch (const DeviceError&) {
    return Device::cpu();
  }
}

Device Device::parse(std::string_view text) {
  for (int type = 0; type < 4; ++type) {
    const std::string_view name = type_names[type];
    if (text == name) return {static_cast<DeviceType>(type), 0};
    if (type == 0 || !text.starts_with(name) || !text.substr(name.size()).starts_with(':'))
      continue;
    const std::string_view digits = text.substr(name.size() + 1);
    int index = -1;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
    if (error == std::errc() && end == digits.data() + digits.size() && index >= 0 &&
        index < 1024) {
      return {static_cast<DeviceType>(type), index};
    }
  }
  fail("device: '{}' is not a device; write cpu, cuda or cuda:N with N from 0 to 1023.", text);
}

std::string to_string(Device device) {
  const std::string name(type_names[static_cast<int>(device.type)]);
  return device.type == DeviceType::cpu ? name : name + ":" + std::to_string(device.index);
}

}  // namespace crucible
