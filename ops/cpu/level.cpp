#include "ops/cpu/level.h"

#include <cstdlib>
#include <string_view>

#include "core/check.h"

namespace crucible::cpu {
namespace {

constexpr std::array<std::string_view, 3> names{"v2", "v3", "v4"};

Level highest() {
  if (has_level(Level::v4)) return Level::v4;
  return has_level(Level::v3) ? Level::v3 : Level::v2;
}

Level chosen() {
  const char* wanted = std::getenv("CRUCIBLE_CPU_LEVEL");
  if (!wanted || !*wanted) return highest();
  for (int i = 0; i < 3; ++i) {
    if (names[i] != wanted) continue;
    check(has_level(static_cast<Level>(i)),
          "CRUCIBLE_CPU_LEVEL: this machine lacks x86-64-{}; its highest level is {}, unset the "
          "variable to use it.",
          wanted, names[static_cast<int>(highest())]);
    return static_cast<Level>(i);
  }
  fail("CRUCIBLE_CPU_LEVEL: unknown level \"{}\"; use v2, v3 or v4.", wanted);
}

Level& current() {
  static Level value = chosen();
  return value;
}

}  // namespace

bool has_level(Level level) {
  __builtin_cpu_init();
  const bool v2 = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
  const bool v3 = v2 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  return level == Level::v4 ? v4 : level == Level::v3 ? v3 : v2;
}

Level level() {
  return current();
}

void use_level(Level level) {
  check(has_level(level), "use_level: this machine lacks x86-64-{}; ask has_level first.",
        names[static_cast<int>(level)]);
  current() = level;
}

}  // namespace crucible::cpu
