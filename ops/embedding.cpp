#include "ops/embedding.h"

#include "ops/op.h"

namespace crucible {
namespace {

const OpInfo embedding_op{"embedding"};

}  // namespace

Tensor embedding(const Tensor& input, const Tensor& ids) {
  const Tensor table = prepare(embedding_op, input, "table");
  check_defined(embedding_op, ids, "ids");
  check(table.rank() == 2, "embedding: table is {}; it must be [V, C].", to_string(table.shape()));
  check(ids.dtype() == DType::i64 && ids.device() == table.device(),
        "embedding: ids are {} on {}; they must be i64 on {}.", name_of(ids.dtype()),
        to_string(ids.device()), to_string(table.device()));
  const int64_t width = table.size(1), rows = ids.numel();
  const Tensor flat = reshape_data(contiguous_data(ids), {rows});
  const Tensor y =
      Tensor::empty(ids.shape().insert(ids.rank(), width), table.dtype(), table.device());
  run(prim::Embedding{.table = table, .ids = flat, .y = reshape_data(y, {rows, width})});
  return record(embedding_op, y, {table},
                [rows, width, ids = save(flat)](const Tensor& dy, const Needs& needs) -> Gradients {
                  const Tensor d = needs.destination(0);
                  run(prim::EmbeddingBackward{
                      .ids = ids.get(), .dy = reshape_data(dy, {rows, width}), .dtable = d});
                  return {d};
                });
}

}  // namespace crucible
