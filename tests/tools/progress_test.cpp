#include "tools/train/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

namespace crucible::train {
namespace {

using testing::HasSubstr;

ProgressState some_state() {
  return {.epoch = 2,
          .epochs = 5,
          .step = 600,
          .total_steps = 1000,
          .loss = 0.34567,
          .accuracy = 0.876,
          .rate = 945.2,
          .memory_bytes = 212 << 20,
          .eta_seconds = 72};
}

TEST(Progress, BarShowsWhatMatters) {
  const std::string bar = render_bar(some_state(), 140);
  for (const char* part : {"epoch 2/5", "step 600/1000", "loss 0.3457", "acc 87.6 %",
                           "945 samples/s", "212 MiB", "ETA 1m12s"}) {
    EXPECT_THAT(bar, HasSubstr(part));
  }
  EXPECT_THAT(bar, HasSubstr("[##################............]"));
}

TEST(Progress, BarFitsAnyWidth) {
  for (int columns = 0; columns < 200; ++columns) {
    EXPECT_LE(render_bar(some_state(), columns).size(), static_cast<size_t>(columns));
  }
  EXPECT_THAT(render_bar(some_state(), 30), HasSubstr("step 600/1000"));
}

TEST(Progress, BarIsFullAtTheEndAndNeverFuller) {
  ProgressState state = some_state();
  state.step = state.total_steps;
  EXPECT_EQ(render_bar(state, 140).find('.'), render_bar(state, 140).find("0.3457") + 1);
  state.step = 2 * state.total_steps;
  EXPECT_LE(render_bar(state, 140).size(), 140u);
}

TEST(Progress, DurationsAreShort) {
  EXPECT_EQ(format_duration(0.4), "0s");
  EXPECT_EQ(format_duration(59.6), "1m00s");
  EXPECT_EQ(format_duration(3725), "1h02m");
  EXPECT_EQ(format_duration(200000), "2d07h");
  EXPECT_EQ(format_duration(-1), "?");
  EXPECT_EQ(format_duration(1e300), "11574074074d01h");
}

TEST(Progress, BytesHaveBinaryUnits) {
  EXPECT_EQ(format_bytes(1536), "2 KiB");
  EXPECT_EQ(format_bytes(212ll << 20), "212 MiB");
  EXPECT_EQ(format_bytes(3ll << 29), "1.50 GiB");
}

TEST(Progress, FileGetsLinesWithoutControlCharacters) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), std::fclose);
  EXPECT_EQ(Progress::mode_for(file.get(), false), Progress::Mode::lines);
  EXPECT_EQ(Progress::mode_for(file.get(), true), Progress::Mode::quiet);
  {
    Progress progress(Progress::Mode::lines, file.get());
    progress.show(some_state(), 1.0);
    progress.say("a line");
  }
  std::rewind(file.get());
  char text[100] = {};
  const size_t n = std::fread(text, 1, sizeof text - 1, file.get());
  EXPECT_EQ(std::string(text, n), "a line\n");
}

}  // namespace
}  // namespace crucible::train
