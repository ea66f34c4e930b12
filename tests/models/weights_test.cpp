#include "models/weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "core/error.h"
#include "core/storage.h"

namespace crucible::models {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

template <class T = float>
Tensor ramp(const Shape& shape, float first) {
  std::vector<T> values(static_cast<size_t>(shape.numel()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = T(first + static_cast<float>(i));
  return Tensor::from(values, shape);
}

// Names and layouts as in a small ResNet.
std::vector<NamedTensor> model(float first, int64_t classes = 10) {
  return {{"conv1.weight", ramp({4, 3, 3, 2}, first), ExportLayout::oihw},
          {"bn1.weight", ramp({4}, first)},
          {"bn1.running_mean", ramp({4}, first)},
          {"layer1.0.square", ramp({8, 8}, first)},
          {"layer1.0.wide", ramp({64, 32}, first)},
          {"fc.weight", ramp({classes, 4}, first)},
          {"fc.bias", ramp({classes}, first)}};
}

class Weights : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "crucible-weights-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    path_ = folder_ / "model.safetensors";
  }
  void TearDown() override { fs::remove_all(folder_); }

  // Saves `tensors`, then replaces `from` by `to`, of equal length, in the file.
  void save_edited(const std::vector<NamedTensor>& tensors, const std::string& from,
                   const std::string& to) {
    save_weights(path_, tensors);
    std::vector<std::byte> bytes = read_file(path_, 1 << 24);
    std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    ASSERT_EQ(from.size(), to.size());
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos);
    std::memcpy(text.data() + at, to.data(), to.size());
    write_file_atomically(path_, std::as_bytes(std::span(text)));
  }
  // Expects a refusal with this text, and the model as it was.
  void expect_refused(const std::vector<NamedTensor>& targets, const std::string& text,
                      const LoadOptions& options = {}) {
    std::vector<std::vector<float>> before;
    for (const NamedTensor& t : targets) before.push_back(t.tensor.to_vector<float>());
    EXPECT_THAT([&] { load_weights(path_, targets, options); },
                ThrowsMessage<InvalidArgument>(AllOf(HasSubstr(path_.string()), HasSubstr(text))));
    for (size_t i = 0; i < targets.size(); ++i) {
      EXPECT_EQ(targets[i].tensor.to_vector<float>(), before[i]) << targets[i].name;
    }
  }
  fs::path folder_, path_;
};

void expect_equal(const std::vector<NamedTensor>& a, const std::vector<NamedTensor>& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].tensor.to_vector<float>(), b[i].tensor.to_vector<float>()) << a[i].name;
  }
}

TEST_F(Weights, ComeBackAsTheyWere) {
  save_weights(path_, model(1));
  const auto targets = model(1000);
  const LoadReport report = load_weights(path_, targets);
  EXPECT_EQ(report.loaded, 7);
  EXPECT_THAT(report.untouched, IsEmpty());
  EXPECT_THAT(report.unread, IsEmpty());
  expect_equal(targets, model(1));
  EXPECT_EQ(SafetensorsFile(path_).header().metadata, (Metadata{{"format", "pt"}}));
}

TEST_F(Weights, LoadingCountsAsAChangeInPlace) {
  save_weights(path_, model(1));
  const auto targets = model(2);
  const auto version = [&] { return targets[0].tensor.storage()->version(); };
  const uint64_t before = version();
  load_weights(path_, targets);
  EXPECT_GT(version(), before);
}

TEST_F(Weights, AMissingTensorIsRefused) {
  auto less = model(1);
  less.erase(less.begin() + 1);
  save_weights(path_, less);
  expect_refused(model(2), "1 missing (bn1.weight), 0 unexpected, 0 mismatched, 6 match; check");
}

TEST_F(Weights, AnUnexpectedTensorIsRefused) {
  auto more = model(1);
  more.push_back({"bn1.num_batches_tracked", Tensor::from(std::vector<int64_t>{3}, {})});
  save_weights(path_, more);
  expect_refused(model(2), "0 missing, 1 unexpected (bn1.num_batches_tracked), 0 mismatched");
  const auto targets = model(2);
  const LoadReport report = load_weights(
      path_, targets, {.may_skip = [](std::string_view n) { return n.ends_with("_tracked"); }});
  EXPECT_EQ(report.loaded, 7);
  expect_equal(targets, model(1));
}

TEST_F(Weights, APrefixIsRefusedUnlessAskedFor) {
  auto prefixed = model(1);
  for (NamedTensor& t : prefixed) t.name = "module." + t.name;
  save_weights(path_, prefixed);
  expect_refused(model(2),
                 "7 missing (conv1.weight; bn1.weight; bn1.running_mean; ...), 7 unexpected "
                 "(module.bn1.running_mean; module.bn1.weight; module.conv1.weight; ...)");
  expect_refused(model(2), "nothing fits", {.partial = true});
  const auto targets = model(2);
  EXPECT_EQ(load_weights(path_, targets, {.file_prefix = "module."}).loaded, 7);
  expect_equal(targets, model(1));
}

TEST_F(Weights, TheTransposedShapeIsRefused) {
  save_edited(model(1), "\"shape\":[64,32]", "\"shape\":[32,64]");
  expect_refused(model(2), "1 mismatched (layer1.0.wide: file F32 [32, 64], model F32 [64, 32])");
}

TEST_F(Weights, ASquareMatrixHasOneShape) {
  // The transpose of a square shape is the same header, so the bytes decide.
  save_edited(model(1), "\"shape\":[8,8]", "\"shape\":[8,8]");
  const auto targets = model(2);
  load_weights(path_, targets);
  expect_equal(targets, model(1));
}

TEST_F(Weights, AConvolutionInOurOrderOfAxesIsRefused) {
  auto wrong = model(1);
  wrong[0].layout = ExportLayout::as_is;
  save_weights(path_, wrong);
  expect_refused(model(2), "conv1.weight: file F32 [4, 3, 3, 2], model F32 [4, 2, 3, 3]");
}

TEST_F(Weights, AnotherNumberOfClassesIsRefused) {
  save_weights(path_, model(1, 10));
  expect_refused(model(2, 100),
                 "2 mismatched (fc.weight: file F32 [10, 4], model F32 [100, 4]; fc.bias: file F32 "
                 "[10], model F32 [100]), 5 match");
}

TEST_F(Weights, PartialLoadsWhatFitsAndListsTheRest) {
  auto file = model(1, 10);
  file.erase(file.begin() + 2);
  file.push_back({"extra", ramp({2}, 0)});
  save_weights(path_, file);
  auto targets = model(1000, 100);
  const LoadReport report = load_weights(path_, targets, {.partial = true});
  EXPECT_EQ(report.loaded, 4);
  EXPECT_THAT(report.untouched, ElementsAre("bn1.running_mean", "fc.weight", "fc.bias"));
  EXPECT_THAT(report.unread, ElementsAre("extra"));
  auto expected = model(1, 100);
  for (size_t i : {2, 5, 6}) expected[i] = model(1000, 100)[i];
  expect_equal(targets, expected);
}

TEST_F(Weights, AnotherDTypeWithTheWrongLengthIsDamage) {
  save_edited(model(1), R"("bn1.weight":{"dtype":"F32")", R"("bn1.weight":{"dtype":"I64")");
  const auto targets = model(2);
  EXPECT_THAT([&] { load_weights(path_, targets); },
              ThrowsMessage<IoError>(HasSubstr("do not match I64 [4]")));
  expect_equal(targets, model(2));
}

TEST_F(Weights, AnotherDTypeIsRefusedUnlessAskedFor) {
  auto half = model(1);
  half[1].tensor = ramp<BFloat16>({4}, 1);
  save_weights(path_, half);
  expect_refused(model(2), "1 mismatched (bn1.weight: file BF16 [4], model F32 [4])");
  const auto targets = model(2);
  EXPECT_EQ(load_weights(path_, targets, {.convert_dtype = true}).loaded, 7);
  expect_equal(targets, model(1));
}

TEST_F(Weights, ConversionRoundsToNearestEvenBothWays) {
  const std::vector<float> x = {1.0f, 1.00390625f, 1.01171875f, -3.14159f, 1e-8f, 70000.0f};
  save_weights(
      path_, std::vector<NamedTensor>{{"conv", Tensor::from(x, {1, 1, 2, 3}), ExportLayout::oihw}});
  const std::vector<BFloat16> zeros(6);
  const std::vector<NamedTensor> b = {
      {"conv", Tensor::from(zeros, {1, 1, 2, 3}), ExportLayout::oihw}};
  load_weights(path_, b, {.convert_dtype = true});
  const auto back = b[0].tensor.to_vector<BFloat16>();
  for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(back[i].bits, BFloat16(x[i]).bits) << i;
  const std::vector<NamedTensor> h = {{"conv", ramp<Float16>({1, 1, 2, 3}, 0), ExportLayout::oihw}};
  save_weights(path_, b);
  load_weights(path_, h, {.convert_dtype = true});
  const auto halves = h[0].tensor.to_vector<Float16>();
  for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(halves[i].bits, Float16(back[i]).bits) << i;
}

TEST_F(Weights, IntegersAreNeverConverted) {
  const std::vector<NamedTensor> ids = {{"ids", Tensor::from(std::vector<int32_t>{1, 2}, {2})}};
  save_weights(path_, ids);
  const std::vector<NamedTensor> floats = {{"ids", ramp({2}, 0)}};
  expect_refused(floats, "ids: file I32 [2], model F32 [2]", {.convert_dtype = true});
}

TEST_F(Weights, ATargetListedTwiceIsRefused) {
  save_weights(path_, std::vector<NamedTensor>{{"a", ramp({2}, 0)}});
  const std::vector<NamedTensor> twice = {{"a", ramp({2}, 0)}, {"a", ramp({2}, 0)}};
  EXPECT_THROW(load_weights(path_, twice), InvalidArgument);
}

TEST_F(Weights, AFailedSaveLeavesTheOldFile) {
  save_weights(path_, model(1));
  auto bad = model(2);
  bad.push_back(bad[0]);
  EXPECT_THROW(save_weights(path_, bad), InvalidArgument);
  const auto targets = model(3);
  load_weights(path_, targets);
  expect_equal(targets, model(1));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

}  // namespace
}  // namespace crucible::models
