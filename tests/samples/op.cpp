#include "tests/samples/op.h"

namespace crucible::testing {

const OpSamples& op_samples() {
  static const OpSamples samples = [] {
    OpSamples s;
    add_attention_samples(s);
    add_cast_samples(s);
    add_conv_samples(s);
    add_dropout_samples(s);
    add_elementwise_samples(s);
    add_embedding_samples(s);
    add_join_samples(s);
    add_loss_samples(s);
    add_matmul_samples(s);
    add_norm_samples(s);
    add_pool_samples(s);
    add_reduce_samples(s);
    add_softmax_samples(s);
    add_view_samples(s);
    return s;
  }();
  return samples;
}

}  // namespace crucible::testing
