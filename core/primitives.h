/// Every operation that a backend implements, as data: arguments by name, documented with shapes.
///
/// Conventions for all of them, unless a field says otherwise:
/// - Tensors are contiguous, on one device, and of one floating dtype (f64, f32, f16, bf16);
/// outputs
///   are allocated by the op, overwritten completely, and do not overlap inputs.
/// - Sums are kept in f32 (f64 for f64).  "Statistics" (means, reciprocal deviations, log-sum-exps,
///   gains, biases and running values of the normalisations) are f32 for 16-bit data, else of the
///   data's dtype: `statistics_dtype`.
/// - Any size may be zero.  An output with elements is written even if the inputs are empty.
/// - A tensor marked optional may be undefined.
/// `core/cost.h` gives the FLOPs and bytes of each.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <variant>

#include "core/elementwise.h"
#include "core/rng.h"
#include "core/tensor.h"

namespace crucible {

/// The dtype that statistics of `dtype` data are kept in.
constexpr DType statistics_dtype(DType dtype) {
  return dtype == DType::f64 ? DType::f64 : DType::f32;
}

enum class ReduceOp : uint8_t { sum, mean, prod, max, min, logsumexp, norm };
enum class CompareOp : uint8_t { eq, ne, lt, le, gt, ge };
/// What is fused behind a matrix product or convolution.
enum class Activation : uint8_t { none, relu, gelu_tanh };
enum class PoolOp : uint8_t { max, average };

/// Geometry of a 2-d sliding window, in pixels: [height, width].
struct Window {
  std::array<int64_t, 2> kernel{1, 1};
  std::array<int64_t, 2> stride{1, 1};
  std::array<int64_t, 2> padding{0, 0};  ///< On both sides.
  std::array<int64_t, 2> dilation{1, 1};

  friend bool operator==(const Window&, const Window&) = default;
};

namespace prim {

/// An undefined tensor, the default of optional arguments.
extern const Tensor none;

// ---- Memory -----------------------------------------------------------------------------------

/// y = value, converted.  y: any dtype and strides.
struct Fill {
  static constexpr std::string_view name = "fill";
  double value;
  const Tensor& y;
  const Tensor& output() const { return y; }
};

/// y = x, converted.  x, y: same shape, any dtypes, any strides (x may have stride 0).
/// Floating to integer truncates toward zero; out-of-range values saturate, NaN becomes 0.
struct Copy {
  static constexpr std::string_view name = "copy";
  const Tensor& x;
  const Tensor& y;
  const Tensor& output() const { return y; }
};

// ---- Elementwise (functors in core/elementwise.h) -----------------------------------------------

/// y = op(x).  x, y: same shape.  y may be x.
struct Unary {
  static constexpr std::string_view name = "unary";
  UnaryOp op;
  UnaryParams params = {};
  const Tensor& x;
  const Tensor& y;
  const Tensor& output() const { return y; }
};

/// dx = dy * op'(x).  x and y are given only where `backward_uses(op)` says so.  dx may be dy.
struct UnaryBackward {
  static constexpr std::string_view name = "unary_backward";
  UnaryOp op;
  UnaryParams params = {};
  const Tensor& x = none;  ///< Optional.
  const Tensor& y = none;  ///< Optional.
  const Tensor& dy;
  const Tensor& dx;
  const Tensor& output() const { return dx; }
};

/// y = op(a, b).  a, b: the shape of y, any strides (0 where they are broadcast).  Floating, or all
/// i64 for add, sub, mul, maximum, minimum.  y: contiguous; may be a or b where those are
/// contiguous.
struct Binary {
  static constexpr std::string_view name = "binary";
  BinaryOp op;
  const Tensor& a;
  const Tensor& b;
  const Tensor& y;
  const Tensor& output() const { return y; }
};

/// d = dy * d op(a, b) / d a (or b).  a, b as in Binary; dy, d: full shape, contiguous; d may be
/// dy. The op sums d over broadcast axes afterwards.
struct BinaryBackward {
  static constexpr std::string_view name = "binary_backward";
  enum class Of : uint8_t { a, b };
  BinaryOp op;
  Of of;
  const Tensor& a;
  const Tensor& b;
  const Tensor& dy;
  const Tensor& d;
  const Tensor& output() const { return d; }
};

/// y = a op b.  a, b: the shape of y, one dtype (any), any strides.  y: bool.
struct Compare {
  static constexpr std::string_view name = "compare";
  CompareOp op;
  const Tensor& a;
  const Tensor& b;
  const Tensor& y;
  const Tensor& output() const { return y; }
};

/// y = condition ? a : b.  All of the shape of y, any strides; condition bool; a, b, y one dtype.
struct Where {
  static constexpr std::string_view name = "where";
  const Tensor& condition;
  const Tensor& a;
  const Tensor& b;
  const Tensor& y;
  const Tensor& output() const { return y; }
};

// ---- Reductions ---------------------------------------------------------------------------------

/// y = op over the middle axis.  x [outer, n, inner] -> y [outer, inner].
/// n = 0: sum 0, mean NaN, prod 1, max -inf, min +inf, logsumexp -inf, norm 0.  NaN propagates.
struct Reduce {
  static constexpr std::string_view name = "reduce";
  ReduceOp op;
  const Tensor& x;
  const Tensor& y;
  const Tensor& output() const { return y; }
};

/// dx for Reduce.  x, dx [outer, n, inner]; y, dy [outer, inner].
/// sum: dy.  mean: dy / n.  prod: dy times the product of the others (exact with zeros).
/// max, min: dy shared equally among ties.  logsumexp: dy * exp(x - y), 0 where y is -inf.
/// norm: dy * x / y, 0 where y is 0.
struct ReduceBackward {
  static constexpr std::string_view name = "reduce_backward";
  ReduceOp op;
  const Tensor& x = none;  ///< Optional for sum and mean.
  const Tensor& y = none;  ///< Optional for sum, mean and prod.
  const Tensor& dy;
  const Tensor& dx;
  const Tensor& output() const { return dx; }
};

/// Index of the first largest element (a NaN counts as largest).  x [outer, n, inner], floating,
/// n > 0 -> y [outer, inner], i64.
struct ArgMax {
  static constexpr std::string_view name = "argmax";
  const Tensor& x;
  const Tensor& y;
  const Tensor& output() const { return y; }
};

// ---- Matrix products ----------------------------------------------------------------------------

/// y = activation(op(a) op(b) + bias), op(t) = t or its transpose.
/// a [Ba, M, K] ([Ba, K, M] if transpose_a), b [Bb, K, N] ([Bb, N, K] if transpose_b), y [B, M, N];
/// Ba and Bb are each B or 1.  K = 0 gives activation(bias).
struct Matmul {
  static constexpr std::string_view name = "matmul";
  const Tensor& a;
  const Tensor& b;
  bool transpose_a = false;
  bool transpose_b = false;
  const Tensor& bias = none;  ///< Optional, [N].
  Activation activation = Activation::none;
  const Tensor& pre_activation =
      none;  ///< Output; given exactly if activation is gelu_tanh: [B, M, N].
  const Tensor& y;
  const Tensor& output() const { return y; }
};

/// The gradient of bias and activation in one pass: dz = dy * activation'(.), db = column sums of
/// dz. rows [R, N].  saved: y for relu, the pre-activation for gelu_tanh, unused for none. dz may
/// be dy; for Activation::none it is not given and only db is computed.
struct BiasActivationBackward {
  static constexpr std::string_view name = "bias_activation_backward";
  Activation activation;
  const Tensor& saved = none;  ///< Optional, [R, N].
  const Tensor& dy;            ///< [R, N]
  const Tensor& dz = none;     ///< Optional, [R, N].
  const Tensor& db = none;     ///< Optional, [N].
  const Tensor& output() const { return db.defined() ? db : dz; }
};

// ---- Convolution --------------------------------------------------------------------------------

/// y = x * w (+ bias).  x [N, H, W, C], w [O, Kh, Kw, C / groups], bias [O], y [N, Ho, Wo, O].
struct Convolution {
  static constexpr std::string_view name = "convolution";
  const Tensor& x;
  const Tensor& w;
  const Tensor& bias = none;  ///< Optional.
  Window window;              ///< kernel repeats w's sizes.
  int64_t groups = 1;
  const Tensor& y;
  const Tensor& output() const { return y; }
};

/// dx of Convolution; pixels never read get exactly 0.
struct ConvolutionDataGradient {
  static constexpr std::string_view name = "convolution_data_gradient";
  const Tensor& dy;
  const Tensor& w;
  Window window;
  int64_t groups = 1;
  const Tensor& dx;
  const Tensor& output() const { return dx; }
};

/// dw of Convolution (the bias gradient is BiasActivationBackward).
struct ConvolutionFilterGradient {
  static constexpr std::string_view name = "convolution_filter_gradient";
  const Tensor& x;
  const Tensor& dy;
  Window window;
  int64_t groups = 1;
  const Tensor& dw;
  const Tensor& output() const { return dw; }
};

// ---- Normalisation ------------------------------------------------------------------------------

/// y = relu?(gamma * (x - mean) * rstd + beta + residual?), rows of channels: x, y, residual [R,
/// C]. Training: mean and (biased) variance over rows are computed, mean and rstd = 1 / sqrt(var +
/// eps) are written, and running = (1 - momentum) * running + momentum * (mean | unbiased var).
/// Otherwise mean and rstd are written from the running values, which stay unchanged.
/// gamma, beta, running_*, mean, rstd: [C], statistics dtype.
struct BatchNorm {
  static constexpr std::string_view name = "batch_norm";
  const Tensor& x;
  const Tensor& gamma;
  const Tensor& beta;
  const Tensor& running_mean;
  const Tensor& running_var;
  const Tensor& residual = none;  ///< Optional.
  bool relu = false;
  bool training = true;
  double momentum = 0.1;
  double eps = 1e-5;
  const Tensor& mean;
  const Tensor& rstd;
  const Tensor& y;
  const Tensor& output() const { return y; }
};

/// Gradients of BatchNorm.  With relu, dz = dy where y > 0 else 0; without, dz = dy.
/// dresidual = dz; dgamma = sum dz * xhat; dbeta = sum dz;
/// training: dx = gamma * rstd * (dz - mean(dz) - xhat * mean(dz * xhat)); else gamma * rstd * dz.
struct BatchNormBackward {
  static constexpr std::string_view name = "batch_norm_backward";
  const Tensor& x;
  const Tensor& y = none;  ///< Optional: given if relu and a residual was added.
  const Tensor& gamma;
  const Tensor& beta;
  const Tensor& mean;
  const Tensor& rstd;
  bool relu = false;
  bool training = true;
  const Tensor& dy;
  const Tensor& dx;
  const Tensor& dresidual = none;  ///< Optional.
  const Tensor& dgamma;
  const Tensor& dbeta;
  const Tensor& output() const { return dgamma; }
};

/// y = gamma * (x - mean) * rstd + beta per row.  x, y [R, C]; gamma, beta [C] and mean, rstd [R]
/// in the statistics dtype.
struct LayerNorm {
  static constexpr std::string_view name = "layer_norm";
  const Tensor& x;
  const Tensor& gamma;
  const Tensor& beta;
  double eps = 1e-5;
  const Tensor& mean;
  const Tensor& rstd;
  const Tensor& y;
  const Tensor& output() const { return y; }
};

/// dx = rstd * (g - mean(g) - xhat * mean(g * xhat)), g = dy * gamma; dgamma = sum dy * xhat;
/// dbeta = sum dy.
struct LayerNormBackward {
  static constexpr std::string_view name = "layer_norm_backward";
  const Tensor& x;
  const Tensor& gamma;
  const Tensor& mean;
  const Tensor& rstd;
  const Tensor& dy;
  const Tensor& dx;
  const Tensor& dgamma;
  const Tensor& dbeta;
  const Tensor& output() const { return dgamma; }
};

// ---- Pooling ------------------------------------------------------------------------------------

/// Max or average over a window.  x [N, H, W, C] -> y [N, Ho, Wo, C].  Padding counts as -inf for
/// max and is left out of the count for average.  NaN propagates through max.
struct Pool {
  static constexpr std::string_view name = "pool";
  PoolOp op;
  Window window;  ///< dilation 1
  const Tensor& x;
  const Tensor& y;
  const Tensor& output() const { return y; }
};

/// dx of Pool.  Max: dy goes to the first pixel (row-major) of the window that equals y.
struct PoolBackward {
  static constexpr std::string_view name = "pool_backward";
  PoolOp op;
  Window window;
  const Tensor& x = none;  ///< Optional for average.
  const Tensor& dy;
  const Tensor& dx;
  const Tensor& output() const { return dx; }
};

// ---- Softmax and loss ---------------------------------------------------------------------------

/// y = exp(x - lse) per row, or x - lse if log.  x, y [R, C].  y may be x.
/// A row whose largest element is +inf, or that holds NaN, becomes NaN; a row of -inf only becomes
/// 0 (softmax) or -inf (log).
struct Softmax {
  static constexpr std::string_view name = "softmax";
  bool log = false;
  const Tensor& x;
  const Tensor& y;
  const Tensor& output() const { return y; }
};

/// dx = y * (dy - sum(dy * y)); log: dx = dy - exp(y) * sum(dy).  All [R, C].  dx may be dy.
/// A row of -inf only gets 0.
struct SoftmaxBackward {
  static constexpr std::string_view name = "softmax_backward";
  bool log = false;
  const Tensor& y;
  const Tensor& dy;
  const Tensor& dx;
  const Tensor& output() const { return dx; }
};

/// Sum over rows of -sum_c q_c log softmax(logits)_c, q = (1 - smoothing) onehot + smoothing / C.
/// Rows whose label is ignore_index count nothing.  logits [R, C], labels [R] i64; loss 0-d, count
/// 0-d (the number of rows that counted), lse [R], all three in the statistics dtype.
/// Throws InvalidArgument naming row and value for a label outside [0, C).
struct CrossEntropy {
  static constexpr std::string_view name = "cross_entropy";
  const Tensor& logits;
  const Tensor& labels;
  int64_t ignore_index;
  double smoothing = 0.0;
  const Tensor& lse;
  const Tensor& count;
  const Tensor& loss;
  const Tensor& output() const { return loss; }
};

/// dlogits = scale * (softmax(logits) - q), 0 in ignored rows.  scale: 0-d, statistics dtype.
/// dlogits may be logits.
struct CrossEntropyBackward {
  static constexpr std::string_view name = "cross_entropy_backward";
  const Tensor& logits;
  const Tensor& labels;
  int64_t ignore_index;
  double smoothing = 0.0;
  const Tensor& lse;
  const Tensor& scale;
  const Tensor& dlogits;
  const Tensor& output() const { return dlogits; }
};

/// correct = number of rows whose first largest logit is at the label.  Ignored rows count nothing.
/// logits [R, C], labels [R] i64, correct 0-d i64.
struct CountCorrect {
  static constexpr std::string_view name = "count_correct";
  const Tensor& logits;
  const Tensor& labels;
  int64_t ignore_index;
  const Tensor& correct;
  const Tensor& output() const { return correct; }
};

// ---- Embedding, attention -----------------------------------------------------------------------

/// y[i] = table[ids[i]].  table [V, C], ids [R] i64, y [R, C].
/// Throws InvalidArgument naming position and value for an id outside [0, V).
struct Embedding {
  static constexpr std::string_view name = "embedding";
  const Tensor& table;
  const Tensor& ids;
  const Tensor& y;
  const Tensor& output() const { return y; }
};

/// dtable[v] = sum of dy[i] over ids[i] == v, in ascending i.
struct EmbeddingBackward {
  static constexpr std::string_view name = "embedding_backward";
  const Tensor& ids;
  const Tensor& dy;
  const Tensor& dtable;
  const Tensor& output() const { return dtable; }
};

/// o = softmax(scale * q k^T + mask) v per batch and head, without storing the T x S matrix.
/// q, o [B, T, H, D], k, v [B, S, H, D]: any strides with the last axis contiguous.
/// causal: row t sees columns s <= t + S - T.  mask: bool [B, H, T, S], any strides (0 where it is
/// broadcast), false hides.  A row that sees nothing gives 0.
/// lse [B, H, T], statistics dtype: the log-sum-exp of each row, -inf where it sees nothing.
struct Attention {
  static constexpr std::string_view name = "attention";
  const Tensor& q;
  const Tensor& k;
  const Tensor& v;
  const Tensor& mask = none;  ///< Optional.
  bool causal = false;
  double scale;
  const Tensor& lse;
  const Tensor& o;
  const Tensor& output() const { return o; }
};

/// Gradients of Attention; strides as there.  dq, dk, dv are overwritten.
struct AttentionBackward {
  static constexpr std::string_view name = "attention_backward";
  const Tensor& q;
  const Tensor& k;
  const Tensor& v;
  const Tensor& mask = none;  ///< Optional.
  bool causal = false;
  double scale;
  const Tensor& o;
  const Tensor& lse;
  const Tensor& doutput;
  const Tensor& dq;
  const Tensor& dk;
  const Tensor& dv;
  const Tensor& output() const { return dq.numel() > 0 ? dq : dk; }
};

// ---- Random numbers -----------------------------------------------------------------------------

/// y = x / (1 - p) where the uniform number of the element is >= p, else 0.  Element i takes word
/// i % 4 of Philox block offset + i / 4.  Backward is the same primitive on dy.  y may be x.
struct Dropout {
  static constexpr std::string_view name = "dropout";
  double p;
  RngState rng;
  const Tensor& x;
  const Tensor& y;
  const Tensor& output() const { return y; }
};

/// y = uniform in [a, b), or normal with mean a and deviation b.  Element i takes word i % 4 of
/// Philox block offset + i / 4; normal: Box-Muller of blocks' word pairs (0, 1) and (2, 3), cosine
/// first, then sine, u1 = ((word >> 8) + 1) 2^-24.
struct Random {
  static constexpr std::string_view name = "random";
  enum class Kind : uint8_t { uniform, normal };
  Kind kind;
  double a;
  double b;
  RngState rng;
  const Tensor& y;
  const Tensor& output() const { return y; }
};

// ---- Optimizers ---------------------------------------------------------------------------------

/// One update of a flat range.  All tensors [n], f32 or f64.  g = grad * grad_scale (+ weight_decay
/// * param unless decoupled); v = momentum * v + g (v = g at the first step); u = nesterov ? g +
/// momentum * v : v; param = param * (1 - lr * weight_decay if decoupled) - lr * u. Source
/// Sutskever et al. 2013, with the convention that lr multiplies the velocity.
struct SgdStep {
  static constexpr std::string_view name = "sgd_step";
  double lr;
  double momentum = 0.0;
  double weight_decay = 0.0;
  bool nesterov = false;
  bool decoupled = false;
  bool first_step = false;
  const Tensor& grad_scale = none;  ///< Optional, 0-d of the same dtype.
  const Tensor& grad;
  const Tensor& velocity = none;  ///< Optional: given if momentum is not 0.
  const Tensor& param;
  const Tensor& output() const { return param; }
};

/// One AdamW update of a flat range.  All tensors [n], f32 or f64.  step counts from 1.
/// m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2; param *= 1 - lr * weight_decay;
/// param -= lr * (m / (1 - b1^step)) / (sqrt(v / (1 - b2^step)) + eps).
/// Source    Loshchilov and Hutter 2019, arXiv:1711.05101.
struct AdamWStep {
  static constexpr std::string_view name = "adamw_step";
  double lr;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.0;
  int64_t step;
  const Tensor& grad_scale = none;  ///< Optional, 0-d of the same dtype.
  const Tensor& grad;
  const Tensor& m;
  const Tensor& v;
  const Tensor& param;
  const Tensor& output() const { return param; }
};

/// y = sum of squares of x, kept in double; y: 0-d f64.  Non-finite elements make it non-finite.
struct SumSquares {
  static constexpr std::string_view name = "sum_squares";
  const Tensor& x;
  const Tensor& y;
  const Tensor& output() const { return y; }
};

}  // namespace prim

using Primitive =
    std::variant<prim::Fill, prim::Copy, prim::Unary, prim::UnaryBackward, prim::Binary,
                 prim::BinaryBackward, prim::Compare, prim::Where, prim::Reduce,
                 prim::ReduceBackward, prim::ArgMax, prim::Matmul, prim::BiasActivationBackward,
                 prim::Convolution, prim::ConvolutionDataGradient, prim::ConvolutionFilterGradient,
                 prim::BatchNorm, prim::BatchNormBackward, prim::LayerNorm, prim::LayerNormBackward,
                 prim::Pool, prim::PoolBackward, prim::Softmax, prim::SoftmaxBackward,
                 prim::CrossEntropy, prim::CrossEntropyBackward, prim::CountCorrect,
                 prim::Embedding, prim::EmbeddingBackward, prim::Attention, prim::AttentionBackward,
                 prim::Dropout, prim::Random, prim::SgdStep, prim::AdamWStep, prim::SumSquares>;

}  // namespace crucible
