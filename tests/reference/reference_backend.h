/// The oracle: every primitive as plain loops in double precision, with formulas of its own.
///
/// It accepts every dtype: elements are read as double, computed in double, and rounded once when
/// they are written.  Linking the target `reference_backend` registers the device `reference`.
#pragma once

#include "core/backend.h"

namespace crucible::reference {

inline constexpr Device device{DeviceType::reference, 0};

class HeapMemory final : public MemorySource {
 public:
  void* allocate(int64_t bytes) override;
  void release(void* block, int64_t bytes) override;
  void fill(void* block, int64_t bytes, uint8_t pattern) override;
};

class ReferenceBackend final : public Backend {
 public:
  ReferenceBackend();

  void run(const Primitive& primitive) override;
  Allocator& allocator() override { return allocator_; }
  void copy_to_host(void* to, const void* from, int64_t bytes) override;
  void copy_from_host(void* to, const void* from, int64_t bytes) override;
  void synchronize() override {}

 private:
  // copy.cpp
  void kernel(const prim::Fill& p);
  void kernel(const prim::Copy& p);
  // elementwise.cpp
  void kernel(const prim::Unary& p);
  void kernel(const prim::UnaryBackward& p);
  void kernel(const prim::Binary& p);
  void kernel(const prim::BinaryBackward& p);
  void kernel(const prim::Compare& p);
  void kernel(const prim::Where& p);
  // reduce.cpp
  void kernel(const prim::Reduce& p);
  void kernel(const prim::ReduceBackward& p);
  void kernel(const prim::ArgMax& p);
  void kernel(const prim::SumSquares& p);
  // matmul.cpp
  void kernel(const prim::Matmul& p);
  void kernel(const prim::BiasActivationBackward& p);
  // conv.cpp
  void kernel(const prim::Convolution& p);
  void kernel(const prim::ConvolutionDataGradient& p);
  void kernel(const prim::ConvolutionFilterGradient& p);
  // norm.cpp
  void kernel(const prim::BatchNorm& p);
  void kernel(const prim::BatchNormBackward& p);
  void kernel(const prim::LayerNorm& p);
  void kernel(const prim::LayerNormBackward& p);
  // pool.cpp
  void kernel(const prim::Pool& p);
  void kernel(const prim::PoolBackward& p);
  // softmax.cpp
  void kernel(const prim::Softmax& p);
  void kernel(const prim::SoftmaxBackward& p);
  // loss.cpp
  void kernel(const prim::CrossEntropy& p);
  void kernel(const prim::CrossEntropyBackward& p);
  void kernel(const prim::CountCorrect& p);
  // embedding.cpp
  void kernel(const prim::Embedding& p);
  void kernel(const prim::EmbeddingBackward& p);
  // attention.cpp
  void kernel(const prim::Attention& p);
  void kernel(const prim::AttentionBackward& p);
  // dropout.cpp
  void kernel(const prim::Dropout& p);
  void kernel(const prim::Random& p);
  // optimizer.cpp
  void kernel(const prim::SgdStep& p);
  void kernel(const prim::AdamWStep& p);

  HeapMemory memory_;
  Allocator allocator_;
};

}  // namespace crucible::reference
