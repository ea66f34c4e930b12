#include "tests/reference/activation.h"
#include "tests/reference/reference_backend.h"
#include "tests/reference/values.h"

namespace crucible::reference {

void ReferenceBackend::kernel(const prim::Matmul& p) {
  const int64_t batch = p.y.size(0), rows = p.y.size(1), columns = p.y.size(2);
  const int64_t inner = p.a.size(p.transpose_a ? 1 : 2);
  const std::vector<Real> a = read(p.a), b = read(p.b), bias = read(p.bias);
  std::vector<Real> y, pre;
  for (int64_t s = 0; s < batch; ++s) {
    const int64_t sa = p.a.size(0) == 1 ? 0 : s, sb = p.b.size(0) == 1 ? 0 : s;
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        Sum sum;
        for (int64_t k = 0; k < inner; ++k) {
          sum.add(
              a[p.transpose_a ? (sa * inner + k) * rows + i : (sa * rows + i) * inner + k] *
              b[p.transpose_b ? (sb * columns + j) * inner + k : (sb * inner + k) * columns + j]);
        }
        if (!bias.empty()) sum.add(bias[j]);
        const Real z = sum.total();
        pre.push_back(z);
        // A backend may apply GELU to the pre-activation that it stored.
        y.push_back(p.activation == Activation::gelu_tanh ? gelu_tanh(stored(z, p.y.dtype()))
                    : p.activation == Activation::relu && z.value <= 0.0
                        ? Real(0.0, std::max(0.0, z.value + z.error))
                        : z);
      }
    }
  }
  write(p.pre_activation, pre);
  write(p.y, y);
}

void ReferenceBackend::kernel(const prim::BiasActivationBackward& p) {
  const int64_t rows = p.dy.size(0), columns = p.dy.size(1);
  const std::vector<Real> saved = read(p.saved);
  std::vector<Real> dz = read(p.dy);
  std::vector<Sum> db(columns);
  for (int64_t i = 0; i < rows * columns; ++i) {
    if (p.activation == Activation::relu && saved[i].value <= 0.0) dz[i] = 0.0;
    if (p.activation == Activation::gelu_tanh) dz[i] = dz[i] * gelu_tanh_derivative(saved[i]);
    db[i % columns].add(p.activation == Activation::none ? dz[i] : stored(dz[i], p.dy.dtype()));
  }
  std::vector<Real> sums;
  for (const Sum& s : db) sums.push_back(s.total());
  write(p.dz, dz);
  write(p.db, sums);
}

}  // namespace crucible::reference
