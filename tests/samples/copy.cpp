#include <cmath>
#include <limits>

#include "tests/samples/primitive.h"

namespace crucible::testing {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

PrimitiveSample fill(std::string name, double value, Shape shape, Layout layout = Layout::dense,
                     std::vector<DType> dtypes = floats) {
  return {std::move(name),
          [=](Maker& m) {
            run(prim::Fill{.value = value, .y = m.output_as(m.dtype(), "y", shape, layout)});
          },
          std::move(dtypes)};
}

PrimitiveSample copy(std::string name, Shape shape, Layout from, Layout to,
                     std::vector<DType> dtypes = floats) {
  return {std::move(name),
          [=](Maker& m) {
            run(prim::Copy{.x = m.uniform(shape, 0.0, 100.0, from),
                           .y = m.output_as(m.dtype(), "y", shape, to)});
          },
          std::move(dtypes)};
}

// From the dtype under test to every other.
PrimitiveSample conversion(DType to) {
  return {"To" + camel_case(name_of(to)),
          [=](Maker& m) {
            run(prim::Copy{.x = m.uniform({5, 33}, 0.0, 120.0, Layout::flipped),
                           .y = m.output_as(to, "y", {5, 33})});
          },
          {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64, DType::i32, DType::u8}};
}

const std::vector<DType> all_dtypes{DType::f64, DType::f32, DType::f16, DType::bf16,
                                    DType::i64, DType::i32, DType::u8,  DType::boolean};

}  // namespace

template <>
std::vector<PrimitiveSample> Samples<prim::Fill>::all() {
  return {fill("Odd", 1.5, {3, 37}),
          fill("OneElement", -2.0, {}),
          fill("Long", 0.1, {100003}),
          fill("Gapped", 3.0, {5, 7, 3}, Layout::gapped),
          fill("Flipped", 0.25, {4, 9}, Layout::flipped),
          fill("Infinity", infinity, {17}),
          fill("Zero", 0.0, {33}, Layout::dense, all_dtypes),
          fill("One", 1.0, {4, 5}, Layout::gapped, all_dtypes)};
}

template <>
std::vector<PrimitiveSample> Samples<prim::Copy>::all() {
  std::vector<PrimitiveSample> s{
      copy("Dense", {7, 65}, Layout::dense, Layout::dense, all_dtypes),
      copy("FromFlipped", {33, 17}, Layout::flipped, Layout::dense),
      copy("FromGapped", {3, 5, 7}, Layout::gapped, Layout::dense, all_dtypes),
      copy("ToGapped", {3, 5, 7}, Layout::dense, Layout::gapped, all_dtypes),
      copy("FlippedToGapped", {4, 3, 2, 5}, Layout::flipped, Layout::gapped),
      copy("OneElement", {}, Layout::dense, Layout::dense),
      copy("LargeFlipped", {129, 257}, Layout::flipped, Layout::dense),
      {"Repeated",
       [](Maker& m) {
         run(prim::Copy{.x = m.normal({3, 1, 5}).as_strided({2, 3, 4, 5}, {0, 5, 0, 1}),
                        .y = m.output("y", {2, 3, 4, 5})});
       }},
      {"ToIntegerSaturates",
       [](Maker& m) {
         const Tensor x = m.values(
             {10}, {-1.5, 1.5, -0.9, 2.9, 3e4, -3e4, infinity, -infinity, std::nan(""), 300.0});
         run(prim::Copy{.x = x, .y = m.output_as(DType::u8, "u8", {10})});
         run(prim::Copy{.x = x, .y = m.output_as(DType::i32, "i32", {10})});
         run(prim::Copy{.x = x, .y = m.output_as(DType::i64, "i64", {10})});
       }},
      {"SpecialValues",
       [](Maker& m) {
         run(prim::Copy{.x = m.values({6}, {infinity, -infinity, std::nan(""), -0.0, 1e-7, 6e4}),
                        .y = m.output_as(DType::f16, "y", {6})});
       }},
  };
  for (const DType to : all_dtypes) s.push_back(conversion(to));
  return s;
}

}  // namespace crucible::testing
