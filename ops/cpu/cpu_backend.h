/// The CPU backend: one `kernel` overload per primitive, each defined in the file of its family.
#pragma once

#include "core/backend.h"

namespace crucible::cpu {

/// Host memory, aligned to 256 bytes; large blocks ask for huge pages.
class HostMemory final : public MemorySource {
 public:
  void* allocate(int64_t bytes) override;
  void release(void* block, int64_t bytes) override;
  void fill(void* block, int64_t bytes, uint8_t pattern) override;
};

class CpuBackend final : public Backend {
 public:
  CpuBackend();

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
  void kernel(const prim::BiasActivationBackward& p);  // matmul_epilogue.cpp
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
  // random.cpp
  void kernel(const prim::Random& p);
  // optimizer.cpp
  void kernel(const prim::SgdStep& p);
  void kernel(const prim::AdamWStep& p);

  // For what is computed in f32 only: a copy, or an uninitialised twin, of `x` in f32 workspace.
  // matmul.cpp
  Tensor widened(const Tensor& x);
  Tensor wide_output(const Tensor& x);

  // conv.cpp
  void filter_gradient_by_product(const prim::ConvolutionFilterGradient& p);

  HostMemory memory_;
  Allocator allocator_;
};

}  // namespace crucible::cpu
