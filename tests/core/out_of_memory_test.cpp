// A request that fails anywhere in a step: the error surfaces, nothing leaks, the next step is
// right.
#include <gtest/gtest.h>

#include "core/autograd.h"
#include "core/backend.h"
#include "core/error.h"
#include "core/storage.h"
#include "ops/conv.h"
#include "ops/elementwise.h"
#include "ops/loss.h"
#include "ops/matmul.h"
#include "ops/norm.h"
#include "ops/pool.h"
#include "ops/reduce.h"
#include "ops/view.h"
#include "tests/reference/reference_backend.h"

namespace crucible {
namespace {

constexpr Device device = reference::device;

// A small network with a parameter arena, as a training step uses one.
struct Network {
  std::vector<Shape> shapes{{2, 3, 3, 1}, {2}, {2}, {3, 8}, {3}};
  Tensor arena, slots;
  std::vector<Tensor> parameters;
  Tensor images, labels;

  Network() {
    int64_t total = 0;
    for (const Shape& s : shapes) total += s.numel();
    arena = Tensor::empty({total}, DType::f64, device);
    slots = Tensor::zeros({total}, DType::f64, device);
    int64_t at = 0;
    for (const Shape& s : shapes) {
      Tensor p = Tensor::empty(s, DType::f64, device).set_requires_grad();
      p.storage()->move_into(arena.storage(), at * 8);
      p.node()->arena_slot = slots.as_strided(s, row_major(s), at);
      parameters.push_back(p);
      at += s.numel();
    }
    run(prim::Random{
        .kind = prim::Random::Kind::normal, .a = 0.0, .b = 1.0, .rng = {1, 0, 0}, .y = arena});
    images = Tensor::empty({3, 4, 4, 1}, DType::f64, device);
    run(prim::Random{
        .kind = prim::Random::Kind::normal, .a = 0.0, .b = 1.0, .rng = {2, 0, 0}, .y = images});
    labels = Tensor::from(std::vector<int64_t>{0, 2, 1}, {3}, device);
  }

  void step() const {
    for (const Tensor& p : parameters) p.zero_grad();
    const Tensor mean = Tensor::zeros({2}, DType::f64, device);
    const Tensor var = Tensor::full({2}, 1.0, DType::f64, device);
    Tensor h = conv2d(images, parameters[0], {}, {.padding = 1});
    h = batch_norm(h, parameters[1], parameters[2], mean, var, {.relu = true});
    h = reshape(max_pool2d(h), {3, 8});
    h = linear(h, parameters[3], parameters[4], Activation::gelu_tanh);
    add(cross_entropy(h, labels), mul(sum(square(parameters[3])), 0.1)).backward();
  }
};

TEST(OutOfMemory, AnywhereInAStepLeavesTheProcessAsItWas) {
  const Network network;
  Allocator& allocator = backend(device).allocator();
  network.step();
  const std::vector<double> gradients = network.slots.to_vector<double>();
  const int64_t live = allocator.statistics().live_bytes;
  const int64_t before = allocator.statistics().allocations;
  network.step();
  const int64_t requests = allocator.statistics().allocations - before;
  ASSERT_GT(requests, 20);

  for (int64_t n = 1; n <= requests; ++n) {
    allocator.fail_nth_allocation(n);
    EXPECT_THROW(network.step(), OutOfMemory) << "request " << n;
    ASSERT_EQ(allocator.statistics().live_bytes, live) << "request " << n << " leaked";
    EXPECT_FALSE(NoGrad::active());
    network.step();
    ASSERT_EQ(network.slots.to_vector<double>(), gradients) << "after request " << n << " failed";
    ASSERT_EQ(allocator.statistics().live_bytes, live);
  }
  allocator.fail_nth_allocation(requests + 1);
  EXPECT_NO_THROW(network.step());
  allocator.fail_nth_allocation(0);
}

// Fresh and freed memory full of NaN: nothing reads what it did not write, or after it was freed.
TEST(OutOfMemory, NothingReadsWhatWasNotWritten) {
  const Network network;
  Allocator& allocator = backend(device).allocator();
  network.step();
  const std::vector<double> gradients = network.slots.to_vector<double>();
  allocator.set_fill_patterns(0xFF, 0xFF);
  network.step();
  allocator.set_fill_patterns(-1, -1);
  EXPECT_EQ(network.slots.to_vector<double>(), gradients);
}

TEST(OutOfMemory, ATensorTooLargeForTheLimitIsRefusedAndTheNextOneFits) {
  Allocator& allocator = backend(device).allocator();
  allocator.release_cached();
  allocator.set_limit(allocator.statistics().reserved_bytes + (4 << 20));
  EXPECT_THROW(Tensor::zeros({1 << 20}, DType::f64, device), OutOfMemory);
  EXPECT_NO_THROW(Tensor::zeros({1 << 10}, DType::f64, device));
  allocator.set_limit(-1);
}

}  // namespace
}  // namespace crucible
