// Kernels that are not written yet.  Each line goes when its family file defines it.
#include "core/check.h"
#include "ops/cpu/cpu_backend.h"

namespace crucible::cpu {

// matmul.cpp
void CpuBackend::kernel(const prim::BiasActivationBackward&) {
  fail<DeviceError>("cpu: BiasActivationBackward is not written.");
}
// norm.cpp
void CpuBackend::kernel(const prim::BatchNorm&) {
  fail<DeviceError>("cpu: BatchNorm is not written.");
}
void CpuBackend::kernel(const prim::BatchNormBackward&) {
  fail<DeviceError>("cpu: BatchNormBackward is not written.");
}
void CpuBackend::kernel(const prim::LayerNorm&) {
  fail<DeviceError>("cpu: LayerNorm is not written.");
}
void CpuBackend::kernel(const prim::LayerNormBackward&) {
  fail<DeviceError>("cpu: LayerNormBackward is not written.");
}
// softmax.cpp
void CpuBackend::kernel(const prim::Softmax&) {
  fail<DeviceError>("cpu: Softmax is not written.");
}
void CpuBackend::kernel(const prim::SoftmaxBackward&) {
  fail<DeviceError>("cpu: SoftmaxBackward is not written.");
}
// loss.cpp
void CpuBackend::kernel(const prim::CrossEntropy&) {
  fail<DeviceError>("cpu: CrossEntropy is not written.");
}
void CpuBackend::kernel(const prim::CrossEntropyBackward&) {
  fail<DeviceError>("cpu: CrossEntropyBackward is not written.");
}
void CpuBackend::kernel(const prim::CountCorrect&) {
  fail<DeviceError>("cpu: CountCorrect is not written.");
}
// embedding.cpp
void CpuBackend::kernel(const prim::Embedding&) {
  fail<DeviceError>("cpu: Embedding is not written.");
}
void CpuBackend::kernel(const prim::EmbeddingBackward&) {
  fail<DeviceError>("cpu: EmbeddingBackward is not written.");
}
// dropout.cpp
void CpuBackend::kernel(const prim::Dropout&) {
  fail<DeviceError>("cpu: Dropout is not written.");
}
// random.cpp
void CpuBackend::kernel(const prim::Random&) {
  fail<DeviceError>("cpu: Random is not written.");
}
// optimizer.cpp
void CpuBackend::kernel(const prim::SgdStep&) {
  fail<DeviceError>("cpu: SgdStep is not written.");
}
void CpuBackend::kernel(const prim::AdamWStep&) {
  fail<DeviceError>("cpu: AdamWStep is not written.");
}

}  // namespace crucible::cpu
