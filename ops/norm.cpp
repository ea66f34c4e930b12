#include "ops/norm.h"

#include "core/storage.h"
#include "ops/op.h"

namespace crucible {
namespace {

const OpInfo batch_norm_op{"batch_norm"};
const OpInfo layer_norm_op{"layer_norm"};

void check_channels(const OpInfo& op, const Tensor& x, const Tensor& t, std::string_view name) {
  check_defined(op, t, name);
  const int64_t channels = x.size(-1);
  check(t.shape() == Shape{channels} && t.is_contiguous(),
        "{}: {} is {}, x is {}; it must be [{}].", op.name, name, to_string(t.shape()),
        to_string(x.shape()), channels);
  check(t.dtype() == statistics_dtype(x.dtype()) && t.device() == x.device(),
        "{}: {} is {} on {}; for {} data on {} it must be {}.", op.name, name, name_of(t.dtype()),
        to_string(t.device()), name_of(x.dtype()), to_string(x.device()),
        name_of(statistics_dtype(x.dtype())));
}

// x [..., C] as [R, C].
Tensor rows_of(const Tensor& x) {
  const int64_t channels = x.size(-1);
  return reshape_data(x, {channels ? x.numel() / channels : 0, channels});
}

}  // namespace

Tensor batch_norm(const Tensor& input, const Tensor& gamma, const Tensor& beta,
                  const Tensor& running_mean, const Tensor& running_var,
                  const BatchNormOptions& options, const Tensor& residual_input) {
  const Tensor x = prepare(batch_norm_op, input);
  check(x.rank() >= 1, "batch_norm: x is 0-d; its last axis must be the channels.");
  check_channels(batch_norm_op, x, gamma, "gamma");
  check_channels(batch_norm_op, x, beta, "beta");
  check_channels(batch_norm_op, x, running_mean, "running_mean");
  check_channels(batch_norm_op, x, running_var, "running_var");
  const bool has_residual = residual_input.defined();
  const Tensor residual =
      has_residual ? prepare(batch_norm_op, residual_input, "residual") : Tensor();
  if (has_residual) {
    check_same_kind(batch_norm_op, x, residual);
    check(residual.shape() == x.shape(), "batch_norm: residual is {}, x is {}; they must be equal.",
          to_string(residual.shape()), to_string(x.shape()));
  }
  const Tensor rows = rows_of(x);
  check(!options.training || rows.size(0) >= 2 || x.size(-1) == 0,
        "batch_norm: {} value a channel in x {}; training needs at least two.", rows.size(0),
        to_string(x.shape()));

  const Tensor mean = empty_like(gamma), rstd = empty_like(gamma), y = empty_like(x);
  run(prim::BatchNorm{.x = rows,
                      .gamma = gamma,
                      .beta = beta,
                      .running_mean = running_mean,
                      .running_var = running_var,
                      .residual = has_residual ? rows_of(residual) : prim::none,
                      .relu = options.relu,
                      .training = options.training,
                      .momentum = options.momentum,
                      .eps = options.eps,
                      .mean = mean,
                      .rstd = rstd,
                      .y = rows_of(y)});
  if (options.training) {
    running_mean.storage()->bump_version();
    running_var.storage()->bump_version();
  }
  const bool keep_y = options.relu && has_residual;
  return record(
      batch_norm_op, y, {x, gamma, beta, residual},
      [relu = options.relu, training = options.training, x = save(rows),
       y = save(keep_y ? rows_of(y) : prim::none), gamma = save(gamma), beta = save(beta),
       mean = save(mean), rstd = save(rstd),
       shape = x.shape()](const Tensor& dy, const Needs& needs) -> Gradients {
        Gradients d(4);
        for (int i = 0; i < 3; ++i) {
          d[i] = needs[i] ? needs.destination(i)
                 : i == 0 ? empty_like(dy)
                          : empty_like(gamma.get());
        }
        if (needs[3]) d[3] = relu ? needs.destination(3) : dy;
        run(prim::BatchNormBackward{.x = x.get(),
                                    .y = y.get(),
                                    .gamma = gamma.get(),
                                    .beta = beta.get(),
                                    .mean = mean.get(),
                                    .rstd = rstd.get(),
                                    .relu = relu,
                                    .training = training,
                                    .dy = rows_of(dy),
                                    .dx = rows_of(d[0]),
                                    .dresidual = needs[3] && relu ? rows_of(d[3]) : prim::none,
                                    .dgamma = d[1],
                                    .dbeta = d[2]});
        return d;
      });
}

Tensor layer_norm(const Tensor& input, const Tensor& gamma, const Tensor& beta, double eps) {
  const Tensor x = prepare(layer_norm_op, input);
  check(x.rank() >= 1 && x.size(-1) > 0, "layer_norm: x is {}; its last axis must not be empty.",
        to_string(x.shape()));
  check_channels(layer_norm_op, x, gamma, "gamma");
  check_channels(layer_norm_op, x, beta, "beta");
  const Tensor rows = rows_of(x);
  const DType statistics = statistics_dtype(x.dtype());
  const Tensor mean = Tensor::empty({rows.size(0)}, statistics, x.device());
  const Tensor rstd = empty_like(mean), y = empty_like(x);
  run(prim::LayerNorm{.x = rows,
                      .gamma = gamma,
                      .beta = beta,
                      .eps = eps,
                      .mean = mean,
                      .rstd = rstd,
                      .y = rows_of(y)});
  return record(layer_norm_op, y, {x, gamma, beta},
                [x = save(rows), gamma = save(gamma), mean = save(mean), rstd = save(rstd)](
                    const Tensor& dy, const Needs& needs) -> Gradients {
                  Gradients d(3);
                  for (int i = 0; i < 3; ++i) {
                    d[i] = needs[i] ? needs.destination(i)
                           : i == 0 ? empty_like(dy)
                                    : empty_like(gamma.get());
                  }
                  run(prim::LayerNormBackward{.x = x.get(),
                                              .gamma = gamma.get(),
                                              .mean = mean.get(),
                                              .rstd = rstd.get(),
                                              .dy = rows_of(dy),
                                              .dx = rows_of(d[0]),
                                              .dgamma = d[1],
                                              .dbeta = d[2]});
                  return d;
                });
}

}  // namespace crucible
