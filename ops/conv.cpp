#include "ops/conv.h"

#include "ops/op.h"
#include "ops/window.h"

namespace crucible {
namespace {

const OpInfo conv2d_op{"conv2d", Autocast::narrow};

}  // namespace

Tensor conv2d(const Tensor& input, const Tensor& weight, const Tensor& bias_input,
              const ConvOptions& options) {
  const Tensor x = prepare(conv2d_op, input);
  const Tensor w = prepare(conv2d_op, weight, "weight");
  const Tensor bias = autocast(conv2d_op, bias_input);
  check_same_kind(conv2d_op, x, w);
  check(x.rank() == 4 && w.rank() == 4,
        "conv2d: x is {}, weight is {}; x must be [N, H, W, C], weight [O, Kh, Kw, C / groups].",
        to_string(x.shape()), to_string(w.shape()));
  const int64_t groups = options.groups, out = w.size(0), in = x.size(3);
  check(
      groups >= 1 && in % groups == 0 && out % groups == 0 && w.size(3) == in / groups,
      "conv2d: {} input channels, {} output channels and weight {} do not fit {} groups; channels "
      "must be multiples of groups, weight's last axis their quotient.",
      in, out, to_string(w.shape()), groups);
  if (bias.defined()) {
    check_same_kind(conv2d_op, x, bias);
    check(bias.shape() == Shape{out}, "conv2d: bias is {}; it must be [{}].",
          to_string(bias.shape()), out);
  }
  const Window window{{w.size(1), w.size(2)},
                      {options.stride.height, options.stride.width},
                      {options.padding.height, options.padding.width},
                      {options.dilation.height, options.dilation.width}};
  const auto [height, width] = window_output(conv2d_op, window, x.shape());
  const Tensor y = Tensor::empty({x.size(0), height, width, out}, x.dtype(), x.device());
  run(prim::Convolution{.x = x, .w = w, .bias = bias, .window = window, .groups = groups, .y = y});

  return record(conv2d_op, y, {x, w, bias},
                [window, groups, x = save(x), w = save(w)](const Tensor& dy,
                                                           const Needs& needs) -> Gradients {
                  Gradients d(3);
                  if (needs[1]) {
                    d[1] = needs.destination(1);
                    run(prim::ConvolutionFilterGradient{
                        .x = x.get(), .dy = dy, .window = window, .groups = groups, .dw = d[1]});
                  }
                  if (needs[2]) {
                    d[2] = needs.destination(2);
                    const int64_t out = dy.size(3);
                    run(prim::BiasActivationBackward{
                        .activation = Activation::none,
                        .dy = reshape_data(dy, {out ? dy.numel() / out : 0, out}),
                        .db = d[2]});
                  }
                  if (needs[0]) {
                    d[0] = needs.destination(0);
                    run(prim::ConvolutionDataGradient{
                        .dy = dy, .w = w.get(), .window = window, .groups = groups, .dx = d[0]});
                  }
                  return d;
                });
}

}  // namespace crucible
