/// The one interface that every device implements: run a primitive, hold memory, move bytes.
#pragma once

#include <cstdint>

#include "core/allocator.h"
#include "core/device.h"
#include "core/primitives.h"

namespace crucible {

/// "A device is whatever runs the primitives."  Ops check arguments and allocate results; a backend
/// only fills memory and may assert what ops promised.
class Backend {
 public:
  virtual ~Backend() = default;

  /// Runs or enqueues one primitive.
  virtual void run(const Primitive& primitive) = 0;

  virtual Allocator& allocator() = 0;
  /// Copies between host memory and this device.  Both wait for work that touches the bytes.
  virtual void copy_to_host(void* to, const void* from, int64_t bytes) = 0;
  virtual void copy_from_host(void* to, const void* from, int64_t bytes) = 0;
  /// Waits for everything enqueued.
  virtual void synchronize() = 0;
};

/// The backend of a device; loads it when it is first named.
/// Throws    DeviceError saying what is missing if the device is not available.
Backend& backend(Device device);

/// Runs `p` on the device of its output.  A primitive with an empty output does nothing.
template <class P>
void run(const P& p) {
  const Tensor& y = p.output();
  if (y.numel() > 0) backend(y.device()).run(Primitive(p));
}

}  // namespace crucible
