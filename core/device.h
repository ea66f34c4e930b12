/// Where a tensor lives: the CPU, a numbered accelerator, or a simulated one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace crucible {

enum class DeviceType : uint8_t { cpu, cuda, plan, reference };

struct Device {
  DeviceType type = DeviceType::cpu;
  int index = 0;

  static constexpr Device cpu() { return {}; }
  static constexpr Device cuda(int index = 0) { return {DeviceType::cuda, index}; }
  /// GPU 0 if a backend for it can be loaded, else the CPU.
  static Device best();
  /// Parses "cpu", "cuda" (index 0) or "cuda:N"; also "plan" and "reference" where those exist.
  /// Throws    InvalidArgument for any other text or an index outside [0, 1024).
  static Device parse(std::string_view text);

  friend constexpr bool operator==(Device, Device) = default;
};

/// "cpu", "cuda:0", ...
std::string to_string(Device device);

}  // namespace crucible
