#include "tools/train/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"

namespace crucible::train {
namespace {

using testing::HasSubstr;
using Arguments = std::vector<std::string>;

std::string error_of(const Arguments& arguments) {
  try {
    parse_options(arguments);
  } catch (const InvalidArgument& e) {
    return e.what();
  }
  return "accepted";
}

TEST(Options, TakeDashAndUnderscoreSpellings) {
  const Options o = parse_options({"--model", "mlp", "--batch_size=7", "--grad_accum_steps", "3",
                                   "--lr-warmup-steps", "5"})
                        .options;
  EXPECT_EQ(o.batch_size, 7);
  EXPECT_EQ(o.grad_accum_steps, 3);
  EXPECT_EQ(o.lr_warmup_steps, 5);
}

TEST(Options, UnderscoresInValuesStay) {
  EXPECT_EQ(parse_options({"--model=mlp", "--output=a_b"}).options.output, "a_b");
}

TEST(Options, ShortFormOfBatchSize) {
  EXPECT_EQ(parse_options({"--model", "mlp", "-b", "9"}).options.batch_size, 9);
}

TEST(Options, KeepTheWholeCommandForTheRecord) {
  EXPECT_EQ(parse_options({"--model", "mlp", "--lr", "0.5"}).options.command,
            "train --model mlp --lr 0.5");
}

TEST(Options, MisspeltFlagGetsASuggestion) {
  EXPECT_THAT(error_of({"--model", "mlp", "--lerning-rate", "1"}), HasSubstr("did you mean --lr?"));
  EXPECT_THAT(error_of({"--model", "mlp", "--weigth-decay", "1"}),
              HasSubstr("did you mean --weight-decay?"));
  EXPECT_THAT(error_of({"--model", "mlp", "--batch", "0"}),
              HasSubstr("did you mean --batch-size?"));
  EXPECT_THAT(error_of({"--model", "mlp", "--qqqqqqqqqq"}),
              testing::Not(HasSubstr("did you mean")));
}

TEST(Options, AbbreviatedFlagIsNotTakenForAnother) {
  EXPECT_THAT(error_of({"--model", "mlp", "--epoch", "3"}), HasSubstr("did you mean --epochs?"));
}

TEST(Options, ErrorsNameFlagAndValue) {
  const std::pair<Arguments, const char*> cases[] = {
      {{"--lr", "abc"}, "--lr: 'abc' is not a finite number"},
      {{"--lr", "nan"}, "--lr: 'nan' is not a finite number"},
      {{"--lr", "inf"}, "--lr: 'inf' is not a finite number"},
      {{"--lr", "1x"}, "--lr: '1x' is not a finite number"},
      {{"--lr", "-1"}, "--lr: -1 is out of range"},
      {{"--batch-size", "0"}, "--batch-size: 0 is out of range"},
      {{"--batch-size", "1e3"}, "--batch-size: '1e3' is not a whole number"},
      {{"--batch-size", "99999999999999999999"}, "is not a whole number"},
      {{"--grad-accum-steps", "0"}, "--grad-accum-steps: 0 is out of range"},
      {{"--grad-accum-steps", "-2"}, "--grad-accum-steps: -2 is out of range"},
      {{"--epochs", "0"}, "--epochs: 0 is out of range"},
      {{"--steps", "0"}, "--steps: 0 is out of range"},
      {{"--label-smoothing", "1"}, "--label-smoothing: 1 is out of range"},
      {{"--beta1", "1"}, "--beta1: 1 is out of range"},
      {{"--opt", "adam"}, "--opt: 'adam' is not known; choose sgd, adamw"},
      {{"--sched", "cos"}, "--sched: 'cos' is not known"},
      {{"--mem-limit", "12Q"}, "--mem-limit: '12Q' is not a size"},
      {{"--mem-limit", "1"}, "--mem-limit: 1 is out of range"},
      {{"--threads", "0"}, "--threads: 0 is out of range"},
      {{"--seed", "-1"}, "--seed: -1 is out of range"},
      {{"--hidden", "3,,4"}, "--hidden: '' is not a whole number"},
      {{"--precision", "fp8"}, "--precision: 'fp8' is not known"},
      {{"--amp", "--precision", "bf16"}, "--amp and --precision bf16 are both given"},
      {{"--amp-dtype", "fp16"}, "--amp-dtype fp16 needs --amp"},
      {{"--amp", "--amp-dtype", "fp32"}, "--amp-dtype: 'fp32' is not known"},
      {{"--lr"}, "--lr has no value"},
      {{"--output", ""}, "--output"},
      {{"stray"}, "'stray' belongs to no flag"},
  };
  for (const auto& [arguments, expected] : cases) {
    Arguments all{"--model", "mlp"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const std::string error = error_of(all);
    EXPECT_THAT(error, HasSubstr(expected));
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
    EXPECT_THAT(error, testing::StartsWith("train: "));
  }
}

TEST(Options, AmpIsShortForAPrecision) {
  const auto precision_of = [](Arguments arguments) {
    arguments.insert(arguments.begin(), {"--model", "mlp"});
    return parse_options(arguments).options.precision;
  };
  EXPECT_EQ(precision_of({}), std::nullopt);
  EXPECT_EQ(precision_of({"--amp"}), "bf16");
  for (const char* dtype : {"fp16", "float16"}) {
    EXPECT_EQ(precision_of({"--amp", "--amp-dtype", dtype}), "fp16");
  }
  for (const char* dtype : {"bf16", "bfloat16"}) {
    EXPECT_EQ(precision_of({"--amp", "--amp-dtype", dtype}), "bf16");
  }
}

TEST(Options, RepeatedFlagsAreRefused) {
  EXPECT_THAT(error_of({"--model", "mlp", "--lr", "1", "--lr", "1"}),
              HasSubstr("--lr is given 2 times"));
  EXPECT_THAT(error_of({"--model", "mlp", "-b", "1", "--batch_size", "1"}),
              HasSubstr("--batch-size is given 2 times"));
  EXPECT_THAT(error_of({"--model", "mlp", "--quiet", "--quiet"}),
              HasSubstr("--quiet is given 2 times"));
  EXPECT_THAT(error_of({"--model", "mlp", "--model", "mlp"}),
              HasSubstr("--model is given 2 times"));
}

TEST(Options, UnknownModelIsRefusedWithTheKnownOnes) {
  EXPECT_THAT(error_of({"--model", "vgg"}), HasSubstr("'vgg' is not known"));
  EXPECT_THAT(error_of({}), HasSubstr("--model is missing"));
}

TEST(Options, FlagsThatWouldBeIgnoredAreRefused) {
  EXPECT_THAT(error_of({"--model", "mlp", "--heads", "2"}),
              HasSubstr("--heads applies to gpt only"));
  EXPECT_THAT(error_of({"--model", "gpt", "--hidden", "2"}), HasSubstr("--hidden applies to mlp"));
  EXPECT_THAT(error_of({"--model", "mlp", "--momentum", "0.9"}), HasSubstr("--opt sgd"));
  EXPECT_THAT(error_of({"--model", "resnet", "--beta1", "0.9"}), HasSubstr("--opt adamw"));
  EXPECT_THAT(error_of({"--model", "mlp", "--lr-decay-rate", "0.5"}), HasSubstr("--sched step"));
  EXPECT_THAT(error_of({"--model", "mlp", "--sched", "constant", "--min-lr", "0.5"}),
              HasSubstr("--min-lr"));
  EXPECT_THAT(error_of({"--model", "mlp", "--partial"}), HasSubstr("--load"));
}

TEST(Options, ContradictionsAreRefused) {
  EXPECT_THAT(error_of({"--model", "mlp", "--gpu", "0", "--device", "cpu"}), HasSubstr("give one"));
  EXPECT_THAT(error_of({"--model", "mlp", "--epochs", "1", "--steps", "1"}), HasSubstr("give one"));
  EXPECT_THAT(error_of({"--model", "mlp", "--overwrite"}), HasSubstr("--output"));
  EXPECT_THAT(error_of({"--model", "mlp", "--lr", "1", "--min-lr", "2"}), HasSubstr("--min-lr 2"));
}

TEST(Options, HelpNamesEveryFlagAndShowsExamples) {
  const std::string help = parse_options({"--help"}).text_to_print;
  for (const char* flag : {"--model",
                           "--layers",
                           "--heads",
                           "--width",
                           "--context",
                           "--vocab",
                           "--hidden",
                           "--device",
                           "--gpu",
                           "--threads",
                           "--data-dir",
                           "--dataset",
                           "-b,--batch-size",
                           "--global-batch-size",
                           "--grad-accum-steps",
                           "--epochs",
                           "--steps",
                           "--seq-len",
                           "--opt",
                           "--lr",
                           "--momentum",
                           "--nesterov",
                           "--weight-decay",
                           "--beta1",
                           "--beta2",
                           "--clip-grad",
                           "--sched",
                           "--lr-warmup-steps",
                           "--label-smoothing",
                           "--dropout",
                           "--seed",
                           "--deterministic",
                           "--precision",
                           "--amp",
                           "--amp-dtype",
                           "--eval-interval",
                           "--log-interval",
                           "--workers",
                           "--augment",
                           "--skip-bad",
                           "--output",
                           "--resume",
                           "--load",
                           "--partial",
                           "--dump-groups",
                           "--mem-limit",
                           "--quiet",
                           "--log-sample-ids",
                           "--target-accuracy",
                           "--checkpoint-hist",
                           "--checkpoint-interval",
                           "--overwrite",
                           "--stop-after",
                           "--min-lr",
                           "--lr-decay-steps",
                           "--lr-decay-rate",
                           "--tokenizer",
                           "--image-size",
                           "--synthetic-samples",
                           "--eval-batches",
                           "--sample-tokens",
                           "--temperature",
                           "--top-k",
                           "--prompt",
                           "--version",
                           "-h,--help"}) {
    EXPECT_THAT(help, HasSubstr(std::string("  ") + flag));
  }
  EXPECT_THAT(help, HasSubstr("train --model resnet --gpu 0"));
  size_t begin = 0;
  for (size_t end; (end = help.find('\n', begin)) != std::string::npos; begin = end + 1) {
    EXPECT_LE(end - begin, 100u) << help.substr(begin, end - begin);
  }
}

TEST(Options, HelpWinsOverOtherMistakes) {
  EXPECT_THAT(parse_options({"--model", "mlp", "--help"}).text_to_print, HasSubstr("Usage"));
  EXPECT_THAT(parse_options({"--version"}).text_to_print, HasSubstr("crucible "));
}

TEST(Options, SizesHaveBinaryUnits) {
  EXPECT_EQ(parse_options({"--model=mlp", "--mem-limit=24GiB"}).options.mem_limit, 24ll << 30);
  EXPECT_EQ(parse_options({"--model=mlp", "--mem-limit=1.5GiB"}).options.mem_limit, 3ll << 29);
  EXPECT_EQ(parse_options({"--model=mlp", "--mem-limit=512MiB"}).options.mem_limit, 512ll << 20);
  EXPECT_EQ(parse_options({"--model=mlp", "--mem-limit=2097152"}).options.mem_limit, 2ll << 20);
}

}  // namespace
}  // namespace crucible::train
