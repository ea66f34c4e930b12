#include "core/shape.h"

#include <gmock/gmock.h>

#include "core/error.h"
#include "core/tensor.h"
#include "ops/view.h"
#include "tests/reference/reference_backend.h"

namespace crucible {
namespace {

using ::testing::HasSubstr;

template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const InvalidArgument& e) {
    return e.what();
  }
  return "nothing was thrown";
}

TEST(Shape, CountsItsElements) {
  EXPECT_EQ(Shape{}.numel(), 1);
  EXPECT_EQ(Shape{}.rank(), 0);
  EXPECT_EQ((Shape{2, 3, 4}).numel(), 24);
  EXPECT_EQ((Shape{2, 0, 4}).numel(), 0);
  EXPECT_EQ((Shape{1, 1, 1, 1, 1, 1, 1, 1}).rank(), Shape::max_rank);
}

TEST(Shape, EditsOneAxis) {
  const Shape s{2, 3, 4};
  EXPECT_EQ(s.with(1, 7), (Shape{2, 7, 4}));
  EXPECT_EQ(s.without(0), (Shape{3, 4}));
  EXPECT_EQ(s.insert(3, 5), (Shape{2, 3, 4, 5}));
  EXPECT_EQ(Shape{}.insert(0, 1), Shape{1});
  EXPECT_NE(s, (Shape{2, 3}));
  EXPECT_EQ(to_string(s), "[2, 3, 4]");
  EXPECT_EQ(to_string(Shape{}), "[]");
}

TEST(Shape, ThrowsNamingWhatCannotBe) {
  EXPECT_THAT(error_of([] {
                Shape({2, -1});
              }),
              HasSubstr("shape: size -1 of axis 1 is negative: [2, -1]"));
  EXPECT_THAT(error_of([] {
                Shape({1, 1, 1, 1, 1, 1, 1, 1, 1});
              }),
              HasSubstr("shape: 9 axes are too many"));
  EXPECT_THROW(Shape({1, 1, 1, 1, 1, 1, 1, 1}).insert(0, 1), InvalidArgument);
}

// Element counts beyond 2^31 are exact, and those beyond 2^63 refused, also beside a zero.
TEST(Shape, CountsBeyond32Bits) {
  EXPECT_EQ((Shape{65536, 65536}).numel(), int64_t{1} << 32);
  EXPECT_EQ((Shape{INT64_MAX}).numel(), INT64_MAX);
  EXPECT_EQ((Shape{int64_t{1} << 31, int64_t{1} << 31}).numel(), int64_t{1} << 62);
}

TEST(Shape, RefusesAProductBeyond63Bits) {
  EXPECT_THAT(error_of([] {
                Shape({int64_t{1} << 32, int64_t{1} << 31});
              }),
              HasSubstr("shape: the element count of [4294967296, 2147483648] passes 2^63 - 1"));
  EXPECT_THROW(Shape({int64_t{1} << 32, int64_t{1} << 32}), InvalidArgument);  // wraps to 0
  EXPECT_THROW(Shape({int64_t{1} << 32, int64_t{1} << 32, 0}), InvalidArgument);
  EXPECT_THROW(Shape({0, int64_t{1} << 32, int64_t{1} << 32}), InvalidArgument);
  EXPECT_THROW(Shape({INT64_MAX, 2}), InvalidArgument);
}

TEST(Shape, StridesAreRowMajor) {
  const Strides s = row_major({2, 3, 4});
  EXPECT_EQ(s[0], 12);
  EXPECT_EQ(s[1], 4);
  EXPECT_EQ(s[2], 1);
  const Strides wide = row_major({65536, 65536, 2});
  EXPECT_EQ(wide[0], 131072);
}

// One element seen as 2^32: sizes, strides and offsets, without the memory.
TEST(Shape, ViewsBeyond32BitsHaveRightSizesAndOffsets) {
  const Tensor one = Tensor::full({1, 1}, 3.0, DType::f32, reference::device);
  const Tensor wide = expand(one, {65536, 65536});
  EXPECT_EQ(wide.numel(), int64_t{1} << 32);
  EXPECT_EQ(wide.nbytes(), int64_t{1} << 34);
  EXPECT_EQ(wide.stride(0), 0);
  EXPECT_EQ(wide.stride(1), 0);
  EXPECT_FALSE(wide.is_contiguous());
  EXPECT_EQ(wide.raw_data(), one.raw_data());
  const Tensor corner = slice(slice(wide, 0, 65535, 65536), 1, 65535, 65536);
  EXPECT_EQ(corner.raw_data(), one.raw_data());
  EXPECT_EQ(corner.item<float>(), 3.0f);
  // Offsets as they would be in a dense tensor of that shape.
  const Tensor dense = one.as_strided({65536, 65536}, row_major({65536, 65536}));
  const Tensor last = dense.as_strided({1}, {1}, 65535 * dense.stride(0) + 65535);
  EXPECT_EQ(last.raw_data() - one.raw_data(), ((int64_t{1} << 32) - 1) * 4);
  EXPECT_THROW(expand(one, {int64_t{1} << 32, int64_t{1} << 32}), InvalidArgument);
}

TEST(Shape, TensorsBeyond63BitsOfBytesAreRefused) {
  EXPECT_THAT(error_of([] { Tensor::empty({int64_t{1} << 61}, DType::f64, reference::device); }),
              HasSubstr("passes 2^63 bytes"));
}

TEST(Shape, BroadcastsFromTheLastAxis) {
  auto both = [](const Shape& a, const Shape& b) { return broadcast_shapes("op", a, b); };
  EXPECT_EQ(both({5, 4}, {1}), (Shape{5, 4}));
  EXPECT_EQ(both({4, 1}, {1, 4}), (Shape{4, 4}));
  EXPECT_EQ(both({}, {2}), (Shape{2}));
  EXPECT_EQ(both({}, {}), Shape{});
  EXPECT_EQ(both({4, 0}, {4, 1}), (Shape{4, 0}));
  EXPECT_EQ(both({0}, {1}), (Shape{0}));
  EXPECT_EQ(both({2, 3, 4}, {3, 1}), (Shape{2, 3, 4}));
  EXPECT_THAT(error_of([&] {
                both({2, 3}, {2, 4});
              }),
              HasSubstr("op: shapes do not broadcast: [2, 3] and [2, 4]; sizes 3 and 4 at axis 1 "
                        "from the end"));
  EXPECT_THROW(both({0}, {2}), InvalidArgument);
}

}  // namespace
}  // namespace crucible
