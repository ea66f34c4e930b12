#include "tests/reference/reference_backend.h"
#include "tests/reference/values.h"

namespace crucible::reference {

void ReferenceBackend::kernel(const prim::Fill& p) {
  write(p.y, std::vector<Real>(p.y.numel(), p.value));
}

void ReferenceBackend::kernel(const prim::Copy& p) {
  if (p.x.dtype() == DType::i64 && p.y.dtype() == DType::i64) {
    return write_integers(p.y, read_integers(p.x));  // a double holds 53 bits only
  }
  write(p.y, read(p.x));
}

}  // namespace crucible::reference
