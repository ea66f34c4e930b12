/// Sample calls of every primitive, from which the parity suites are generated.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/backend.h"
#include "tests/samples/maker.h"

namespace crucible::testing {

inline const std::vector<DType> floats{DType::f32, DType::bf16, DType::f16, DType::f64};
inline const std::vector<DType> full_precision{DType::f32, DType::f64};

struct PrimitiveSample {
  std::string name;                 ///< Of the sample: "OddRowsStrided".
  std::function<void(Maker&)> run;  ///< Makes arguments, names outputs, runs the primitive.
  std::vector<DType> dtypes = floats;
};

/// At least six samples of primitive P.  Each family defines those of its primitives in
/// tests/samples/<family>.cpp; a primitive without samples does not link.
template <class P>
struct Samples {
  static std::vector<PrimitiveSample> all();
};

}  // namespace crucible::testing
