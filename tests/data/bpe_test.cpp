#include "data/bpe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/rng.h"
#include "data/unicode.h"
#include "tests/data/made_files.h"

namespace crucible::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(Gpt2Split, CutsWordsNumbersAndMarks) {
  EXPECT_THAT(split_like_gpt2("Hello world, it's 42!!"),
              ElementsAre("Hello", " world", ",", " it", "'s", " 42", "!!"));
  EXPECT_THAT(split_like_gpt2("abc123def"), ElementsAre("abc", "123", "def"));
  EXPECT_THAT(split_like_gpt2(""), ElementsAre());
}

TEST(Gpt2Split, KnowsContractions) {
  EXPECT_THAT(
      split_like_gpt2("I'll you've we're I'm he'd can't"),
      ElementsAre("I", "'ll", " you", "'ve", " we", "'re", " I", "'m", " he", "'d", " can", "'t"));
  EXPECT_THAT(split_like_gpt2("'LL 'x"), ElementsAre("'", "LL", " '", "x"));  // lower case only
  EXPECT_THAT(split_like_gpt2("'story"), ElementsAre("'s", "tory"));
  EXPECT_THAT(split_like_gpt2("''s"), ElementsAre("''", "s"));  // the mark is already in a run
  EXPECT_THAT(split_like_gpt2(" 's"), ElementsAre(" '", "s"));
}

TEST(Gpt2Split, LeavesTheLastSpaceToTheWord) {
  EXPECT_THAT(split_like_gpt2("a   b"), ElementsAre("a", "  ", " b"));
  EXPECT_THAT(split_like_gpt2("a\n\nb"), ElementsAre("a", "\n", "\n", "b"));
  EXPECT_THAT(split_like_gpt2("a \n b"), ElementsAre("a", " \n", " b"));
  EXPECT_THAT(split_like_gpt2("a  "), ElementsAre("a", "  "));
  EXPECT_THAT(split_like_gpt2("\t\tx"), ElementsAre("\t", "\t", "x"));
  EXPECT_THAT(split_like_gpt2("  "), ElementsAre("  "));
}

TEST(Gpt2Split, KnowsLettersBeyondAscii) {
  EXPECT_THAT(split_like_gpt2("na\u00efve \u65e5\u672c\u8a9e2\u4eba \u0661\u0662"),
              ElementsAre("na\u00efve", " \u65e5\u672c\u8a9e", "2", "\u4eba", " \u0661\u0662"));
  EXPECT_THAT(split_like_gpt2("a\u3000\u3000b"), ElementsAre("a", "\u3000", "\u3000", "b"));
  EXPECT_THAT(split_like_gpt2("x\u00b2"), ElementsAre("x", "\u00b2"));  // superscript: a number
  EXPECT_THAT(split_like_gpt2("\U0001F600 \U0001F600"), ElementsAre("\U0001F600", " \U0001F600"));
}

TEST(Gpt2Split, PiecesOfAnyBytesJoinToTheText) {
  Rng rng(5);
  for (int round = 0; round < 300; ++round) {
    std::string text;
    for (int64_t i = rng.below(40); i > 0; --i) {
      text.push_back(
          static_cast<char>(rng.below(3) ? rng.below(256) : " '\n\xe3\x80sl"[rng.below(7)]));
    }
    std::string joined_text;
    for (const auto piece : split_like_gpt2(text)) {
      ASSERT_FALSE(piece.empty());
      joined_text += piece;
    }
    ASSERT_EQ(joined_text, text);
  }
}

TEST(Unicode, RefusesMalformedSequencesByteByByte) {
  for (const std::string_view bad : {"\x80", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80",
                                     "\xf4\x90\x80\x80", "\xff", "\xe3\x80", "\xf0\x9f\x98"}) {
    EXPECT_EQ(character_at(bad, 0).bytes, 1) << testing::PrintToString(std::string(bad));
    EXPECT_EQ(character_at(bad, 0).kind, CharacterClass::other);
  }
  EXPECT_EQ(character_at("\xf4\x8f\xbf\xbf", 0).code_point, 0x10ffffu);
}

/// A vocabulary of all bytes, then "he", "ll", "hell", "hello", " w".
std::string vocab_json(const std::string& more = "") {
  std::string json = "{";
  int next_free = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte != 0xad);
    char text[32];
    std::snprintf(text, sizeof text, "\"\\u%04x\":%d,", printable ? byte : next_free++, byte);
    json += text;
  }
  return json + R"("he":256,"ll":257,"hell":258,"hello":259,"\u0120w":260)" + more + "}";
}
const std::string merges_txt = "#version: 0.2\nh e\nl l\nhe ll\nhell o\n\u0120 w\n";

TEST(Bpe, MergesByRank) {
  const BpeTokenizer bpe(vocab_json(), merges_txt);
  EXPECT_EQ(bpe.vocabulary(), 261);
  EXPECT_THAT(bpe.encode("hello"), ElementsAre(259));
  EXPECT_THAT(bpe.encode("hello hello"), ElementsAre(259, 32, 259));
  EXPECT_THAT(bpe.encode("hello wet"), ElementsAre(259, 260, 'e', 't'));
  EXPECT_THAT(bpe.encode("hhe"), ElementsAre('h', 256));
  EXPECT_THAT(bpe.encode("llll"), ElementsAre(257, 257));
  EXPECT_THAT(bpe.encode("lll"), ElementsAre(257, 'l'));  // leftmost first
  EXPECT_THAT(bpe.encode(""), ElementsAre());
}

TEST(Bpe, DecodeUndoesEncodeForAnyBytes) {
  const BpeTokenizer bpe(vocab_json(R"(,"<|endoftext|>":261)"), merges_txt);
  Rng rng(3);
  for (int round = 0; round < 200; ++round) {
    std::string text;
    for (int64_t i = rng.below(60); i > 0; --i) {
      text.push_back(static_cast<char>(rng.below(2) ? rng.below(256) : "hello w"[rng.below(7)]));
    }
    const auto tokens = bpe.encode(text);
    ASSERT_EQ(bpe.decode(std::vector<int64_t>(tokens.begin(), tokens.end())), text);
  }
  EXPECT_EQ(bpe.decode(std::vector<int64_t>{261}), "<|endoftext|>");
  EXPECT_THAT(refusal([&] { bpe.decode(std::vector<int64_t>{262}); }), HasSubstr("token 262"));
  EXPECT_THAT(refusal([&] { bpe.decode(std::vector<int64_t>{-1}); }), HasSubstr("token -1"));
}

TEST(Bpe, LongPiecesTakeNoQuadraticTime) {
  const BpeTokenizer bpe(vocab_json(), merges_txt);
  const std::string text(400'000, 'l');
  EXPECT_EQ(bpe.encode(text).size(), 200'000u);
}

TEST(Bpe, RefusesFilesThatDoNotFit) {
  const auto why = [](const std::string& vocab, const std::string& merges) {
    return refusal([&] { BpeTokenizer(vocab, merges, "v.json", "m.txt"); });
  };
  EXPECT_THAT(why("", merges_txt), StartsWith("v.json: is not a JSON object"));
  EXPECT_THAT(why("[1]", merges_txt), HasSubstr("not a JSON object"));
  EXPECT_THAT(why(std::string(200'000, '['), merges_txt), HasSubstr("not a JSON object"));
  EXPECT_THAT(why("{\"a\":0}", merges_txt), HasSubstr("no token for byte 0"));
  EXPECT_THAT(why(vocab_json(R"(,"x1":999999)"), merges_txt), HasSubstr("number 999999"));
  EXPECT_THAT(why(vocab_json(R"(,"x1":5)"), merges_txt), HasSubstr("expected each of [0, 262)"));
  EXPECT_THAT(why(vocab_json(R"(,"x1":"y")"), merges_txt), HasSubstr("\"x1\""));
  EXPECT_THAT(why(vocab_json(R"(,"x1":-1)"), merges_txt), HasSubstr("number -1"));
  EXPECT_THAT(why(vocab_json(), "#version: 0.2\nh e\nq q\n"),
              StartsWith("m.txt: line 3 is \"q q\""));
  EXPECT_THAT(why(vocab_json(), "nospace\n"), HasSubstr("expected two tokens"));
}

TEST(ByteTokens, AreTheBytes) {
  const ByteTokenizer bytes;
  EXPECT_THAT(bytes.encode("a\xff"), ElementsAre(97, 255));
  EXPECT_EQ(bytes.decode(std::vector<int64_t>{97, 255}), "a\xff");
  EXPECT_THAT(refusal([&] { bytes.decode(std::vector<int64_t>{256}); }), HasSubstr("token 256"));
}

}  // namespace
}  // namespace crucible::data
