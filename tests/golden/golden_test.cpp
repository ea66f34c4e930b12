// The reference models against what PyTorch computed on the same weights and batches; README.md
// says how both sides make them and where the bounds come from.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/rng.h"
#include "models/gpt.h"
#include "models/layout.h"
#include "models/mlp.h"
#include "models/resnet.h"
#include "ops/autocast.h"
#include "ops/loss.h"
#include "optim/adamw.h"
#include "optim/sgd.h"

namespace crucible {
namespace {

using Json = nlohmann::json;

constexpr double loss_bound = 1e-4;      // relative, at each of the 50 steps
constexpr double gradient_bound = 1e-5;  // of the parameter's largest gradient, at the first step
constexpr double final_bound = 1e-3;  // relative, norms and running statistics after the last step

constexpr uint64_t batch_stream = 1'000'000;

std::vector<float> uniform(uint64_t seed, uint64_t stream, int64_t count, const Json& range) {
  const float lo = range.at("lo"), hi = range.at("hi");
  std::vector<float> values(count);
  for (int64_t i = 0; i < count; ++i) {
    values[i] = lo + (hi - lo) * to_uniform(Philox::word(seed, stream, i));
  }
  return values;
}

std::vector<int64_t> integers(uint64_t seed, uint64_t stream, int64_t count, int64_t classes) {
  std::vector<int64_t> values(count);
  for (int64_t i = 0; i < count; ++i) values[i] = Philox::word(seed, stream, i) % classes;
  return values;
}

// [N, C, H, W] -> [N, H, W, C].
std::vector<float> channels_last(const std::vector<float>& x, const Shape& nchw) {
  std::vector<float> y(x.size());
  const int64_t channels = nchw[1], pixels = nchw[2] * nchw[3];
  for (int64_t n = 0; n < nchw[0]; ++n) {
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t p = 0; p < pixels; ++p) {
        y[(n * pixels + p) * channels + c] = x[(n * channels + c) * pixels + p];
      }
    }
  }
  return y;
}

Shape shape_of(const Json& sizes) {
  return Shape(std::span<const int64_t>(sizes.get<std::vector<int64_t>>()));
}

// As a file in the layout of the ecosystem holds it.
std::vector<float> exported(const Tensor& x, ExportLayout layout) {
  std::vector<std::byte> scratch;
  const std::span<const std::byte> bytes = models::exported_bytes(x, layout, scratch);
  std::vector<float> values(x.numel());
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

double norm(const std::vector<float>& values) {
  double sum = 0.0;
  for (const double v : values) sum += v * v;
  return std::sqrt(sum);
}

std::unique_ptr<models::Module> make_model(const Json& c, Device device) {
  const models::ModelOptions options{.device = device};
  if (c.contains("sizes")) {
    return std::make_unique<models::Mlp>(c.at("sizes").get<std::vector<int64_t>>(), options);
  }
  if (c.contains("vocab")) {
    return std::make_unique<models::Gpt>(models::GptConfig{.layers = c.at("layers"),
                                                           .heads = c.at("heads"),
                                                           .width = c.at("width"),
                                                           .context = c.at("context"),
                                                           .vocabulary = c.at("vocab")},
                                         options);
  }
  models::ResNetConfig config;
  config.blocks = c.at("blocks").get<std::vector<int64_t>>();
  config.widths = c.at("widths").get<std::vector<int64_t>>();
  config.bottleneck = c.at("expansion") == 4;
  config.stem = c.at("stem") == "cifar" ? models::ResNetConfig::Stem::cifar
                                        : models::ResNetConfig::Stem::imagenet;
  config.channels = c.at("channels");
  config.classes = c.at("classes");
  return std::make_unique<models::ResNet>(config, options);
}

std::unique_ptr<optim::Optimizer> make_optimizer(const Json& o, ParameterSet& parameters) {
  if (o.at("name") == "sgd") {
    return std::make_unique<optim::Sgd>(parameters,
                                        optim::SgdOptions{.lr = o.at("lr"),
                                                          .momentum = o.at("momentum"),
                                                          .weight_decay = o.at("weight_decay"),
                                                          .nesterov = o.at("nesterov")});
  }
  return std::make_unique<optim::AdamW>(parameters,
                                        optim::AdamWOptions{.lr = o.at("lr"),
                                                            .beta1 = o.at("betas")[0],
                                                            .beta2 = o.at("betas")[1],
                                                            .eps = o.at("eps"),
                                                            .weight_decay = o.at("weight_decay")});
}

struct Case {
  const char* file;
  Device device = Device::cpu();
};

std::string name_of(const ::testing::TestParamInfo<Case>& info) {
  return std::string(info.param.file);
}

class Golden : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    const std::string path = std::string(CRUCIBLE_GOLDEN_FOLDER "/") + GetParam().file + ".json";
    std::ifstream in(path);
    ASSERT_TRUE(in) << path;
    golden_ = Json::parse(in);
    seed_ = golden_.at("seed");
    model_ = make_model(golden_.at("config"), GetParam().device);
    for (const Parameter& p : model_->parameters().parameters()) parameters_[p.name] = &p;
    set_weights();
  }

  // Our order of parameters need not be PyTorch's; their names, shapes and decay must be.
  void set_weights() {
    const Json& list = golden_.at("parameters");
    ASSERT_EQ(parameters_.size(), list.size());
    uint64_t stream = 0;
    for (const Json& record : list) {
      const auto found = parameters_.find(record.at("name"));
      ASSERT_NE(found, parameters_.end()) << record.at("name");
      const Parameter& p = *found->second;
      ASSERT_EQ(models::exported_shape(p.tensor.shape(), p.layout), shape_of(record.at("shape")))
          << p.name;
      ASSERT_EQ(p.decay, record.at("decay").get<bool>()) << p.name;
      const std::vector<float> values = uniform(seed_, ++stream, p.tensor.numel(), record);
      const auto first = record.at("initial_first").get<std::vector<float>>();
      ASSERT_TRUE(std::equal(first.begin(), first.end(), values.begin())) << p.name;
      ASSERT_NEAR(norm(values), record.at("initial_norm"), 1e-9 * norm(values)) << p.name;
      models::import_bytes(std::as_bytes(std::span(values)), p.layout, p.tensor);
    }
  }

  Tensor loss(int64_t step) {
    const Json &input = golden_.at("input"), &labels = golden_.at("labels");
    const Shape x_shape = shape_of(input.at("shape")), y_shape = shape_of(labels.at("shape"));
    const uint64_t stream = batch_stream + 10 * step;
    const Device device = GetParam().device;
    Tensor x;
    if (!input.contains("lo")) {
      x = Tensor::from(integers(seed_, stream, x_shape.numel(), labels.at("classes")), x_shape,
                       device);
    } else if (x_shape.rank() == 2) {
      x = Tensor::from(uniform(seed_, stream, x_shape.numel(), input), x_shape, device);
    } else {
      x = Tensor::from(channels_last(uniform(seed_, stream, x_shape.numel(), input), x_shape),
                       {x_shape[0], x_shape[2], x_shape[3], x_shape[1]}, device);
    }
    return cross_entropy((*model_)(x), Tensor::from(integers(seed_, stream + 1, y_shape.numel(),
                                                             labels.at("classes")),
                                                    y_shape, device));
  }

  Json golden_;
  uint64_t seed_ = 0;
  std::unique_ptr<models::Module> model_;
  std::map<std::string, const Parameter*> parameters_;
};

TEST_P(Golden, FirstGradientsAreThoseOfPyTorch) {
  const Tensor first = loss(0);
  EXPECT_NEAR(first.item<float>(), golden_.at("loss_f64")[0].get<double>(),
              1e-6 * golden_.at("loss_f64")[0].get<double>());
  first.backward();
  for (const Json& record : golden_.at("parameters")) {
    const Parameter& p = *parameters_.at(record.at("name"));
    const Json& want = record.at("gradient_f64");
    const double largest = want.at("max_abs");
    const std::vector<float> gradient = exported(p.tensor.grad(), p.layout);
    double got_largest = 0.0;
    for (const float g : gradient) got_largest = std::max(got_largest, std::abs(double{g}));
    EXPECT_NEAR(got_largest, largest, gradient_bound * largest) << p.name;
    EXPECT_NEAR(norm(gradient), want.at("norm"), gradient_bound * want.at("norm").get<double>())
        << p.name;
    for (size_t i = 0; i < want.at("values").size(); ++i) {
      const int64_t at = record.at("indexes")[i];
      EXPECT_NEAR(gradient[at], want.at("values")[i], gradient_bound * largest)
          << p.name << " at " << at;
    }
  }
}

TEST_P(Golden, FiftyStepsFollowPyTorch) {
  const auto optimizer = make_optimizer(golden_.at("optimizer"), model_->parameters());
  const auto want = golden_.at("loss_f64").get<std::vector<double>>();
  ASSERT_GE(want.size(), 50u);
  for (size_t step = 0; step < want.size(); ++step) {
    const Tensor now = loss(static_cast<int64_t>(step));
    ASSERT_NEAR(now.item<float>(), want[step], loss_bound * want[step]) << "step " << step;
    now.backward();
    optimizer->step();
    optimizer->zero_grad();
  }
  for (const Json& record : golden_.at("parameters")) {
    const Parameter& p = *parameters_.at(record.at("name"));
    const double n = record.at("final_f64").at("norm");
    EXPECT_NEAR(norm(exported(p.tensor, p.layout)), n, final_bound * n) << p.name;
  }
  std::map<std::string, Tensor> buffers;
  for (const NamedTensor& b : model_->parameters().buffers()) buffers[b.name] = b.tensor;
  for (const Json& record : golden_.at("buffers")) {
    ASSERT_TRUE(buffers.contains(record.at("name"))) << record.at("name");
    const double n = record.at("final_f64").at("norm");
    EXPECT_NEAR(norm(buffers.at(record.at("name")).to_vector<float>()), n, final_bound * n)
        << record.at("name");
  }
}

// Mixed precision rounds every operand of a product: the curve leaves PyTorch's f64 one, and by how
// much depends on the model's conditioning.  The bound is what PyTorch's own autocast leaves it by,
// times two (README.md).
TEST_P(Golden, MixedPrecisionFollowsPyTorch) {
  for (const auto& [dtype, name] : {std::pair{DType::bf16, "bf16"}, {DType::f16, "fp16"}}) {
    if (!golden_.contains("autocast")) GTEST_SKIP() << "no mixed precision run of this case";
    SetUp();  // the first weights again
    const double bound =
        2.0 * golden_.at("autocast").at(name).at("largest_deviation").get<double>();
    const auto optimizer = make_optimizer(golden_.at("optimizer"), model_->parameters());
    model_->parameters().keep_narrow_copy(dtype);
    const auto want = golden_.at("loss_f64").get<std::vector<double>>();
    for (size_t step = 0; step < want.size(); ++step) {
      Tensor now;
      {
        const AutocastScope scope(dtype);
        now = loss(static_cast<int64_t>(step));
      }
      ASSERT_NEAR(now.item<float>(), want[step], bound * want[step]) << name << " step " << step;
      const double scale = dtype == DType::f16 ? 1024.0 : 1.0;
      now.backward(Tensor::full({}, scale, DType::f32, GetParam().device));
      optimizer->step(Tensor::full({}, 1.0 / scale, DType::f32, GetParam().device));
      optimizer->zero_grad();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, Golden,
                         ::testing::Values(Case{"mlp"}, Case{"resnet20"}, Case{"resnet20_28"},
                                           Case{"resnet50"}, Case{"gpt"}),
                         name_of);

}  // namespace
}  // namespace crucible
