/// Records what ran: one row a primitive, with its shapes, cost and time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/cost.h"
#include "core/device.h"
#include "core/dtype.h"
#include "core/shape.h"

namespace crucible {

struct TraceRow {
  std::string name;  ///< Of the primitive.
  Shape shape;       ///< Of its output.
  DType dtype = DType::f32;
  Cost cost;
  double seconds = 0.0;  ///< Device time; the device is synchronised around each primitive.
};

/// While alive, every primitive that runs adds a row.  One observer at a time.
class Trace {
 public:
  Trace();
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  const std::vector<TraceRow>& rows() const;
  /// Sum over the rows whose FLOPs are matrix work.
  double matrix_flops() const;
  /// One line per name, largest time first: calls, ms, share, GFLOP/s, GB/s.
  std::string table() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace crucible
