#include "tests/ops/gradcheck.h"

#include <fmt/format.h>

#include <cmath>

#include "core/autograd.h"
#include "core/backend.h"
#include "tests/samples/seed.h"

namespace crucible::testing {
namespace {

using ::testing::AssertionFailure;
using ::testing::AssertionResult;
using ::testing::AssertionSuccess;

std::vector<int64_t> offsets(const Tensor& x) {
  std::vector<int64_t> at(x.numel());
  for (int64_t i = 0; i < x.numel(); ++i) {
    int64_t rest = i;
    for (int axis = x.rank() - 1; axis >= 0; --axis) {
      at[i] += rest % x.shape()[axis] * x.stride(axis);
      rest /= x.shape()[axis];
    }
  }
  return at;
}

// A sample with its inputs on one device; every call of the op sees the same other arguments.
class Problem {
 public:
  Problem(const OpSample& sample, Device device, uint64_t seed)
      : sample_(sample), device_(device), seed_(seed) {
    Maker maker(device, DType::f64, seed);
    inputs_ = sample.inputs(maker);
    shapes_ = maker.shapes();
    for (Tensor& x : inputs_) x.set_requires_grad();
  }

  const std::vector<Tensor>& inputs() const { return inputs_; }
  std::string where() const {
    return fmt::format("on {}, inputs {}\n  {}", to_string(device_), shapes_, rerun_line());
  }

  Tensor call(const std::vector<Tensor>& inputs) const {
    Maker maker(device_, DType::f64, seed_ + 1);
    return sample_.call(inputs, maker);
  }
  std::vector<double> value() const {
    NoGrad off;
    return host_values(call(inputs_));
  }

  // Gradients of sum(dy * y) for every input, dy row-major.
  std::vector<std::vector<double>> backward(const std::vector<double>& dy) const {
    for (const Tensor& x : inputs_) x.zero_grad();
    const Tensor y = call(inputs_);
    Maker maker(y.device(), y.dtype(), 0);
    y.backward(maker.values_as(y.dtype(), y.shape(), dy));
    std::vector<std::vector<double>> gradients;
    for (const Tensor& x : inputs_) {
      EXPECT_TRUE(x.grad().defined());
      EXPECT_EQ(to_string(x.grad().shape()), to_string(x.shape()));
      gradients.push_back(host_values(x.grad()));
    }
    return gradients;
  }

  // Adds `step` times `direction` (one number an element) to input `i`, behind autograd's back.
  void move(size_t i, const std::vector<double>& start, const std::vector<double>& direction,
            double step) const {
    const Tensor& x = inputs_[i];
    const std::vector<int64_t> at = offsets(x);
    for (size_t k = 0; k < at.size(); ++k) {
      const double value = start[k] + step * direction[k];
      backend(device_).copy_from_host(x.data<double>() + at[k], &value, sizeof value);
    }
  }

 private:
  const OpSample& sample_;
  Device device_;
  uint64_t seed_;
  std::vector<Tensor> inputs_;
  std::string shapes_;
};

bool close(double gradient, double quotient) {
  if (std::isnan(quotient)) return std::isnan(gradient);
  if (gradient == quotient) return true;
  return std::fabs(gradient - quotient) <= gradcheck_atol + gradcheck_rtol * std::fabs(quotient);
}

AssertionResult stated_gradients_hold(const OpSample& sample, const Problem& problem) {
  const auto gradients = problem.backward(std::vector<double>(problem.value().size(), 1.0));
  for (size_t i = 0; i < gradients.size(); ++i) {
    for (size_t k = 0; k < gradients[i].size(); ++k) {
      const double expected = (*sample.gradients)[i][k], actual = gradients[i][k];
      if (std::isnan(expected) ? std::isnan(actual)
                               : actual == expected || std::fabs(actual - expected) <= 1e-12) {
        continue;
      }
      return AssertionFailure() << fmt::format(
                 "{} {}: gradient of input {} at element {} is {:.12g}; it must be {:.12g}.\n  {}",
                 sample.op, sample.name, i, k, actual, expected, problem.where());
    }
  }
  return AssertionSuccess();
}

// Each input alone gets the gradient that it gets among the others.
AssertionResult alone_agrees(const OpSample& sample, const Problem& problem,
                             const std::vector<double>& dy,
                             const std::vector<std::vector<double>>& together) {
  for (size_t i = 0; i < problem.inputs().size(); ++i) {
    std::vector<Tensor> inputs;
    for (const Tensor& x : problem.inputs()) inputs.push_back(x.detach());
    inputs[i].set_requires_grad();
    const Tensor y = problem.call(inputs);
    Maker maker(y.device(), y.dtype(), 0);
    y.backward(maker.values_as(y.dtype(), y.shape(), dy));
    const std::vector<double> alone = host_values(inputs[i].grad());
    for (size_t k = 0; k < alone.size(); ++k) {
      if (close(alone[k], together[i][k])) continue;
      return AssertionFailure() << fmt::format(
                 "{} {}: gradient of input {} at element {} is {:.12g} alone, {:.12g} with the "
                 "others.\n  {}",
                 sample.op, sample.name, i, k, alone[k], together[i][k], problem.where());
    }
  }
  return AssertionSuccess();
}

}  // namespace

AssertionResult gradients_agree(const OpSample& sample, Device device, uint64_t seed) {
  const Problem problem(sample, device, seed);
  if (sample.gradients) return stated_gradients_hold(sample, problem);

  const std::vector<double> y = problem.value();
  const size_t outputs = y.size();
  // Rows of the Jacobian from backward, one output at a time; with no output once, for the shapes.
  std::vector<std::vector<std::vector<double>>> rows;
  for (size_t o = 0; o < outputs; ++o) {
    std::vector<double> dy(outputs, 0.0);
    dy[o] = 1.0;
    rows.push_back(problem.backward(dy));
  }
  if (outputs == 0) {
    for (const std::vector<double>& gradient : problem.backward({})) {
      for (const double g : gradient) EXPECT_EQ(g, 0.0) << "an empty result has gradient 0";
    }
  }

  for (size_t i = 0; i < problem.inputs().size(); ++i) {
    const std::vector<double> start = host_values(problem.inputs()[i]);
    for (size_t k = 0; k < start.size(); ++k) {
      std::vector<double> direction(start.size(), 0.0);
      direction[k] = 1.0;
      problem.move(i, start, direction, gradcheck_eps);
      const std::vector<double> above = problem.value();
      problem.move(i, start, direction, -gradcheck_eps);
      const std::vector<double> below = problem.value();
      problem.move(i, start, direction, 0.0);
      for (size_t o = 0; o < outputs; ++o) {
        const double quotient = (above[o] - below[o]) / (2.0 * gradcheck_eps);
        if (close(rows[o][i][k], quotient)) continue;
        return AssertionFailure() << fmt::format(
                   "{} {}: d output[{}] / d input {}[{}]: backward gives {:.9g}, the difference "
                   "quotient {:.9g}, difference {:.3g}, allowed {} + {} |quotient|.\n  {}",
                   sample.op, sample.name, o, i, k, rows[o][i][k], quotient,
                   std::fabs(rows[o][i][k] - quotient), gradcheck_atol, gradcheck_rtol,
                   problem.where());
      }
    }
  }
  if (problem.inputs().size() < 2) return AssertionSuccess();
  const std::vector<double> ones(outputs, 1.0);
  return alone_agrees(sample, problem, ones, problem.backward(ones));
}

AssertionResult direction_agrees(const OpSample& sample, Device device, uint64_t seed) {
  const Problem problem(sample, device, seed);
  Rng rng(seed, 77);
  std::vector<double> weights(problem.value().size());
  for (double& w : weights) w = rng.normal();
  auto combination = [&] {
    const std::vector<double> y = problem.value();
    double sum = 0.0;
    for (size_t i = 0; i < y.size(); ++i) sum += weights[i] * y[i];
    return sum;
  };

  const auto gradients = problem.backward(weights);
  double slope = 0.0, magnitude = 0.0;
  std::vector<std::vector<double>> starts, directions;
  for (size_t i = 0; i < gradients.size(); ++i) {
    starts.push_back(host_values(problem.inputs()[i]));
    std::vector<double> direction(starts[i].size());
    for (double& d : direction) d = rng.normal();
    for (size_t k = 0; k < direction.size(); ++k) {
      slope += gradients[i][k] * direction[k];
      magnitude += std::fabs(gradients[i][k] * direction[k]);
    }
    directions.push_back(std::move(direction));
  }
  auto at = [&](double step) {
    for (size_t i = 0; i < starts.size(); ++i) problem.move(i, starts[i], directions[i], step);
    return combination();
  };
  const double quotient = (at(gradcheck_eps) - at(-gradcheck_eps)) / (2.0 * gradcheck_eps);
  // Signs cancel: what a wrong gradient of one element would change is small beside the sum of
  // magnitudes, whose square root is the size that the slope itself has by chance.
  const double allowed =
      gradcheck_atol * std::max(1.0, std::sqrt(magnitude)) + gradcheck_atol * std::fabs(quotient);
  if (std::fabs(slope - quotient) <= allowed) return AssertionSuccess();
  return AssertionFailure() << fmt::format(
             "{} {}: slope along a random direction: backward gives {:.9g}, the difference "
             "quotient {:.9g}, difference {:.3g}, allowed {:.3g}.\n  {}",
             sample.op, sample.name, slope, quotient, std::fabs(slope - quotient), allowed,
             problem.where());
}

}  // namespace crucible::testing
