#include "core/tensor.h"

namespace consumer {

int rank_of(const Tensor& tensor) {
  return tensor.rank;
}

}  // namespace consumer
