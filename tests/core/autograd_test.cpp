#include "core/autograd.h"

#include <gmock/gmock.h>

#include "core/backend.h"
#include "core/error.h"
#include "core/registry.h"
#include "core/storage.h"
#include "ops/attention.h"
#include "ops/conv.h"
#include "ops/elementwise.h"
#include "ops/loss.h"
#include "ops/matmul.h"
#include "ops/norm.h"
#include "ops/pool.h"
#include "ops/reduce.h"
#include "ops/softmax.h"
#include "ops/view.h"
#include "tests/reference/reference_backend.h"

namespace crucible {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr Device device = reference::device;

Tensor values(const std::vector<double>& v, const Shape& shape) {
  return Tensor::from(v, shape, device);
}
Tensor leaf(const std::vector<double>& v, const Shape& shape) {
  return values(v, shape).set_requires_grad();
}

template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const InvalidArgument& e) {
    return e.what();
  }
  return "nothing was thrown";
}

const OpInfo probe_op{"probe"};

// ---- Graph -----------------------------------------------------------------------------------

TEST(Autograd, SumsTheGradientOfEveryUse) {
  const Tensor x = leaf({3}, {});
  const Tensor y = add(mul(x, x), x);  // x^2 + x
  y.backward();
  EXPECT_EQ(x.grad().item<double>(), 7.0);
}

TEST(Autograd, AccumulatesOverBackwardCalls) {
  const Tensor x = leaf({1, 2}, {2});
  sum(square(x)).backward();
  sum(square(x)).backward();
  EXPECT_THAT(x.grad().to_vector<double>(), ElementsAre(4, 8));
  x.zero_grad();
  EXPECT_FALSE(x.grad().defined());
  sum(x).backward();
  EXPECT_THAT(x.grad().to_vector<double>(), ElementsAre(1, 1));
}

TEST(Autograd, GivesEachLeafAGradientOfItsOwn) {
  const Tensor a = leaf({1}, {1}), b = leaf({1}, {1});
  add(a, b).backward();  // both closures hand out dy itself
  add_(a.grad(), values({5}, {1}));
  EXPECT_EQ(b.grad().item<double>(), 1.0);
}

TEST(Autograd, VisitsADiamondOnce) {
  int visits = 0;
  const Tensor x = leaf({2}, {});
  const Tensor middle = record(probe_op, values({2}, {}), {x}, [&](const Tensor& dy) -> Gradients {
    ++visits;
    return {dy};
  });
  add(mul(middle, 3.0), mul(middle, 4.0)).backward();
  EXPECT_EQ(visits, 1);
  EXPECT_EQ(x.grad().item<double>(), 7.0);
}

TEST(Autograd, BackwardOfALeafIsItsUpstream) {
  const Tensor x = leaf({2}, {});
  x.backward();
  EXPECT_EQ(x.grad().item<double>(), 1.0);
}

TEST(Autograd, RecordsNothingUnderNoGrad) {
  const Tensor x = leaf({2}, {});
  EXPECT_FALSE(NoGrad::active());
  {
    NoGrad off;
    EXPECT_TRUE(NoGrad::active());
    EXPECT_FALSE(square(x).requires_grad());
    { NoGrad inner; }
    EXPECT_TRUE(NoGrad::active());
  }
  EXPECT_TRUE(square(x).requires_grad());
}

TEST(Autograd, RecordsNothingInsideBackward) {
  bool active = false;
  const Tensor x = leaf({2}, {});
  record(probe_op, values({2}, {}), {x}, [&](const Tensor& dy) -> Gradients {
    active = NoGrad::active();
    return {mul(dy, 2.0)};
  }).backward();
  EXPECT_TRUE(active);
  EXPECT_FALSE(x.grad().requires_grad());
}

TEST(Autograd, DetachCutsTheHistory) {
  const Tensor x = leaf({2}, {});
  EXPECT_FALSE(x.detach().requires_grad());
  mul(x, x.detach()).backward();
  EXPECT_EQ(x.grad().item<double>(), 2.0);
}

TEST(Autograd, GivesClosuresAContiguousGradient) {
  bool contiguous = false;
  const Tensor x = leaf({1, 2, 3, 4, 5, 6}, {2, 3});
  const Tensor y = record(probe_op, x.detach(), {x}, [&](const Tensor& dy) -> Gradients {
    contiguous = dy.is_contiguous();
    return {dy};
  });
  transpose(y).backward(values({1, 2, 3, 4, 5, 6}, {3, 2}));
  EXPECT_TRUE(contiguous);
  EXPECT_THAT(x.grad().to_vector<double>(), ElementsAre(1, 3, 5, 2, 4, 6));
}

TEST(Autograd, WalksAndReleasesAMillionOpsWithoutRecursion) {
  // One op in a million runs a primitive; the rest hand the gradient on, which is the graph's part.
  const Tensor x = leaf({1}, {});
  Tensor y = x;
  for (int i = 0; i < 1'000'000; ++i) {
    y = record(probe_op, y.detach(), {y}, [](const Tensor& dy) -> Gradients { return {dy}; });
  }
  y.backward();
  EXPECT_EQ(x.grad().item<double>(), 1.0);
}

TEST(Autograd, ReleasesAMillionOpsThatNeverRanBackward) {
  const Tensor x = leaf({1}, {});
  Tensor y = x;
  for (int i = 0; i < 1'000'000; ++i) {
    y = record(probe_op, y.detach(), {y}, [](const Tensor& dy) -> Gradients { return {dy}; });
  }
  std::weak_ptr<Node> last = y.node();
  y = Tensor();
  EXPECT_TRUE(last.expired());
}

TEST(Autograd, LeavesNoNodeAliveAfterBackward) {
  const Tensor x = leaf({1, 2, 3, 4}, {2, 2});
  std::weak_ptr<Node> middle;
  Tensor loss;
  {
    const Tensor h = softmax(matmul(x, x));  // softmax saves its own output
    middle = h.node();
    loss = sum(h);
  }
  EXPECT_FALSE(middle.expired());
  loss.backward();
  EXPECT_TRUE(middle.expired());
}

TEST(Autograd, ReturnsAllMemoryOfAStep) {
  const Tensor x = leaf({1, 2, 3, 4}, {2, 2});
  auto step = [&] {
    x.zero_grad();
    sum(gelu(matmul(x, softmax(x)))).backward();
  };
  step();
  const int64_t live = backend(device).allocator().statistics().live_bytes;
  step();
  EXPECT_EQ(backend(device).allocator().statistics().live_bytes, live);
}

TEST(Autograd, FreesSavedTensorsAsBackwardProceeds) {
  const int64_t n = 1 << 16;
  Tensor x = Tensor::zeros({n}, DType::f64, device).set_requires_grad();
  Tensor y = x;
  for (int i = 0; i < 16; ++i) y = exp(y);  // each saves its output
  y = sum(y);
  Allocator& allocator = backend(device).allocator();
  allocator.reset_peak();
  const int64_t before = allocator.statistics().live_bytes;
  y.backward();
  // Two gradients in flight, never sixteen.
  EXPECT_LE(allocator.statistics().peak_live_bytes - before, 3 * n * 8);
}

// ---- Errors ----------------------------------------------------------------------------------

TEST(Autograd, ThrowsNamingTheOpThatHasNoGradient) {
  const Tensor x = leaf({1, 2}, {2});
  const Tensor y = no_gradient(probe_op, values({1, 2}, {2}), {x});
  EXPECT_TRUE(y.requires_grad());
  EXPECT_THAT(error_of([&] { sum(y).backward(); }),
              HasSubstr("probe: backward: this op has no gradient; detach() its input"));
}

TEST(Autograd, ThrowsNamingTheOpThatLeavesAGradientUndefined) {
  const Tensor x = leaf({1}, {});
  const Tensor y =
      record(probe_op, values({1}, {}), {x}, [](const Tensor&) -> Gradients { return {Tensor()}; });
  EXPECT_THAT(error_of([&] { y.backward(); }),
              HasSubstr("probe: backward left the gradient of input 0 undefined"));
}

TEST(Autograd, ThrowsNamingTheOpWhoseGradientHasTheWrongShape) {
  const Tensor x = leaf({1, 2}, {2});
  const Tensor y =
      record(probe_op, values({1}, {}), {x}, [](const Tensor& dy) -> Gradients { return {dy}; });
  EXPECT_THAT(error_of([&] { y.backward(); }),
              HasSubstr("probe: backward gave input 0 a gradient of [] f64; the input is [2] f64"));
}

TEST(Autograd, ThrowsNamingTheOpWithTheWrongNumberOfGradients) {
  const Tensor x = leaf({1}, {});
  const Tensor y = record(probe_op, values({1}, {}), {x}, [](const Tensor& dy) -> Gradients {
    return {dy, dy};
  });
  EXPECT_THAT(error_of([&] { y.backward(); }), HasSubstr("probe: backward gave 2 gradients for 1"));
}

TEST(Autograd, ThrowsNamingTheSecondBackward) {
  const Tensor x = leaf({2}, {});
  const Tensor y = square(x);
  y.backward();
  EXPECT_THAT(error_of([&] { y.backward(); }),
              HasSubstr("square: backward: the graph was already released; call backward() once"));
  EXPECT_EQ(x.grad().item<double>(), 4.0) << "a refused call must not add to the gradient";
}

TEST(Autograd, ThrowsNamingASharedPartThatWasReleased) {
  const Tensor x = leaf({2}, {});
  const Tensor shared = square(x);
  mul(shared, 2.0).backward();
  EXPECT_THAT(error_of([&] { mul(shared, 3.0).backward(); }),
              HasSubstr("square: backward: the graph was already released"));
}

TEST(Autograd, ThrowsNamingWhatBackwardMayNotBeCalledOn) {
  const Tensor x = leaf({1, 2}, {2});
  EXPECT_THAT(error_of([&] { square(x).backward(); }),
              HasSubstr("backward: the tensor has shape [2]; reduce it to one element"));
  EXPECT_THAT(error_of([&] { values({1}, {}).backward(); }),
              HasSubstr("backward: the tensor has no history"));
  EXPECT_THAT(error_of([&] { square(x).backward(values({1}, {})); }),
              HasSubstr("backward: the upstream gradient must match the tensor: [2] f64"));
  EXPECT_THAT(error_of([&] { square(x).backward(Tensor()); }),
              HasSubstr("backward: the upstream gradient must match"));
}

TEST(Autograd, ThrowsNamingWhatCannotBeALeaf) {
  const Tensor x = leaf({1}, {});
  Tensor y = square(x);
  EXPECT_THAT(error_of([&] { y.set_requires_grad(); }),
              HasSubstr("set_requires_grad: the tensor is the result of square"));
  Tensor ids = Tensor::zeros({2}, DType::i64, device);
  EXPECT_THAT(error_of([&] { ids.set_requires_grad(); }),
              HasSubstr("set_requires_grad: dtype i64 is not floating"));
}

// An exception out of a closure leaves the rest of the process as it was.
TEST(Autograd, WorksAfterABackwardThatThrew) {
  const Tensor x = leaf({2}, {});
  const Tensor bad = no_gradient(probe_op, values({1}, {}), {x});
  EXPECT_THROW(add(square(x), bad).backward(), InvalidArgument);
  EXPECT_FALSE(NoGrad::active());
  x.zero_grad();
  square(x).backward();
  EXPECT_EQ(x.grad().item<double>(), 4.0);
}

// ---- In-place changes of saved tensors (every way to reach the data)
// ------------------------------

struct Change {
  const char* name;
  void (*apply)(const Tensor& x);
};

const Change changes[] = {
    {"Directly", [](const Tensor& x) { add_(x, values({1}, {})); }},
    {"ThroughASlice", [](const Tensor& x) { add_(slice(x, 0, 0, 1), values({1}, {})); }},
    {"ThroughATranspose", [](const Tensor& x) { add_(transpose(x), values({1}, {})); }},
    {"ThroughAReshape", [](const Tensor& x) { add_(reshape(x, {-1}), values({1}, {})); }},
    {"ThroughADetachedHandle", [](const Tensor& x) { mul_(x.detach(), 2.0); }},
    {"ThroughASelectedRow", [](const Tensor& x) { fill_(select(x, 0, 1), 0.0); }},
    {"ByCopy", [](const Tensor& x) { copy_(x, values({9}, {})); }},
    {"WithRecordingOff",
     [](const Tensor& x) {
       NoGrad off;
       add_(x, values({1}, {}));
     }},
    {"ThroughASliceWithRecordingOff",
     [](const Tensor& x) {
       NoGrad off;
       add_(slice(x, 1, 0, 1), values({1}, {}));
     }},
};

struct Keeper {
  const char* op;
  Tensor (*call)(const Tensor& x);  ///< Keeps x, [2, 2], for its backward.
};

const Keeper keepers[] = {
    {"matmul",
     [](const Tensor& x) {
       return matmul(x, leaf({1, 2, 3, 4}, {2, 2}));
     }},
    {"linear",
     [](const Tensor& x) {
       return linear(x, leaf({1, 2, 3, 4}, {2, 2}), {});
     }},
    {"mul",
     [](const Tensor& x) {
       return mul(x, leaf({1, 2, 3, 4}, {2, 2}));
     }},
    {"div",
     [](const Tensor& x) {
       return div(leaf({1, 2, 3, 4}, {2, 2}), x);
     }},
    {"square", [](const Tensor& x) { return square(x); }},
    {"gelu", [](const Tensor& x) { return gelu(x); }},
    {"logsumexp", [](const Tensor& x) { return logsumexp(x, {{1}}); }},
    {"prod", [](const Tensor& x) { return prod(x, {{1}}); }},
    {"layer_norm",
     [](const Tensor& x) {
       return layer_norm(x, values({1, 1}, {2}), values({0, 0}, {2}));
     }},
    {"batch_norm",
     [](const Tensor& x) {
       return batch_norm(x, values({1, 1}, {2}), values({0, 0}, {2}), values({0, 0}, {2}),
                         values({1, 1}, {2}));
     }},
    {"conv2d",
     [](const Tensor& x) {
       return conv2d(reshape(x, {1, 2, 2, 1}), leaf({2}, {1, 1, 1, 1}), {});
     }},
    {"max_pool2d",
     [](const Tensor& x) {
       return max_pool2d(reshape(x, {1, 2, 2, 1}));
     }},
    {"cross_entropy",
     [](const Tensor& x) {
       return cross_entropy(x, Tensor::from<int64_t>(std::vector<int64_t>{0, 1}, {2}, device));
     }},
    {"attention",
     [](const Tensor& x) {
       const Tensor q = reshape(x, {1, 2, 1, 2});
       return attention(q, q, q);
     }},
};

class SavedTensor : public ::testing::TestWithParam<std::tuple<int, int>> {};

TEST_P(SavedTensor, ChangedInPlaceIsAnErrorNamingTheOp) {
  const auto [k, c] = GetParam();
  const Tensor x = leaf({1, 2, 3, 4}, {2, 2});
  const Tensor y = keepers[k].call(x);
  changes[c].apply(x);
  const std::string error = error_of([&] { sum(y).backward(); });
  EXPECT_THAT(error, HasSubstr(std::string(keepers[k].op) + ": backward: a saved tensor of ["))
      << changes[c].name;
  EXPECT_THAT(error, HasSubstr("was changed in place after forward"));
  EXPECT_FALSE(x.grad().defined()) << "never a number";
}

INSTANTIATE_TEST_SUITE_P(
    EveryWay, SavedTensor,
    ::testing::Combine(::testing::Range(0, static_cast<int>(std::size(keepers))),
                       ::testing::Range(0, static_cast<int>(std::size(changes)))),
    [](const auto& info) {
      std::string name = keepers[std::get<0>(info.param)].op;
      std::erase(name, '_');
      return name + changes[std::get<1>(info.param)].name;
    });

TEST(SavedTensors, NoticeAChangeOfTheBaseOfASavedView) {
  const Tensor base = leaf({1, 2, 3, 4}, {2, 2});
  const Tensor y = square(slice(base, 0, 0, 1));  // the view is what is saved
  add_(base, values({1}, {}));
  EXPECT_THAT(error_of([&] { sum(y).backward(); }), HasSubstr("square: backward: a saved tensor"));
}

TEST(SavedTensors, NoticeAChangeOfAnOutputThatBackwardUses) {
  const Tensor x = leaf({1, 2}, {2});
  const Tensor y = exp(x);
  mul_(y, 2.0);
  EXPECT_THAT(error_of([&] { sum(y).backward(); }), HasSubstr("exp: backward: a saved tensor"));
}

TEST(SavedTensors, NoticeAChangeOfAMask) {
  const Tensor x = leaf({1, 2}, {2});
  const Tensor mask = compare(CompareOp::gt, x, values({0}, {}));
  const Tensor y = where(mask, x, values({0}, {}));
  fill_(mask, 0.0);
  EXPECT_THAT(error_of([&] { sum(y).backward(); }), HasSubstr("where: backward: a saved tensor"));
}

TEST(SavedTensors, AllowAChangeOfWhatBackwardDoesNotNeed) {
  const Tensor x = leaf({1, 2}, {2}), b = leaf({5, 5}, {2});
  const Tensor y = add(mul(x, 3.0), b);
  add_(x, values({1}, {}));
  add_(b, values({1}, {}));
  sum(y).backward();
  EXPECT_THAT(x.grad().to_vector<double>(), ElementsAre(3, 3));
  EXPECT_THAT(b.grad().to_vector<double>(), ElementsAre(1, 1));
}

TEST(SavedTensors, AllowAChangeOfTheInputWhereTheOutputIsSaved) {
  const Tensor x = leaf({1, 2}, {2});
  const Tensor y = exp(x);
  fill_(x, 0.0);
  sum(y).backward();
  EXPECT_NEAR(x.grad().to_vector<double>()[1], std::exp(2.0), 1e-12);
}

TEST(SavedTensors, AllowAChangeAfterBackward) {
  const Tensor x = leaf({1, 2}, {2});
  sum(square(x)).backward();
  add_(x, values({1}, {}));
  sum(square(x)).backward();
  EXPECT_THAT(x.grad().to_vector<double>(), ElementsAre(2 + 4, 4 + 6));
}

// A strided input is packed before it is saved: the copy does not age with the original.
TEST(SavedTensors, AllowAChangeOfTheOriginalOfASavedCopy) {
  const Tensor x = leaf({1, 2, 3, 4}, {2, 2});
  const Tensor y = square(transpose(x));
  fill_(x, 0.0);
  sum(y).backward();
  EXPECT_THAT(x.grad().to_vector<double>(), ElementsAre(2, 4, 6, 8));
}

// ---- Arenas ----------------------------------------------------------------------------------

struct Arena {
  Tensor parameters = Tensor::zeros({6}, DType::f64, device);
  Tensor gradients = Tensor::full({6}, -1.0, DType::f64, device);
  std::vector<Tensor> tensors;

  // Makes the values the next slice; slots start on a byte of their own.
  const Tensor& add(const std::vector<double>& v, const Shape& shape) {
    int64_t begin = 0;
    for (const Tensor& t : tensors) begin += t.numel();
    Tensor t = leaf(v, shape);
    t.storage()->move_into(parameters.storage(), begin * 8);
    copy_(t, values(v, shape));
    t.node()->arena_slot = gradients.as_strided(shape, row_major(shape), begin);
    tensors.push_back(t);
    return tensors.back();
  }
};

TEST(Arena, TakesGradientsInPlace) {
  Arena arena;
  const Tensor w = arena.add({1, 2, 3, 4}, {2, 2}), b = arena.add({5, 6}, {2});
  sum(linear(values({1, 2}, {1, 2}), w, b)).backward();
  EXPECT_EQ(w.grad().raw_data(), arena.gradients.raw_data());
  EXPECT_THAT(arena.gradients.to_vector<double>(), ElementsAre(1, 2, 1, 2, 1, 1));
}

TEST(Arena, AddsTheSecondGradientIntoTheSlot) {
  Arena arena;
  const Tensor w = arena.add({1, 2, 3, 4}, {2, 2}), b = arena.add({5, 6}, {2});
  for (int i = 0; i < 2; ++i) sum(linear(values({1, 2}, {1, 2}), w, b)).backward();
  EXPECT_THAT(arena.gradients.to_vector<double>(), ElementsAre(2, 4, 2, 4, 2, 2));
}

TEST(Arena, OverwritesTheSlotAfterZeroGrad) {
  Arena arena;
  const Tensor w = arena.add({1, 2, 3, 4}, {2, 2}), b = arena.add({5, 6}, {2});
  for (int i = 0; i < 2; ++i) {
    w.zero_grad();
    b.zero_grad();
    sum(linear(values({1, 2}, {1, 2}), w, b)).backward();
  }
  EXPECT_THAT(arena.gradients.to_vector<double>(), ElementsAre(1, 2, 1, 2, 1, 1));
}

TEST(Arena, SumsTwoUsesOfOneParameter) {
  Arena arena;
  const Tensor w = arena.add({1, 2, 3, 4}, {2, 2});
  const Tensor x = values({1, 1}, {1, 2});
  add(sum(linear(x, w, {})), sum(linear(linear(x, w, {}), w, {}))).backward();
  const Tensor free = leaf({1, 2, 3, 4}, {2, 2});
  add(sum(linear(x, free, {})), sum(linear(linear(x, free, {}), free, {}))).backward();
  EXPECT_EQ(w.grad().to_vector<double>(), free.grad().to_vector<double>());
  EXPECT_EQ(w.grad().raw_data(), arena.gradients.raw_data());
}

TEST(Arena, SumsBothSidesOfOneOp) {
  Arena arena;
  const Tensor w = arena.add({1, 2, 3, 4}, {2, 2});
  sum(matmul(w, w)).backward();
  const Tensor free = leaf({1, 2, 3, 4}, {2, 2});
  sum(matmul(free, free)).backward();
  EXPECT_EQ(w.grad().to_vector<double>(), free.grad().to_vector<double>());
}

TEST(Arena, CopiesAGradientThatWasMadeElsewhere) {
  Arena arena;
  const Tensor w = arena.add({1, 2, 3, 4}, {2, 2});
  sum(square(w)).backward();
  EXPECT_EQ(w.grad().raw_data(), arena.gradients.raw_data());
  EXPECT_THAT(w.grad().to_vector<double>(), ElementsAre(2, 4, 6, 8));
}

TEST(Arena, RecoversFromABackwardThatThrew) {
  Arena arena;
  const Tensor w = arena.add({1, 2, 3, 4}, {2, 2});
  const Tensor x = leaf({1, 1}, {1, 2});
  const Tensor h = no_gradient(probe_op, x.detach(), {x});
  EXPECT_THROW(sum(linear(h, w, {})).backward(), InvalidArgument);
  w.zero_grad();
  sum(linear(x.detach(), w, {})).backward();
  EXPECT_THAT(arena.gradients.to_vector<double>(), ElementsAre(1, 1, 1, 1, -1, -1));
}

// What an optimizer does between forward and backward: one pass over the arena.
TEST(Arena, AStepBetweenForwardAndBackwardIsAnError) {
  Arena arena;
  const Tensor w = arena.add({1, 2, 3, 4}, {2, 2}), b = arena.add({5, 6}, {2});
  const Tensor x = leaf({1, 2}, {1, 2});
  const Tensor y = sum(linear(x, w, b));
  run(prim::SgdStep{.lr = 0.1, .grad = arena.gradients, .param = arena.parameters});
  arena.parameters.storage()->bump_version();
  EXPECT_THAT(error_of([&] { y.backward(); }),
              HasSubstr("linear: backward: a saved tensor of [1, 2, 2] was changed in place"));
  EXPECT_FALSE(x.grad().defined());
}

TEST(Arena, AChangeOfOneParameterAgesTheWholeArena) {
  Arena arena;
  const Tensor w = arena.add({1, 2, 3, 4}, {2, 2}), b = arena.add({5, 6}, {2});
  const uint64_t before = w.storage()->version();
  fill_(b, 0.0);
  EXPECT_GT(w.storage()->version(), before);
}

TEST(Arena, RefusesASliceOutsideOfIt) {
  const Tensor arena = Tensor::zeros({4}, DType::f64, device);
  const Tensor t = Tensor::zeros({4}, DType::f64, device);
  EXPECT_THROW(t.storage()->move_into(arena.storage(), 8), InvalidArgument);
  EXPECT_THROW(t.storage()->move_into(arena.storage(), -8), InvalidArgument);
}

}  // namespace
}  // namespace crucible
