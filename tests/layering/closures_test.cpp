#include "tests/layering/closures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/layering/source_tree.h"

namespace crucible::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

SourceFile op_that_captures(const std::string& captures) {
  return {"ops/a.cpp",
          "struct Kept {\n  Tensor o, lse;\n  double scale;\n};\n}\n"
          "Tensor a(const Tensor& x, const std::vector<Tensor>& all) {\n"
          "  Tensor y = empty_like(x);\n"
          "  return record(op, y, {x}, [" +
              captures + "](const Tensor& dy) -> Gradients {"};
}

TEST(Closures, OfOpsCaptureSavedTensorsOnly) {
  int count = 0;
  for (const SourceFile& file : source_files()) {
    if (file.path.starts_with("ops/") || file.path.starts_with("models/")) {
      count += count_backward_closures(file);
      EXPECT_THAT(tensors_captured(file), IsEmpty());
    }
  }
  EXPECT_GE(count, 20) << "The closures are written in a way that this test does not recognise.";
}

TEST(Closures, ThatCaptureValuesAndSavedTensorsPass) {
  EXPECT_THAT(tensors_captured(op_that_captures("axis, from = x.shape(), y = save(y), "
                                                "lse = save(f.lse), scale = f.scale")),
              IsEmpty());
}

TEST(Closures, ThatCaptureATensorAreFound) {
  EXPECT_THAT(tensors_captured(op_that_captures("axis, y")),
              ElementsAre("ops/a.cpp:8: [y]: a Tensor that is not saved"));
  EXPECT_THAT(tensors_captured(op_that_captures("&x")), ElementsAre(HasSubstr("[&x]")));
  EXPECT_THAT(tensors_captured(op_that_captures("all")), ElementsAre(HasSubstr("[all]")));
  EXPECT_THAT(tensors_captured(op_that_captures("z = std::move(y)")),
              ElementsAre(HasSubstr("[z = std::move(y)]")));
  EXPECT_THAT(tensors_captured(op_that_captures("o = f.o")), ElementsAre(HasSubstr("[o = f.o]")));
}

TEST(Closures, ThatCaptureByDefaultAreFound) {
  EXPECT_THAT(tensors_captured(op_that_captures("=")), ElementsAre(HasSubstr("default")));
  EXPECT_THAT(tensors_captured(op_that_captures("&, axis")), ElementsAre(HasSubstr("default")));
}

}  // namespace
}  // namespace crucible::testing
