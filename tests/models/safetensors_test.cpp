#include "models/safetensors.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <ctime>
#include <fstream>
#include <limits>
#include <string>

#include "core/error.h"

namespace crucible::models {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string length_field(uint64_t n) {
  std::string text(8, '\0');
  std::memcpy(text.data(), &n, 8);
  return text;
}

// A file of this header text and that many bytes of data.
std::string file_of(const std::string& json, size_t data_bytes = 0) {
  return length_field(json.size()) + json + std::string(data_bytes, '\1');
}

SafetensorsHeader parse(const std::string& file) {
  return parse_safetensors(bytes_of(file), static_cast<int64_t>(file.size()), "test.safetensors");
}

// A tensor's line in a header.
std::string line(const std::string& name, const std::string& dtype, const std::string& shape,
                 const std::string& offsets) {
  return fmt::format(R"("{}":{{"dtype":"{}","shape":{},"data_offsets":{}}})", name, dtype, shape,
                     offsets);
}
std::string one(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return fmt::format("{{{}}}", line("a", dtype, shape, offsets));
}

class Safetensors : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "crucible-safetensors-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path put(const std::string& contents) const {
    std::ofstream(folder_ / "file", std::ios::binary) << contents;
    return folder_ / "file";
  }
  fs::path folder_;
};

std::string write_to_text(const fs::path& path, const SafetensorsWriter& writer) {
  OutputFile out(path);
  writer.write(out);
  out.finish();
  const std::vector<std::byte> bytes = read_file(path, 1 << 28);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST_F(Safetensors, WritesWhatTheFormatAsksFor) {
  SafetensorsWriter writer(Metadata{{"format", "pt"}});
  const std::vector<float> a = {1.0f, -2.0f};
  const std::vector<uint8_t> b = {7, 8, 9};
  writer.add("u", DType::u8, {3}, std::as_bytes(std::span(b)));
  writer.add({.name = "w", .tensor = Tensor::from(a, {2, 1})});
  std::string json = R"({"__metadata__":{"format":"pt"},)" + line("w", "F32", "[2,1]", "[0,8]") +
                     "," + line("u", "U8", "[3]", "[8,11]") + "}";
  json.resize((json.size() + 7) / 8 * 8, ' ');
  std::string data(11, '\0');
  std::memcpy(data.data(), a.data(), 8);
  std::memcpy(data.data() + 8, b.data(), 3);
  EXPECT_EQ(write_to_text(folder_ / "a", writer), length_field(json.size()) + json + data);
}

TEST_F(Safetensors, ReadsBackEveryDType) {
  SafetensorsWriter writer;
  std::vector<NamedTensor> tensors;
  {
    const auto add = [&]<class T>(std::vector<T> values) {
      const auto n = static_cast<int64_t>(values.size());
      tensors.push_back({std::string(name_of(dtype_of<T>)), Tensor::from(values, {1, n})});
    };
    add(std::vector<double>{0.1, -1e300, std::numeric_limits<double>::infinity()});
    add(std::vector<float>{0.1f, -0.0f, std::numeric_limits<float>::quiet_NaN()});
    add(std::vector<Float16>{0.1f, 65504.0f});
    add(std::vector<BFloat16>{0.1f, 3e38f, -1.0f});
    add(std::vector<int64_t>{INT64_MIN, 0, INT64_MAX});
    add(std::vector<int32_t>{INT32_MIN, INT32_MAX});
    add(std::vector<uint8_t>{0, 255, 3, 4, 5});
  }
  const bool flags[] = {true, false, true};
  tensors.push_back({"bool", Tensor::from(std::span<const bool>(flags), {1, 3})});
  for (const NamedTensor& t : tensors) writer.add(t);
  write_to_text(folder_ / "a", writer);

  const SafetensorsFile file(folder_ / "a");
  EXPECT_EQ(file.header().data_begin % 8, 0);
  ASSERT_EQ(file.tensors().size(), 8u);
  for (const NamedTensor& t : tensors) {
    const TensorEntry* entry = file.find(t.name);
    ASSERT_NE(entry, nullptr) << t.name;
    EXPECT_EQ(entry->begin % size_of(entry->dtype), 0) << t.name;
    const Tensor back = file.read(t.name);
    EXPECT_EQ(back.shape(), t.tensor.shape());
    EXPECT_EQ(back.dtype(), t.tensor.dtype());
    EXPECT_EQ(std::memcmp(back.raw_data(), t.tensor.raw_data(), t.tensor.nbytes()), 0) << t.name;
  }
  EXPECT_EQ(file.find("none"), nullptr);
  EXPECT_THAT([&] { file.read("none"); },
              ThrowsMessage<IoError>(HasSubstr(R"(there is no tensor "none"; the file holds 8)")));
}

TEST_F(Safetensors, KeepsEmptyAndZeroDimensionalTensors) {
  SafetensorsWriter writer;
  writer.add("empty", DType::f32, {4, 0, 2}, {});
  writer.add({.name = "scalar", .tensor = Tensor::from(std::vector<int64_t>{41}, {})});
  writer.add("also empty", DType::i64, {0}, {});
  write_to_text(folder_ / "a", writer);
  const SafetensorsFile file(folder_ / "a");
  EXPECT_EQ(file.read("empty").shape(), Shape({4, 0, 2}));
  EXPECT_EQ(file.read("also empty").numel(), 0);
  EXPECT_EQ(file.read("scalar").shape().rank(), 0);
  EXPECT_EQ(file.read("scalar").item<int64_t>(), 41);
}

TEST_F(Safetensors, WithoutTensorsIsValid) {
  EXPECT_TRUE(parse(file_of("{}")).tensors.empty());
  SafetensorsWriter writer;
  const std::string text = write_to_text(folder_ / "a", writer);
  EXPECT_EQ(text, file_of("{}      "));
  EXPECT_TRUE(SafetensorsFile(folder_ / "a").tensors().empty());
}

TEST_F(Safetensors, PermutesToTheLayoutOfTheFile) {
  // [O=2, Kh=1, Kw=2, I=3] -> [O=2, I=3, Kh=1, Kw=2]
  const std::vector<int32_t> conv = {0, 1, 2, 3, 4, 5, 10, 11, 12, 13, 14, 15};
  const std::vector<int32_t> linear = {0, 1, 2, 3, 4, 5};
  SafetensorsWriter writer;
  writer.add({"conv", Tensor::from(conv, {2, 1, 2, 3}), ExportLayout::oihw});
  writer.add({"linear", Tensor::from(linear, {2, 3}), ExportLayout::in_out});
  write_to_text(folder_ / "a", writer);
  const SafetensorsFile file(folder_ / "a");
  EXPECT_EQ(file.read("conv").shape(), Shape({2, 3, 1, 2}));
  EXPECT_EQ(file.read("conv").to_vector<int32_t>(),
            (std::vector<int32_t>{0, 3, 1, 4, 2, 5, 10, 13, 11, 14, 12, 15}));
  EXPECT_EQ(file.read("linear").shape(), Shape({3, 2}));
  EXPECT_EQ(file.read("linear").to_vector<int32_t>(), (std::vector<int32_t>{0, 3, 1, 4, 2, 5}));
  EXPECT_THROW(writer.add({"bad", Tensor::from(linear, {6}), ExportLayout::oihw}), InvalidArgument);
}

TEST_F(Safetensors, EqualContentsGiveEqualBytes) {
  const std::vector<uint8_t> bytes(6);
  SafetensorsWriter ab, ba;
  for (const char* name : {"a", "b"}) ab.add(name, DType::u8, {6}, std::as_bytes(std::span(bytes)));
  for (const char* name : {"b", "a"}) ba.add(name, DType::u8, {6}, std::as_bytes(std::span(bytes)));
  EXPECT_EQ(write_to_text(folder_ / "a", ab), write_to_text(folder_ / "b", ba));
}

TEST_F(Safetensors, NamesOfAnyUnicodeSurvive) {
  const std::string name = "l\"ayer\\ \n\u00fc\u2207\U0001F525";
  SafetensorsWriter writer(Metadata{{"key \"q\"", "\t"}});
  writer.add(name, DType::u8, {0}, {});
  write_to_text(folder_ / "a", writer);
  const SafetensorsFile file(folder_ / "a");
  EXPECT_NE(file.find(name), nullptr);
  EXPECT_EQ(file.header().metadata.at("key \"q\""), "\t");
}

TEST_F(Safetensors, WriterRefusesWhatNobodyCouldRead) {
  const auto write = [&](const SafetensorsWriter& writer) {
    OutputFile out(folder_ / "a");
    writer.write(out);
  };
  SafetensorsWriter writer, latin1;
  writer.add("a", DType::u8, {0}, {});
  EXPECT_THAT([&] { writer.add("a", DType::f32, {0}, {}); },
              ThrowsMessage<InvalidArgument>(HasSubstr("\"a\" occurs twice")));
  EXPECT_THAT([&] { writer.add("__metadata__", DType::u8, {0}, {}); },
              ThrowsMessage<InvalidArgument>(HasSubstr("__metadata__ is reserved")));
  EXPECT_THROW(writer.add("b", DType::f32, {2}, bytes_of("1234")), InvalidArgument);
  EXPECT_THROW(writer.add({.name = "undefined"}), InvalidArgument);
  EXPECT_NO_THROW(write(writer));
  latin1.add("\xfc", DType::u8, {0}, {});
  EXPECT_THAT([&] { write(latin1); }, ThrowsMessage<InvalidArgument>(HasSubstr("is not UTF-8")));
}

TEST_F(Safetensors, AcceptsWhatOthersWrite) {
  // Spaces, any order of keys and tensors, \u escapes, a file whose data starts at an odd byte.
  const SafetensorsHeader header = parse(file_of(
      "{ \"b\\u0062\" : {\"data_offsets\":[2, 6] ,\"shape\":[1], \"dtype\":\"F32\"},\n"
      "\"__metadata__\":{}, \"a\":{\"shape\":[],\"dtype\":\"BF16\",\"data_offsets\":[0,2]}}\t ",
      6));
  ASSERT_EQ(header.tensors.size(), 2u);
  EXPECT_EQ(header.tensors[0].name, "a");
  EXPECT_EQ(header.find("bb")->begin, 2);
}

struct Hostile {
  std::string what, file, error;
};

std::vector<Hostile> hostile_files() {
  const std::string good = one("F32", "[2]", "[0,8]");
  const auto header = [](std::string what, std::string json, size_t data, std::string error) {
    return Hostile{std::move(what), file_of(json, data), std::move(error)};
  };
  const std::string a = line("a", "U8", "[4]", "[0,4]");
  std::vector<Hostile> cases = {
      {"Empty", "", "0 bytes, too few"},
      {"SevenBytes", std::string(7, '\0'), "7 bytes, too few"},
      header("NotJson", "<html></html>", 0, "does not start with '{'"),
      header("BlankFirst", " {}", 0, "does not start with '{'"),
      header("ByteOrderMark", "\xEF\xBB\xBF{}", 0, "does not start with '{'"),
      header("ZeroByteInside", std::string("{}\0{}", 5), 0, "byte 2 of the header's text is zero"),
      header("TextBehind", "{}x", 0, "the header is not JSON"),
      header("Comment", "{/**/}", 0, "the header is not JSON"),
      header("TrailingComma", "{" + a + ",}", 4, "the header is not JSON"),
      header("Unclosed", "{" + a, 4, "the header is not JSON"),
      header("NotUtf8", "{" + line("\xff", "U8", "[4]", "[0,4]") + "}", 4, "not UTF-8"),
      header("OverlongUtf8", "{" + line("\xc0\xaf", "U8", "[4]", "[0,4]") + "}", 4, "not UTF-8"),
      header("LoneSurrogate", "{" + line("\\ud800", "U8", "[4]", "[0,4]") + "}", 4, "not JSON"),
      header("ProductWraps", one("F32", "[4294967296,4294967296]", "[0,0]"), 0,
             "the element count of [4294967296, 4294967296] passes 2^63 - 1"),
      header("ProductWrapsBesideZero", one("F32", "[4294967296,4294967296,0]", "[0,0]"), 0,
             "passes 2^63 - 1"),
      header("BytesWrap", one("F64", "[4611686018427387904]", "[0,0]"), 0, "do not match F64"),
      header("OffsetsTooLarge", one("F32", "[32,8]", "[0,65536]"), 1024,
             "data_offsets [0, 65536] do not match F32 [32, 8]"),
      header("OffsetsTooSmall", one("F32", "[2]", "[0,7]"), 7, "do not match F32 [2]"),
      header("EndBeforeBegin", one("F32", "[2]", "[8,0]"), 8, "data_offsets [8, 0] do not match"),
      header("BeyondTheFile", one("F32", "[2]", "[0,8]"), 7, "hold 8 bytes, the file has 7"),
      header("FarBeyondTheFile", one("U8", "[9223372036854775807]", "[0,9223372036854775807]"), 7,
             "hold 9223372036854775807 bytes, the file has 7"),
      header("Overlap", "{" + a + "," + line("b", "U8", "[4]", "[2,6]") + "}", 6,
             "\"b\" begins at byte 2 of the data, inside another that ends at 4"),
      header("SameRange", "{" + a + "," + line("b", "U8", "[4]", "[0,4]") + "}", 4,
             "inside another"),
      header("EmptyInsideAnother", "{" + a + "," + line("b", "U8", "[0]", "[2,2]") + "}", 4,
             "inside another"),
      header("Hole", "{" + a + "," + line("b", "U8", "[4]", "[5,9]") + "}", 9,
             "\"b\" begins at byte 5 of the data, a hole after byte 4"),
      header("HoleAtTheStart", one("U8", "[4]", "[1,5]"), 5, "a hole after byte 0"),
      header("TrailingBytes", good, 9, "hold 8 bytes, the file has 9"),
      header("TrailingBytesOfNothing", "{}", 1, "hold 0 bytes, the file has 1"),
      header("OneOffset", one("U8", "[4]", "[4]"), 4, "data_offsets holds 1 numbers, not 2"),
      header("NoOffsets", one("U8", "[4]", "[]"), 4, "data_offsets holds 0 numbers, not 2"),
      header("ThreeOffsets", one("U8", "[4]", "[0,4,4]"), 4, "holds more than 2 numbers"),
      header("NegativeOffset", one("U8", "[4]", "[-4,0]"), 4, "data_offsets\" holds -4"),
      header("FractionalOffset", one("U8", "[4]", "[0,4.0]"), 4, "holds \"4.0\""),
      header("NegativeSize", one("U8", "[-4]", "[0,4]"), 4, "shape\" holds -4"),
      header("TwoNegativeSizes", one("U8", "[-2,-2]", "[0,4]"), 4, "shape\" holds -2"),
      header("FractionalSize", one("U8", "[4.5]", "[0,4]"), 4, "holds \"4.5\""),
      header("ExponentSize", one("U8", "[1e30]", "[0,4]"), 4, "holds \"1e30\""),
      header("SizeBeyond63Bits", one("U8", "[9223372036854775808]", "[0,4]"), 4,
             "holds 9223372036854775808, which passes 2^63 - 1"),
      header("SizeBeyond64Bits", one("U8", "[18446744073709551617]", "[0,4]"), 4, "holds \"1844"),
      header("TextAsSize", one("U8", "[\"4\"]", "[0,4]"), 4, "holds \"4\""),
      header("NullAsSize", one("U8", "[null]", "[0,4]"), 4, "holds null"),
      header("TrueAsSize", one("U8", "[true]", "[0,1]"), 1, "holds true"),
      header("ArrayAsSize", one("U8", "[[4]]", "[0,4]"), 4, "holds an array"),
      header("ObjectAsShape", one("U8", "{}", "[0,4]"), 4, "holds an object"),
      header("NumberAsShape", one("U8", "4", "[0,4]"), 4, "\"shape\" holds 4"),
      header("NineAxes", one("U8", "[1,1,1,1,1,1,1,1,1]", "[0,1]"), 1, "more than 8 numbers"),
      header("UnknownDType", one("F31", "[4]", "[0,4]"), 4, "dtype \"F31\" is not supported"),
      header("LowerCaseDType", one("u8", "[4]", "[0,4]"), 4, "dtype \"u8\" is not supported"),
      header("DTypeThatWeLack", one("F8_E4M3", "[4]", "[0,4]"), 4, "\"F8_E4M3\" is not supported"),
      header("NumberAsDType", R"({"a":{"dtype":1,"shape":[4],"data_offsets":[0,4]}})", 4,
             "\"dtype\" holds 1"),
      header("NoDType", R"({"a":{"shape":[4],"data_offsets":[0,4]}})", 4, "\"a\" lacks dtype"),
      header("NoShape", R"({"a":{"dtype":"U8","data_offsets":[0,4]}})", 4, "\"a\" lacks shape"),
      header("NoDataOffsets", R"({"a":{"dtype":"U8","shape":[4]}})", 4, "\"a\" lacks data_offsets"),
      header("UnknownField", R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4],"x":"y"}})", 4,
             "\"x\" holds \"y\", which does not belong there"),
      header("DuplicateName", "{" + a + "," + a + "}", 4, "\"a\" occurs twice"),
      header("DuplicateNameByEscape", "{" + a + "," + line("\\u0061", "U8", "[0]", "[4,4]") + "}",
             4, "\"a\" occurs twice"),
      header("DuplicateShape",
             R"({"a":{"dtype":"U8","shape":[4],"shape":[4],"data_offsets":[0,4]}})", 4,
             "shape occurs twice"),
      header("DuplicateDType",
             R"({"a":{"dtype":"U8","dtype":"U8","shape":[],"data_offsets":[0,1]}})", 1,
             "dtype occurs twice"),
      header("DuplicateMetadata", R"({"__metadata__":{},"__metadata__":{}})", 0, "occurs twice"),
      header("DuplicateMetadataKey", R"({"__metadata__":{"a":"","a":""}})", 0, "occurs twice"),
      header("NumberInMetadata", R"({"__metadata__":{"a":1}})", 0, "is 1, not a text"),
      header("ObjectInMetadata", R"({"__metadata__":{"a":{}}})", 0, "is an object, not a text"),
      header("NullMetadata", R"({"__metadata__":null})", 0, "is null, not an object"),
      header("NumberAsTensor", R"({"a":1})", 0, "is 1, not an object"),
      header("ArrayAsTensor", R"({"a":[1]})", 0, "is an array, not an object"),
      header("DeepArrays", "{\"a\":" + std::string(100'000, '[') + std::string(100'000, ']') + "}",
             0, "is an array, not an object"),
      header(
          "DeepObjects",
          [] {
            std::string text;
            for (int i = 0; i < 100'000; ++i) text += "{\"a\":";
            return text + "1" + std::string(100'000, '}');
          }(),
          0, "holds an object"),
      header("LongText", "{\"" + std::string((8 << 20) + 1, 'x') + "\":1}", 0,
             "more than 8388608 bytes between"),
  };
  // A header length that is zero, too small, wraps or leaves no room.
  const std::string rest = good + std::string(8, '\1');
  const uint64_t size = 8 + rest.size();
  for (uint64_t n : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 63, ~uint64_t{0}, ~uint64_t{0} - 7,
                     size - 7, size, uint64_t{100'000'001}}) {
    cases.push_back({"Length" + std::to_string(n), length_field(n) + rest,
                     "header length " + std::to_string(n) + " is outside"});
  }
  return cases;
}

TEST_F(Safetensors, HostileHeadersAreRefusedNamingTheFault) {
  for (const Hostile& hostile : hostile_files()) {
    SCOPED_TRACE(hostile.what);
    const std::clock_t begin = std::clock();  // of this process: other work does not count
    EXPECT_THAT([&] { parse(hostile.file); },
                ThrowsMessage<IoError>(
                    ::testing::AllOf(HasSubstr("test.safetensors: "), HasSubstr(hostile.error))));
    const fs::path path = put(hostile.file);
    EXPECT_THAT([&] { SafetensorsFile{path}; },
                ThrowsMessage<IoError>(
                    ::testing::AllOf(HasSubstr(path.string()), HasSubstr(hostile.error))));
    EXPECT_LT(std::clock() - begin, CLOCKS_PER_SEC);
  }
}

#ifndef __SANITIZE_ADDRESS__  // its quarantine keeps what was freed
TEST_F(Safetensors, HostileHeadersCostLittleMemory) {
  std::vector<Hostile> cases = hostile_files();
  // Large and almost right: the last byte is at fault.
  std::string many = "{";
  for (int i = 0; i < 90'000; ++i) many += line(std::to_string(i), "U8", "[0]", "[0,0]") + ",";
  cases.push_back({"ManyTensors", file_of(many + "}"), "not JSON"});
  cases.push_back({"LongestText", file_of("{\"" + std::string((8 << 20) - 9, 'x')), "not JSON"});
  cases.push_back({"BlanksOnly", file_of("{" + std::string(99'000'000, ' ')), "more than"});
  cases.push_back({"LongNumber", file_of("{\"a\":" + std::string(50'000'000, '1')), "more than"});
  for (const Hostile& hostile : cases) {
    const fs::path path = put(hostile.file);
    const pid_t child = ::fork();
    if (child == 0) {
      struct rusage before {};
      ::getrusage(RUSAGE_SELF, &before);
      try {
        SafetensorsFile{path};
      } catch (const IoError&) {
        struct rusage after {};
        ::getrusage(RUSAGE_SELF, &after);
        const int64_t grown = (after.ru_maxrss - before.ru_maxrss) * 1024;
        ::_exit(grown <= static_cast<int64_t>(hostile.file.size()) + (64 << 20) ? 0 : 2);
      }
      ::_exit(1);
    }
    int status = 0;
    struct rusage usage {};
    ASSERT_EQ(::wait4(child, &status, 0, &usage), child);
    EXPECT_TRUE(WIFEXITED(status)) << hostile.what;
    EXPECT_EQ(WEXITSTATUS(status), 0) << hostile.what;  // 1: accepted, 2: too much memory
    EXPECT_LT(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec, 1) << hostile.what;
  }
}
#endif

TEST_F(Safetensors, AFileCutAtAnyByteIsRefused) {
  const std::string whole = file_of(
      "{" + line("a", "F32", "[2]", "[0,8]") + "," + line("b", "U8", "[3]", "[8,11]") + "}", 11);
  EXPECT_NO_THROW(SafetensorsFile{put(whole)});
  for (size_t cut = 0; cut < whole.size(); ++cut) {
    EXPECT_THROW(SafetensorsFile{put(whole.substr(0, cut))}, IoError) << "cut at " << cut;
  }
}

TEST_F(Safetensors, AnyFlippedBitIsRefusedOrStaysInBounds) {
  const std::string whole = file_of(
      "{" + line("a", "F32", "[2]", "[0,8]") + "," + line("b", "U8", "[3]", "[8,11]") + "}", 11);
  for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string flipped = whole;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    try {
      const SafetensorsHeader header = parse(flipped);
      for (const TensorEntry& e : header.tensors) {
        EXPECT_LE(header.data_begin + e.end, static_cast<int64_t>(whole.size()));
        EXPECT_EQ(e.nbytes(), e.shape.numel() * size_of(e.dtype));
      }
    } catch (const IoError&) {
    }
  }
}

TEST_F(Safetensors, AFileCutAfterItWasOpenedIsAnError) {
  const fs::path path = put(file_of(one("F32", "[2]", "[0,8]"), 8));
  const SafetensorsFile file(path);
  fs::resize_file(path, fs::file_size(path) - 1);
  EXPECT_THAT([&] { file.read("a"); }, ThrowsMessage<IoError>(HasSubstr("the file ends at byte")));
}

TEST_F(Safetensors, ABoolThatIsNeitherZeroNorOneIsRefused) {
  std::string text = file_of(one("BOOL", "[3]", "[0,3]"), 3);
  EXPECT_NO_THROW(SafetensorsFile{put(text)}.read("a"));
  text.back() = '\2';
  const SafetensorsFile file(put(text));
  EXPECT_THAT([&] { file.read("a"); },
              ThrowsMessage<IoError>(HasSubstr("element 2 of a BOOL is neither 0 nor 1")));
}

}  // namespace
}  // namespace crucible::models
