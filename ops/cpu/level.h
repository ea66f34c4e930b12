/// Which instruction set the kernels in ops/cpu/level/ run on.
///
/// Those files are compiled three times, for x86-64-v2 (SSE4.2), -v3 (AVX2, FMA) and -v4 (AVX-512),
/// into the namespaces v2, v3 and v4; each family exports one table of function pointers.  They
/// hold no standard containers and no shared inline function that is not forced inline: the linker
/// keeps one body of a weak symbol, which could be the one for AVX-512.
#pragma once

#include <array>

namespace crucible::cpu {

enum class Level { v2, v3, v4 };

/// The highest level of this machine, or the one that the environment variable CRUCIBLE_CPU_LEVEL
/// (v2, v3, v4) names.
/// Throws    InvalidArgument if that is no level or the machine lacks it.
Level level();

/// Whether this machine can run `level`.
bool has_level(Level level);

/// Makes later primitives run at `level`; for tests.  Not while a primitive runs.
void use_level(Level level);

/// The table of the current level.
template <class Kernels>
const Kernels& at_level(const Kernels& v2, const Kernels& v3, const Kernels& v4) {
  const std::array<const Kernels*, 3> tables{&v2, &v3, &v4};
  return *tables[static_cast<int>(level())];
}

}  // namespace crucible::cpu
