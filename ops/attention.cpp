#include "ops/attention.h"

#include <cmath>

#include "ops/op.h"

namespace crucible {
namespace {

const OpInfo attention_op{"attention", Autocast::narrow};
const OpInfo attention_packed_op{"attention_packed", Autocast::narrow};

// q, k or v of a packed [B, T, 3 H D] tensor as a view [B, T, H, D].
Tensor part(const Tensor& qkv, int which, int64_t heads) {
  const int64_t batch = qkv.size(0), time = qkv.size(1), width = qkv.size(2) / 3;
  const int64_t depth = width / heads;
  return qkv.as_strided({batch, time, heads, depth}, {time * 3 * width, 3 * width, depth, 1},
                        which * width);
}

// The last axis contiguous, as the primitive needs it.
Tensor with_dense_rows(const Tensor& x) {
  return x.size(-1) <= 1 || x.stride(3) == 1 ? x.detach() : contiguous_data(x);
}

// The mask as [B, H, T, S] with stride 0 where it is broadcast; undefined stays undefined.
Tensor expand_mask(const OpInfo& op, const Tensor& mask, const Shape& scores) {
  if (!mask.defined()) return {};
  check(mask.dtype() == DType::boolean, "{}: the mask holds {}; it must be bool.", op.name,
        name_of(mask.dtype()));
  check(broadcast_shapes(op.name, mask.shape(), scores) == scores,
        "{}: mask {} does not broadcast to [B, H, T, S] = {}.", op.name, to_string(mask.shape()),
        to_string(scores));
  return expand_data(mask, scores);
}

struct Forward {
  Tensor o, lse, mask;
  double scale;
};

Forward forward(const OpInfo& op, const Tensor& q, const Tensor& k, const Tensor& v,
                const AttentionOptions& options) {
  const int64_t batch = q.size(0), time = q.size(1), heads = q.size(2), depth = q.size(3);
  Forward f;
  f.scale = options.scale.value_or(depth > 0 ? 1.0 / std::sqrt(static_cast<double>(depth)) : 1.0);
  f.mask = expand_mask(op, options.mask, {batch, heads, time, k.size(1)});
  f.o = Tensor::empty({batch, time, heads, depth}, q.dtype(), q.device());
  f.lse = Tensor::empty({batch, heads, time}, statistics_dtype(q.dtype()), q.device());
  run(prim::Attention{.q = q,
                      .k = k,
                      .v = v,
                      .mask = f.mask,
                      .causal = options.causal,
                      .scale = f.scale,
                      .lse = f.lse,
                      .o = f.o});
  return f;
}

}  // namespace

Tensor attention(const Tensor& q_given, const Tensor& k_given, const Tensor& v_given,
                 const AttentionOptions& options) {
  for (const Tensor* t : {&q_given, &k_given, &v_given}) {
    check_defined(attention_op, *t, "an argument");
  }
  const Tensor q_in = autocast(attention_op, q_given), k_in = autocast(attention_op, k_given),
               v_in = autocast(attention_op, v_given);
  for (const Tensor* t : {&q_in, &k_in, &v_in}) {
    check_same_kind(attention_op, q_in, *t);
    check(is_floating(t->dtype()) && t->rank() == 4,
          "attention: {} {} given; q, k and v must be floating [B, T, H, D].", name_of(t->dtype()),
          to_string(t->shape()));
  }
  check(
      k_in.shape() == v_in.shape() && k_in.shape() == q_in.shape().with(1, k_in.size(1)),
      "attention: q is {}, k {}, v {}; k and v must be equal and match q but for the second axis.",
      to_string(q_in.shape()), to_string(k_in.shape()), to_string(v_in.shape()));
  const Tensor q = with_dense_rows(q_in), k = with_dense_rows(k_in), v = with_dense_rows(v_in);
  const Forward f = forward(attention_op, q, k, v, options);
  return record(
      attention_op, f.o, {q_in, k_in, v_in},
      [causal = options.causal, scale = f.scale, q = save(q), k = save(k), v = save(v),
       mask = save(f.mask), o = save(f.o), lse = save(f.lse)](const Tensor& dy) -> Gradients {
        const Tensor dq = Tensor::empty(q.get().shape(), dy.dtype(), dy.device());
        const Tensor dk = Tensor::empty(k.get().shape(), dy.dtype(), dy.device());
        const Tensor dv = empty_like(dk);
        run(prim::AttentionBackward{.q = q.get(),
                                    .k = k.get(),
                                    .v = v.get(),
                                    .mask = mask.get(),
                                    .causal = causal,
                                    .scale = scale,
                                    .o = o.get(),
                                    .lse = lse.get(),
                                    .doutput = dy,
                                    .dq = dq,
                                    .dk = dk,
                                    .dv = dv});
        return {dq, dk, dv};
      });
}

Tensor attention_packed(const Tensor& input, int64_t heads, const AttentionOptions& options) {
  const Tensor qkv = prepare(attention_packed_op, input, "qkv");
  check(qkv.rank() == 3 && heads >= 1 && qkv.size(2) % (3 * heads) == 0,
        "attention_packed: qkv is {} for {} heads; it must be [B, T, 3 heads D].",
        to_string(qkv.shape()), heads);
  const int64_t batch = qkv.size(0), time = qkv.size(1), width = qkv.size(2) / 3;
  const Forward f = forward(attention_packed_op, part(qkv, 0, heads), part(qkv, 1, heads),
                            part(qkv, 2, heads), options);
  return record(
      attention_packed_op, reshape_data(f.o, {batch, time, width}), {qkv},
      [causal = options.causal, scale = f.scale, heads, qkv = save(qkv), mask = save(f.mask),
       o = save(f.o), lse = save(f.lse)](const Tensor& dy, const Needs& needs) -> Gradients {
        const Tensor d = needs.destination(0);
        run(prim::AttentionBackward{.q = part(qkv.get(), 0, heads),
                                    .k = part(qkv.get(), 1, heads),
                                    .v = part(qkv.get(), 2, heads),
                                    .mask = mask.get(),
                                    .causal = causal,
                                    .scale = scale,
                                    .o = o.get(),
                                    .lse = lse.get(),
                                    .doutput = reshape_data(dy, o.get().shape()),
                                    .dq = part(d, 0, heads),
                                    .dk = part(d, 1, heads),
                                    .dv = part(d, 2, heads)});
        return {d};
      });
}

}  // namespace crucible
