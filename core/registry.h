/// Which devices exist, and how a backend makes itself known.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/backend.h"
#include "core/device.h"

namespace crucible {

/// Makes the backend of device `index`, or throws DeviceError saying why there is none.
using BackendFactory = std::function<std::unique_ptr<Backend>(int index)>;

/// Registers a kind of device.  The last registration of a kind wins; existing backends stay.
void register_backend(DeviceType type, BackendFactory factory);

/// While alive, `decorator` receives every primitive that the backends of this process are given;
/// it calls `next(primitive)` to have it run.  One at a time; used for traces and tests.
class RunObserver {
 public:
  using Next = std::function<void(const Primitive&)>;
  using Function = std::function<void(const Primitive&, const Next& next)>;
  explicit RunObserver(Function function);
  ~RunObserver();
  RunObserver(const RunObserver&) = delete;
  RunObserver& operator=(const RunObserver&) = delete;
};

}  // namespace crucible
