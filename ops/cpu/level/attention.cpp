// Attention of one head: blocks of query_block rows against blocks of key_block columns, softmax
// with a running maximum, everything else products of small matrices.  Operands are copied once a
// head to dense f32 (f64 for f64), which also gathers strided rows: 1 / t of the arithmetic.
//
// Under a causal mask the products leave out, by tiles of registers, what no row of a tile sees.
// Sums of one element run over the key blocks in order, so results do not depend on threads.
#include "ops/cpu/level/attention.h"

#include <limits>

#include "core/scalar_math.h"
#include "ops/cpu/level/vector.h"

namespace crucible::cpu::CRUCIBLE_LEVEL {
namespace {

// ---- Products of small matrices -----------------------------------------------------------------

// A tile of results is `tile_rows` rows of two vectors: the accumulators fill three quarters of the
// registers.
constexpr int tile_rows = vector_bytes == 64 ? 12 : 6;

// c [R, V vectors] = (or +=) sum over p of a[., p] b[p, .].
template <class A, int R, int V>
[[gnu::noinline]] void tile(int64_t k, const A* a, int64_t a_row, int64_t a_column, const A* b,
                            int64_t b_row, A* c, int64_t c_row, bool add) {
  Vector<A> sum[R][V];
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) {
      sum[r][v] = add ? load(c + r * c_row + v * lanes<A>) : Vector<A>{};
    }
  }
  for (int64_t p = 0; p < k; ++p, a += a_column, b += b_row) {
    Vector<A> row[V];
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) row[v] = load(b + v * lanes<A>);
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) {
      const Vector<A> factor = splat<A>(a[r * a_row]);
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) sum[r][v] += factor * row[v];
    }
  }
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) store(c + r * c_row + v * lanes<A>, sum[r][v]);
  }
}

template <class A>
struct Left {  // element (i, p) is data[i * row + p * column]
  const A* data;
  int64_t row, column;
};
template <class A>
struct Right {  // element (p, j) is data[j / panel * panel_step + p * row + j % panel]
  const A* data;
  int64_t row, panel_step;
};
template <class A>
struct Result {
  A* data;
  int64_t row;
  bool add;
};
// What a tile of rows covers: p in [begin, end), columns below `columns`, a multiple of 16.
struct Extent {
  int64_t begin, end, columns;
};

template <class A, int R>
void row_tile(int64_t i, const Extent& e, const Left<A>& a, const Right<A>& b, const Result<A>& c) {
  const int64_t k = e.end > e.begin ? e.end - e.begin : 0;
  const A* left = a.data + i * a.row + e.begin * a.column;
  A* result = c.data + i * c.row;
  int64_t j = 0;
  const auto right = [&] {
    return b.data + j / attention_panel * b.panel_step + j % attention_panel + e.begin * b.row;
  };
  for (; j + 2 * lanes<A> <= e.columns; j += 2 * lanes<A>) {
    tile<A, R, 2>(k, left, a.row, a.column, right(), b.row, result + j, c.row, c.add);
  }
  if (j < e.columns) {
    tile<A, R, 1>(k, left, a.row, a.column, right(), b.row, result + j, c.row, c.add);
  }
}

// c [m, .] = (or +=) a b, where extent(i, rows) says what rows [i, i + rows) need.
template <class A, class F>
[[gnu::always_inline]] inline void product(int64_t m, const Left<A>& a, const Right<A>& b,
                                           const Result<A>& c, F&& extent) {
  int64_t i = 0;
  for (; i + tile_rows <= m; i += tile_rows) {
    row_tile<A, tile_rows>(i, extent(i, tile_rows), a, b, c);
  }
  if constexpr (tile_rows > 8) {
    if (i + 8 <= m) row_tile<A, 8>(i, extent(i, 8), a, b, c), i += 8;
  }
  if (i + 4 <= m) row_tile<A, 4>(i, extent(i, 4), a, b, c), i += 4;
  if (i + 2 <= m) row_tile<A, 2>(i, extent(i, 2), a, b, c), i += 2;
  if (i < m) row_tile<A, 1>(i, extent(i, 1), a, b, c);
}

// ---- Copies
// ---------------------------------------------------------------------------------------

// y [rows, padded] = factor * x [rows, d], zeros behind d.
template <class T, class A>
void gather(const T* x, int64_t x_row, int64_t rows, int64_t d, A factor, A* y, int64_t padded) {
  for (int64_t r = 0; r < rows; ++r, x += x_row, y += padded) {
    int64_t i = 0;
    for (; i + lanes<A> <= d; i += lanes<A>) store(y + i, load(x + i) * factor);
    for (; i < d; ++i) y[i] = static_cast<A>(x[i]) * factor;
    for (; i < padded; ++i) y[i] = A(0);
  }
}

// y [rows, d] = factor * x, x [rows, padded].
template <class T, class A>
void scatter(const A* x, int64_t padded, int64_t rows, int64_t d, A factor, T* y, int64_t y_row) {
  for (int64_t r = 0; r < rows; ++r, x += padded, y += y_row) {
    int64_t i = 0;
    for (; i + lanes<A> <= d; i += lanes<A>) store(y + i, load(x + i) * factor);
    for (; i < d; ++i) y[i] = T(x[i] * factor);
  }
}

typedef float Four __attribute__((vector_size(16)));
typedef int FourIndices __attribute__((vector_size(16)));

// panels [ceil(s / panel)][d][panel] = x^T, x [s, padded].  Columns behind s are 0.
template <class A>
void transpose(const A* x, int64_t padded, int64_t s, int64_t d, A* panels) {
  for (int64_t s0 = 0; s0 < s; s0 += attention_panel, panels += d * attention_panel) {
    const int64_t count = s - s0 < attention_panel ? s - s0 : attention_panel;
    const A* from = x + s0 * padded;
    int64_t j = 0;
    if constexpr (sizeof(A) == 4) {  // 4 x 4 at a time; rows are padded, so reading past d is fine
      for (; j + 4 <= count; j += 4) {
        for (int64_t i = 0; i < d; i += 4) {
          const A* p = from + j * padded + i;
          const Four r0 = load_bits<Four>(p), r1 = load_bits<Four>(p + padded),
                     r2 = load_bits<Four>(p + 2 * padded), r3 = load_bits<Four>(p + 3 * padded);
          const Four a = __builtin_shuffle(r0, r1, FourIndices{0, 4, 1, 5}),
                     b = __builtin_shuffle(r2, r3, FourIndices{0, 4, 1, 5}),
                     c = __builtin_shuffle(r0, r1, FourIndices{2, 6, 3, 7}),
                     e = __builtin_shuffle(r2, r3, FourIndices{2, 6, 3, 7});
          A* to = panels + i * attention_panel + j;
          store_bits(to, __builtin_shuffle(a, b, FourIndices{0, 1, 4, 5}));
          if (i + 1 < d)
            store_bits(to + attention_panel, __builtin_shuffle(a, b, FourIndices{2, 3, 6, 7}));
          if (i + 2 < d)
            store_bits(to + 2 * attention_panel, __builtin_shuffle(c, e, FourIndices{0, 1, 4, 5}));
          if (i + 3 < d)
            store_bits(to + 3 * attention_panel, __builtin_shuffle(c, e, FourIndices{2, 3, 6, 7}));
        }
      }
    }
    for (; j < attention_panel; ++j) {
      for (int64_t i = 0; i < d; ++i) {
        panels[i * attention_panel + j] = j < count ? from[j * padded + i] : A(0);
      }
    }
  }
}

// ---- One block of scores
// ----------------------------------------------------------------------------

template <class A>
constexpr A hidden = -std::numeric_limits<A>::infinity();

int64_t clamp(int64_t x, int64_t low, int64_t high) {
  return x < low ? low : x > high ? high : x;
}

// Rows [t0, t0 + rows) against columns [s0, s0 + columns).
template <class T>
struct Block {
  const AttentionHead<T>& head;
  int64_t t0, rows, s0, columns;

  // Columns that row r sees by causality: a prefix.
  int64_t visible(int64_t r) const {
    return head.causal ? clamp(t0 + r + head.s - head.t + 1 - s0, 0, columns) : columns;
  }
  bool empty() const { return visible(rows - 1) == 0; }

  // Extents of the products whose result, whose inner axis, or whose transposed rows are columns.
  auto to_scores(int64_t d) const {
    return [this, d](int64_t i, int64_t count) {
      return Extent{0, d, (visible(i + count - 1) + 15) / 16 * 16};
    };
  }
  auto from_scores(int64_t padded) const {
    return [this, padded](int64_t i, int64_t count) {
      return Extent{0, visible(i + count - 1), padded};
    };
  }
  auto from_transposed(int64_t padded) const {
    return [this, padded](int64_t i, int64_t) {
      const int64_t first =
          head.causal ? clamp(i - (t0 + head.s - head.t + 1 - s0) + 1, 0, rows) : 0;
      return Extent{first, rows, padded};
    };
  }
};

// Hides the columns of row r that the mask hides or that lie in the vector behind the visible ones.
// Returns the visible columns rounded up to whole vectors.
template <class T, class A>
int64_t hide(const Block<T>& block, int64_t r, A* score) {
  const int64_t visible = block.visible(r);
  const auto& h = block.head;
  if (h.mask) {
    const bool* mask = h.mask + (block.t0 + r) * h.mask_row + block.s0 * h.mask_column;
    for (int64_t j = 0; j < visible; ++j) {
      if (!mask[j * h.mask_column]) score[j] = hidden<A>;
    }
  }
  const int64_t whole = (visible + lanes<A> - 1) / lanes<A> * lanes<A>;
  for (int64_t j = visible; j < whole; ++j) score[j] = hidden<A>;
  return whole;
}

// Zeros that the products may read behind the columns of a row.
template <class A>
void clear(A* score, int64_t from, int64_t visible) {
  const int64_t end = visible + tile_rows < score_row ? visible + tile_rows : score_row;
  for (int64_t j = from; j < end; ++j) score[j] = A(0);
}

template <class A>
A largest(const A* x, int64_t n) {
  A m = hidden<A>;
#pragma omp simd reduction(max : m)
  for (int64_t i = 0; i < n; ++i) m = x[i] > m ? x[i] : m;
  return m;
}

// x = exp(x - shift); returns the sum.
template <class A>
A exponentials(A* x, int64_t n, A shift) {
  A sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) {
    const A e = scalar::exp(x[i] - shift);
    x[i] = e;
    sum += e;
  }
  return sum;
}

template <class A>
void scale_row(A* x, int64_t n, A factor) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) x[i] *= factor;
}

int64_t smaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}

// ---- Forward
// ------------------------------------------------------------------------------------------

template <class T>
void forward(const AttentionHead<T>& h) {
  using A = Accumulator<T>;
  const int64_t d = h.d, dp = attention_padded(d), sp = attention_padded(h.s);
  A* const values = h.scratch;             // [s, dp]
  A* const keys = values + sp * dp;        // panels of k^T
  A* const rows_of_k = keys + sp * dp;     // [s, dp], only to transpose
  A* const q = rows_of_k + sp * dp;        // [query_block, dp], scaled
  A* const o = q + query_block * dp;       // [query_block, dp]
  A* const scores = o + query_block * dp;  // [query_block, score_row]
  A* const maximum = scores + query_block * score_row;
  A* const total = maximum + query_block;
  gather(h.k, h.k_row, h.s, d, A(1), rows_of_k, dp);
  transpose(rows_of_k, dp, h.s, d, keys);
  gather(h.v, h.v_row, h.s, d, A(1), values, dp);

  for (int64_t t0 = 0; t0 < h.t; t0 += query_block) {
    const int64_t rows = smaller(query_block, h.t - t0);
    gather(h.q + t0 * h.q_row, h.q_row, rows, d, h.scale, q, dp);
    for (int64_t r = 0; r < rows; ++r) {
      maximum[r] = hidden<A>;
      total[r] = 0;
    }
    bool first = true;
    for (int64_t s0 = 0; s0 < h.s; s0 += key_block) {
      const Block<T> block{h, t0, rows, s0, smaller(key_block, h.s - s0)};
      if (block.empty()) break;
      product<A>(rows, {q, dp, 1}, {keys + s0 * d, attention_panel, d * attention_panel},
                 {scores, score_row, false}, block.to_scores(d));
      for (int64_t r = 0; r < rows; ++r) {
        A* score = scores + r * score_row;
        const int64_t whole = hide(block, r, score);
        const A here = largest(score, whole);
        const A m = here > maximum[r] ? here : maximum[r];
        if (m == hidden<A>) {  // nothing seen so far, or only NaN
          const A nothing = exponentials(score, whole, A(0));
          total[r] += nothing;
        } else {
          const A shrink = scalar::exp(maximum[r] - m);
          total[r] = total[r] * shrink + exponentials(score, whole, m);
          if (!first && shrink != A(1)) scale_row(o + r * dp, dp, shrink);
          maximum[r] = m;
        }
        clear(score, whole, block.visible(r));
      }
      product<A>(rows, {scores, score_row, 1}, {values + s0 * dp, dp, attention_panel},
                 {o, dp, !first}, block.from_scores(dp));
      first = false;
    }
    for (int64_t r = 0; r < rows; ++r) {
      A* to = o + r * dp;
      if (total[r] == A(0)) {
        for (int64_t i = 0; i < dp; ++i) to[i] = A(0);
        h.lse[t0 + r] = hidden<A>;
      } else {
        scale_row(to, dp, A(1) / total[r]);
        h.lse[t0 + r] = maximum[r] + scalar::log(total[r]);
      }
    }
    scatter(o, dp, rows, d, A(1), h.o + t0 * h.o_row, h.o_row);
  }
}

// ---- Backward
// -----------------------------------------------------------------------------------------

// With p = exp(scale q k^T - lse) and g = p * (do v^T - rowsum(do * o)):
// dv = p^T do, dq = scale g k, dk = g^T (scale q).
template <class T>
void backward(const AttentionHead<T>& h) {
  using A = Accumulator<T>;
  const int64_t d = h.d, dp = attention_padded(d), sp = attention_padded(h.s);
  A* const rows_of_k = h.scratch;            // [s, dp]
  A* const keys = rows_of_k + sp * dp;       // panels of k^T
  A* const values = keys + sp * dp;          // panels of v^T
  A* const dk = values + sp * dp;            // [s, dp]
  A* const dv = dk + sp * dp;                // [s, dp], first v itself
  A* const q = dv + sp * dp;                 // [query_block, dp], scaled
  A* const dout = q + query_block * dp;      // [query_block, dp]
  A* const dq = dout + query_block * dp;     // [query_block, dp]
  A* const o = dq + query_block * dp;        // [query_block, dp]
  A* const p = o + query_block * dp;         // [query_block, score_row]
  A* const g = p + query_block * score_row;  // [query_block, score_row]
  A* const delta = g + query_block * score_row;
  gather(h.k, h.k_row, h.s, d, A(1), rows_of_k, dp);
  transpose(rows_of_k, dp, h.s, d, keys);
  gather(h.v, h.v_row, h.s, d, A(1), dv, dp);
  transpose(dv, dp, h.s, d, values);
  for (int64_t i = 0; i < h.s * dp; ++i) dk[i] = dv[i] = A(0);

  for (int64_t t0 = 0; t0 < h.t; t0 += query_block) {
    const int64_t rows = smaller(query_block, h.t - t0);
    gather(h.q + t0 * h.q_row, h.q_row, rows, d, h.scale, q, dp);
    gather(h.doutput + t0 * h.doutput_row, h.doutput_row, rows, d, A(1), dout, dp);
    gather(h.o + t0 * h.o_row, h.o_row, rows, d, A(1), o, dp);
    for (int64_t r = 0; r < rows; ++r) {
      A sum = 0;
#pragma omp simd reduction(+ : sum)
      for (int64_t i = 0; i < dp; ++i) sum += dout[r * dp + i] * o[r * dp + i];
      delta[r] = sum;
    }
    bool first = true;
    for (int64_t s0 = 0; s0 < h.s; s0 += key_block) {
      const Block<T> block{h, t0, rows, s0, smaller(key_block, h.s - s0)};
      if (block.empty()) break;
      const Right<A> k_panels{keys + s0 * d, attention_panel, d * attention_panel};
      const Right<A> v_panels{values + s0 * d, attention_panel, d * attention_panel};
      product<A>(rows, {q, dp, 1}, k_panels, {p, score_row, false}, block.to_scores(d));
      product<A>(rows, {dout, dp, 1}, v_panels, {g, score_row, false}, block.to_scores(d));
      for (int64_t r = 0; r < rows; ++r) {
        A* const pr = p + r * score_row;
        A* const gr = g + r * score_row;
        const int64_t whole = hide(block, r, pr), visible = block.visible(r);
        const A lse = h.lse[t0 + r], center = delta[r];
        if (lse == hidden<A>) {
          clear(pr, 0, visible);
          clear(gr, 0, visible);
          continue;
        }
#pragma omp simd
        for (int64_t i = 0; i < whole; ++i) {
          const A e = scalar::exp(pr[i] - lse);
          pr[i] = e;
          gr[i] = e * (gr[i] - center);
        }
        clear(pr, whole, visible);
        clear(gr, whole, visible);
      }
      product<A>(block.columns, {p, 1, score_row}, {dout, dp, attention_panel},
                 {dv + s0 * dp, dp, true}, block.from_transposed(dp));
      product<A>(block.columns, {g, 1, score_row}, {q, dp, attention_panel},
                 {dk + s0 * dp, dp, true}, block.from_transposed(dp));
      product<A>(rows, {g, score_row, 1}, {rows_of_k + s0 * dp, dp, attention_panel},
                 {dq, dp, !first}, block.from_scores(dp));
      first = false;
    }
    if (first) {
      for (int64_t i = 0; i < rows * dp; ++i) dq[i] = A(0);
    }
    scatter(dq, dp, rows, d, h.scale, h.dq + t0 * h.dq_row, h.dq_row);
  }
  scatter(dk, dp, h.s, d, A(1), h.dk, h.dk_row);
  scatter(dv, dp, h.s, d, A(1), h.dv, h.dv_row);
}

template <class T>
constexpr AttentionOf<T> kernels{forward<T>, backward<T>};

}  // namespace

extern const AttentionKernels attention{kernels<double>, kernels<float>, kernels<Float16>,
                                        kernels<BFloat16>};

}  // namespace crucible::cpu::CRUCIBLE_LEVEL
