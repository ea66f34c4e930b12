// Token files and windows; the sparse token file of pain log P7.
#include "data/token_bin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <numeric>
#include <set>

#include "tests/data/made_files.h"

namespace crucible::data {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

void put(Bytes& bytes, uint64_t value, int width) {
  for (int i = 0; i < width; ++i) bytes.push_back(static_cast<std::byte>(value >> (8 * i)));
}

Bytes raw_file(const std::vector<uint16_t>& tokens) {
  Bytes bytes;
  for (const uint16_t token : tokens) put(bytes, token, 2);
  return bytes;
}

Bytes file_with_header(uint32_t magic, uint32_t version, uint32_t count,
                       const std::vector<uint32_t>& tokens, int width) {
  Bytes bytes;
  for (const uint32_t value : {magic, version, count}) put(bytes, value, 4);
  bytes.resize(1024);
  for (const uint32_t token : tokens) put(bytes, token, width);
  return bytes;
}

std::vector<int64_t> all_tokens(const TokenSource& source) {
  std::vector<int64_t> tokens(static_cast<size_t>(source.size()));
  source.read(0, tokens);
  return tokens;
}

std::string why(const Bytes& bytes) {
  const TemporaryDirectory directory;
  write_bytes(directory / "t.bin", bytes);
  const std::string text = refusal([&] { TokenFile{directory / "t.bin"}; });
  EXPECT_THAT(text, HasSubstr((directory / "t.bin").string()));
  return text;
}

TEST(TokenFile, ReadsTheThreeFormats) {
  const TemporaryDirectory directory;
  write_bytes(directory / "raw.bin", raw_file({1, 2, 50256, 256}));
  write_bytes(directory / "v1.bin", file_with_header(20240520, 1, 3, {7, 50256, 9}, 2));
  write_bytes(directory / "v7.bin", file_with_header(20240801, 7, 2, {128255, 70000}, 4));
  const TokenFile raw(directory / "raw.bin"), v1(directory / "v1.bin"), v7(directory / "v7.bin");
  EXPECT_THAT(all_tokens(raw), ElementsAre(1, 2, 50256, 256));
  EXPECT_THAT(all_tokens(v1), ElementsAre(7, 50256, 9));
  EXPECT_THAT(all_tokens(v7), ElementsAre(128255, 70000));
  EXPECT_EQ(raw.vocabulary(), 50257);
  EXPECT_EQ(v7.vocabulary(), 128256);
}

TEST(TokenFile, RefusesFilesThatAreNotWhatTheySay) {
  EXPECT_THAT(why({}), HasSubstr("holds 0 bytes"));
  EXPECT_THAT(why(bytes_from("odd")), HasSubstr("holds 3 bytes"));
  EXPECT_THAT(why(first_bytes(file_with_header(20240520, 1, 3, {}, 2), 0.5)),
              HasSubstr("holds 512 bytes"));
  EXPECT_THAT(why(file_with_header(20240520, 7, 1, {5}, 2)), HasSubstr("version is 7, expected 1"));
  EXPECT_THAT(why(file_with_header(20240801, 1, 1, {5}, 4)), HasSubstr("version is 1, expected 7"));
  EXPECT_THAT(why(file_with_header(20240520, 1, 4, {5, 6, 7}, 2)),
              AllOf(HasSubstr("4 tokens of 2 bytes"), HasSubstr("6 bytes of tokens")));
  EXPECT_THAT(why(file_with_header(20240520, 1, 0xffffffff, {5, 6, 7}, 2)),
              HasSubstr("4294967295 tokens"));
  EXPECT_THAT(why(file_with_header(20240520, 1, 0, {}, 2)), HasSubstr("0 tokens"));
}

TEST(TokenFile, NamesATokenOutsideTheVocabulary) {
  const TemporaryDirectory directory;
  write_bytes(directory / "raw.bin", raw_file({1, 2, 50257, 4}));
  const TokenFile file(directory / "raw.bin");
  EXPECT_THAT(refusal([&] { all_tokens(file); }),
              AllOf(HasSubstr("token 50257 at position 2"), HasSubstr("vocabulary of 50257")));
  std::vector<int64_t> two(2);
  EXPECT_THAT(refusal([&] { file.read(3, two); }), HasSubstr("[3, 5) are not inside [0, 4)"));
}

TEST(TokenFile, ReadsNearTheEndOfFiveGiB) {
  const TemporaryDirectory directory;
  const int64_t bytes = int64_t{5} << 30;
  {
    std::ofstream out(directory / "big.bin", std::ios::binary);
    out.seekp(bytes - 8);
    out.write("\x01\x00\x02\x00\x03\x00\x04\x00", 8);
    ASSERT_TRUE(out.good());
  }
  const auto file = std::make_shared<TokenFile>(directory / "big.bin");
  ASSERT_EQ(file->size(), bytes / 2);
  std::vector<int64_t> tail(6);
  file->read(bytes / 2 - 6, tail);
  EXPECT_THAT(tail, ElementsAre(0, 0, 1, 2, 3, 4));

  const TokenWindows windows(file, {.seq_len = 3});
  std::vector<int64_t> input(3), target(3);
  Rng rng(1);
  const int64_t last = windows.size() - 1;
  windows.read(last, rng, std::as_writable_bytes(std::span(input)),
               std::as_writable_bytes(std::span(target)));
  // 2^31 + 2^29 tokens: the last of the windows of 3 starts 4 tokens before the end.
  EXPECT_EQ(last * 3, bytes / 2 - 4);
  EXPECT_THAT(input, ElementsAre(1, 2, 3));
  EXPECT_THAT(target, ElementsAre(2, 3, 4));
}

TEST(TokenFile, AFileThatShrinksIsAnErrorNotASignal) {
  const TemporaryDirectory directory;
  write_bytes(directory / "raw.bin", raw_file(std::vector<uint16_t>(5000, 7)));
  const TokenFile file(directory / "raw.bin");
  std::filesystem::resize_file(directory / "raw.bin", 100);
  EXPECT_THAT(refusal([&] { all_tokens(file); }), HasSubstr("raw.bin"));
}

TokenSourcePtr counting(int64_t count) {
  std::vector<uint16_t> tokens(static_cast<size_t>(count));
  std::iota(tokens.begin(), tokens.end(), uint16_t{0});
  return std::make_shared<MemoryTokens<uint16_t>>(std::move(tokens), 1000, "counting");
}

TEST(TokenWindows, TargetsAreTheNextTokens) {
  const TokenWindows windows(counting(12), {.seq_len = 4, .begin = 1});
  EXPECT_EQ(windows.size(), 2);
  std::vector<int64_t> input(4), target(4);
  Rng rng(1);
  windows.read(1, rng, std::as_writable_bytes(std::span(input)),
               std::as_writable_bytes(std::span(target)));
  EXPECT_THAT(input, ElementsAre(5, 6, 7, 8));
  EXPECT_THAT(target, ElementsAre(6, 7, 8, 9));
}

TEST(TokenWindows, RandomOffsetsStayInRange) {
  const TokenWindows windows(counting(100),
                             {.seq_len = 10, .begin = 5, .end = 60, .random_offset = true});
  std::set<int64_t> starts;
  for (int64_t i = 0; i < windows.size(); ++i) {
    for (uint64_t seed = 0; seed < 50; ++seed) {
      std::vector<int64_t> input(10), target(10);
      Rng rng(seed);
      windows.read(i, rng, std::as_writable_bytes(std::span(input)),
                   std::as_writable_bytes(std::span(target)));
      EXPECT_GE(input.front(), 5 + 10 * i);
      EXPECT_LT(input.front(), 15 + 10 * i);
      EXPECT_LT(target.back(), 60);
      starts.insert(input.front());
    }
  }
  EXPECT_EQ(starts.size(), 45u);  // 5 ... 49
}

TEST(TokenWindows, RefusesTextShorterThanAWindow) {
  EXPECT_THAT(refusal([&] { TokenWindows(counting(10), {.seq_len = 10}); }),
              HasSubstr("10 tokens of counting do not make one window of 10"));
  EXPECT_THAT(refusal([&] { TokenWindows(counting(10), {.seq_len = 0}); }), HasSubstr("length 0"));
  EXPECT_THAT(refusal([&] { TokenWindows(counting(10), {.seq_len = 2, .end = 11}); }),
              HasSubstr("[0, 11)"));
}

}  // namespace
}  // namespace crucible::data
