#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <string>
#include <vector>

#include "tests/layering/includes.h"
#include "tests/layering/source_tree.h"

namespace crucible::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Every match of a pattern in the files, as "path:line: match".
template <class Files>
std::vector<std::string> matches(const Files& files, const std::regex& pattern) {
  std::vector<std::string> found;
  for (const SourceFile* file : files) {
    const std::string& text = file->text;
    for (std::sregex_iterator it(text.begin(), text.end(), pattern), end; it != end; ++it) {
      found.push_back(file->path + ":" +
                      std::to_string(file->line_at(static_cast<size_t>(it->position()))) + ": " +
                      it->str());
    }
  }
  return found;
}

const SourceFile* find(const std::string& path) {
  const auto it = std::ranges::find(source_files(), path, &SourceFile::path);
  return it == source_files().end() ? nullptr : &*it;
}

TEST(Layering, IncludesPointDown) {
  for (const SourceFile* file : cpp_files()) {
    EXPECT_THAT(forbidden_includes(*file), IsEmpty());
  }
}

TEST(Layering, AnIncludeThatPointsUpIsFound) {
  EXPECT_THAT(forbidden_includes({"core/a.cpp", "#include <vector>\n#include \"ops/conv.h\"\n"}),
              ElementsAre("core/a.cpp:2: ops/conv.h: core may not include ops"));
  EXPECT_THAT(forbidden_includes({"tools/train/a.cpp", "#include \"ops/cpu/cpu_backend.h\"\n"}),
              ElementsAre(HasSubstr("tools may not include ops/cpu")));
  EXPECT_THAT(forbidden_includes({"data/a.cpp", " # include <cuda_runtime.h>\n"}),
              ElementsAre(HasSubstr("data may not use cuda")));
  EXPECT_THAT(forbidden_includes({"models/a.cpp", "#include \"layers.h\"\n"}),
              ElementsAre(HasSubstr("not written from the root")));
  EXPECT_THAT(forbidden_includes({"ops/cpu/matmul.cpp", "#include <oneapi/dnnl/dnnl.hpp>\n"}),
              ElementsAre(HasSubstr("only ops/cpu/onednn.{h,cpp} name oneDNN")));
}

TEST(Layering, PublicHeadersIncludeOnlyStandardAndPublicHeaders) {
  ASSERT_THAT(public_headers(), Contains("core/tensor.h"));
  std::vector<std::string> headers = public_headers();
  headers.emplace_back("crucible.h");
  for (const std::string& path : headers) {
    const SourceFile* file = find(path);
    ASSERT_NE(file, nullptr) << path << " is exported and does not exist.";
    for (const Include& include : includes_of(*file)) {
      const bool allowed = include.quoted
                               ? std::ranges::binary_search(public_headers(), include.name)
                               : is_standard_header(include.name);
      EXPECT_TRUE(allowed) << path << ":" << include.line << ": " << include.name
                           << " is neither standard nor public.";
    }
  }
}

TEST(Layering, AHeaderIsExportedUnlessItSaysPrivate) {
  const std::vector<std::string> folders = {"core", "data", "models", "ops", "optim"};
  for (const SourceFile& file : source_files()) {
    if (!file.has_extension(".h") || !std::ranges::count(folders, file.folder())) {
      continue;
    }
    EXPECT_EQ(std::ranges::binary_search(public_headers(), file.path),
              !file.text.starts_with("/// Private: "))
        << file.path << ": a public header is listed under PUBLIC_HEADERS in " << file.folder()
        << "/CMakeLists.txt; the first line of any other begins with \"/// Private: \".";
  }
}

TEST(Layering, NoConditionOnCudaOutsideScalarMath) {
  static const std::regex pattern(R"((^|\n)[ \t]*#[ \t]*(el)?if[^\n]*CUDA)");
  std::vector<const SourceFile*> files = cpp_files();
  ASSERT_THAT(matches(files, pattern), Contains(HasSubstr("core/scalar_math.h")));
  std::erase_if(files, [](const SourceFile* file) { return file->path == "core/scalar_math.h"; });
  EXPECT_THAT(matches(files, pattern), IsEmpty());
}

TEST(Layering, NoPathOfOneMachineAndNoRegistryIsNamed) {
  // Written in pieces, or this file would name them.
  const std::string paths =
      std::string("(^|[^A-Za-z0-9_.}])/(ho") + "me|ro" + "ot|wo" + "rk|op" + "t|mnt|Us" + "ers)/";
  const std::string hosts = std::string("doc") + "ker\\.io|gh" + "cr\\.io|qu" + "ay\\.io|pk" +
                            "g\\.dev|py" + "pi\\.org|np" + "mjs\\.(org|com)|artif" + "actory|snap" +
                            "shot\\.debian|de" + "b\\.debian";
  const std::regex pattern(paths + "|" + hosts, std::regex::icase);
  std::vector<const SourceFile*> files;
  for (const SourceFile& file : source_files()) {
    if (!file.has_extension(".inc")) {
      files.push_back(&file);
    }
  }
  const SourceFile bad{"a.sh", "cd " + std::string("/ho") + "me/user/x\n"};
  ASSERT_THAT(matches(std::vector<const SourceFile*>{&bad}, pattern),
              Contains(HasSubstr("a.sh:1")));
  EXPECT_THAT(matches(files, pattern), IsEmpty());
}

}  // namespace
}  // namespace crucible::testing
