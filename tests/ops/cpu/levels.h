/// The instruction set levels that this machine can run, as test parameters.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ops/cpu/level.h"

namespace crucible::cpu {

inline std::vector<Level> levels_here() {
  std::vector<Level> levels;
  for (const Level level : {Level::v2, Level::v3, Level::v4}) {
    if (has_level(level)) levels.push_back(level);
  }
  return levels;
}

inline std::string level_name(const testing::TestParamInfo<Level>& info) {
  return std::string{'V', static_cast<char>('2' + static_cast<int>(info.param))};
}

/// Runs primitives at `level` until the end of the scope.
class LevelScope {
 public:
  explicit LevelScope(Level level) : before_(cpu::level()) { use_level(level); }
  ~LevelScope() { use_level(before_); }
  LevelScope(const LevelScope&) = delete;
  LevelScope& operator=(const LevelScope&) = delete;

 private:
  Level before_;
};

}  // namespace crucible::cpu
