// The consumer's own core/tensor.h, which has nothing to do with crucible's.
#pragma once

namespace consumer {

struct Tensor {
  int rank;
};

int rank_of(const Tensor& tensor);

}  // namespace consumer
