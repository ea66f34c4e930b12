// Cross-entropy: one pass of the cache for the log-sum-exp of a row forward, one back.  The losses
// of rows are summed in double, in order.
#include <vector>

#include "core/check.h"
#include "ops/cpu/cpu_backend.h"
#include "ops/cpu/level.h"
#include "ops/cpu/level/softmax.h"
#include "ops/cpu/parallel.h"

namespace crucible::cpu {
namespace {

void check_labels(const Tensor& labels, int64_t classes, int64_t ignore_index) {
  const int64_t* label = labels.data<int64_t>();
  for (int64_t r = 0; r < labels.numel(); ++r) {
    check(label[r] == ignore_index || (label[r] >= 0 && label[r] < classes),
          "cross_entropy: label {} at row {} is outside [0, {}); check the class count or set "
          "ignore_index.",
          label[r], r, classes);
  }
}

template <class T>
void cross_entropy(const prim::CrossEntropy& p) {
  using A = Accumulator<T>;
  const int64_t rows = p.logits.size(0), c = p.logits.size(1);
  const auto& table = at_level(v2::softmax, v3::softmax, v4::softmax).of<T>();
  const int64_t* labels = p.labels.data<int64_t>();
  const T* logits = p.logits.data<T>();
  std::vector<double> losses(rows, 0.0);
  parallel_for(rows, costly_grain / std::max<int64_t>(c, 1), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      double sum = 0.0;
      const T* x = logits + r * c;
      const double lse = table.log_sum_exp(x, c, p.smoothing != 0.0 ? &sum : nullptr);
      p.lse.data<A>()[r] = static_cast<A>(lse);
      if (labels[r] == p.ignore_index) continue;
      const double hit = lse - static_cast<double>(A(x[labels[r]]));
      losses[r] = p.smoothing == 0.0 ? hit
                                     : (1.0 - p.smoothing) * hit +
                                           p.smoothing * (lse - sum / static_cast<double>(c));
    }
  });
  double loss = 0.0;
  int64_t count = 0;
  for (int64_t r = 0; r < rows; ++r) {
    loss += losses[r];
    count += labels[r] != p.ignore_index;
  }
  *p.loss.data<A>() = static_cast<A>(loss);
  *p.count.data<A>() = static_cast<A>(count);
}

template <class T>
void cross_entropy_backward(const prim::CrossEntropyBackward& p) {
  using A = Accumulator<T>;
  const int64_t rows = p.logits.size(0), c = p.logits.size(1);
  const auto& table = at_level(v2::softmax, v3::softmax, v4::softmax).of<T>();
  const int64_t* labels = p.labels.data<int64_t>();
  const A scale = *p.scale.data<A>();
  const A shift = static_cast<A>(p.smoothing / static_cast<double>(c));
  const A target = static_cast<A>(1.0 - p.smoothing);
  parallel_for(rows, costly_grain / std::max<int64_t>(c, 1), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const T* x = p.logits.data<T>() + r * c;
      T* dx = p.dlogits.data<T>() + r * c;
      const int64_t label = labels[r];
      if (label == p.ignore_index) {
        std::fill_n(dx, c, T(0.0f));
        continue;
      }
      const A lse = p.lse.data<A>()[r], at_label = A(x[label]);  // dlogits may be logits
      table.shifted_exp(x, lse, shift, scale, dx, c);
      dx[label] = T(scale * ((scalar::exp(at_label - lse) - target) - shift));
    }
  });
}

}  // namespace

void CpuBackend::kernel(const prim::CrossEntropy& p) {
  check_labels(p.labels, p.logits.size(1), p.ignore_index);
  visit_dtype(p.logits.dtype(), Floats{}, [&]<class T>() { cross_entropy<T>(p); });
}

void CpuBackend::kernel(const prim::CrossEntropyBackward& p) {
  check_labels(p.labels, p.logits.size(1), p.ignore_index);
  visit_dtype(p.logits.dtype(), Floats{}, [&]<class T>() { cross_entropy_backward<T>(p); });
}

void CpuBackend::kernel(const prim::CountCorrect& p) {
  visit_dtype(p.logits.dtype(), Floats{}, [&]<class T>() {
    using A = Accumulator<T>;
    const int64_t rows = p.logits.size(0), c = p.logits.size(1);
    const int64_t* labels = p.labels.data<int64_t>();
    int64_t correct = 0;
    parallel_for(rows, cheap_grain / std::max<int64_t>(c, 1), [&](int64_t begin, int64_t end) {
      int64_t here = 0;
      for (int64_t r = begin; r < end; ++r) {
        if (labels[r] == p.ignore_index || c == 0) continue;
        const T* x = p.logits.data<T>() + r * c;
        int64_t best = 0;
        A largest = x[0];
        for (int64_t j = 1; j < c && largest == largest; ++j) {
          const A v = x[j];
          if (v > largest || v != v) {
            largest = v;
            best = j;
          }
        }
        here += best == labels[r];
      }
#pragma omp atomic
      correct += here;
    });
    *p.correct.data<int64_t>() = correct;
  });
}

}  // namespace crucible::cpu
