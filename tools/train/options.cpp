#include "tools/train/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "core/check.h"
#include "tools/train/build_info.h"

namespace crucible::train {
namespace {

constexpr const char* examples = R"(Examples:
  train --model resnet                              Fashion-MNIST where found, else synthetic data
  train --model resnet --gpu 0 --epochs 10          on the first GPU
  train --model mlp --data-dir ~/mnist --epochs 3   a folder with IDX files
  train --model resnet50 --data-dir ~/photos        a folder of images, one sub-folder a class
  train --model gpt --data-dir book.txt --steps 500 a text file, byte by byte
  train --model gpt2 --load gpt2.safetensors --data-dir book.txt --tokenizer ~/gpt2
  train --model resnet --output runs/a --resume auto  go on where the run in runs/a stopped

Ctrl-C saves a checkpoint and stops; a second one stops at once.
Exit codes: 0 success (also after Ctrl-C), 1 the run failed, 2 bad usage or input.)";

/// The numbers a flag takes.
struct Interval {
  double low, high;
  bool low_open = false, high_open = false;

  bool holds(double x) const {
    return (low_open ? x > low : x >= low) && (high_open ? x < high : x <= high);
  }
  std::string text() const {
    if (high >= 1e18) {
      return low_open ? fmt::format("above {:g}", low) : fmt::format("of at least {:g}", low);
    }
    return fmt::format("in {}{:.10g}, {:.10g}{}", low_open ? '(' : '[', low, high,
                       high_open ? ')' : ']');
  }
};

constexpr Interval positive{1, 1 << 30};
constexpr Interval count_or_zero{0, 1e12};

template <class T>
std::optional<T> read_number(const std::string& text) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || error != std::errc() || stop != end) return std::nullopt;
  return value;
}

double parse_double(const std::string& flag, const std::string& text, const Interval& range) {
  const auto value = read_number<double>(text);
  check(value && std::isfinite(*value), "train: {}: '{}' is not a finite number; give one {}.",
        flag, text, range.text());
  check(range.holds(*value), "train: {}: {} is out of range; give a number {}.", flag, text,
        range.text());
  return *value;
}

int64_t parse_integer(const std::string& flag, const std::string& text, const Interval& range) {
  const auto value = read_number<int64_t>(text);
  check(value.has_value(), "train: {}: '{}' is not a whole number; give one {}.", flag, text,
        range.text());
  check(range.holds(static_cast<double>(*value)),
        "train: {}: {} is out of range; give a whole number {}.", flag, text, range.text());
  return *value;
}

std::vector<int64_t> parse_list(const std::string& flag, const std::string& text) {
  std::vector<int64_t> values;
  size_t begin = 0;
  while (begin <= text.size()) {
    const size_t end = std::min(text.find(',', begin), text.size());
    values.push_back(parse_integer(flag, text.substr(begin, end - begin), {1, 1 << 20}));
    begin = end + 1;
  }
  check(values.size() <= 64, "train: {}: {} layers are given; give at most 64.", flag,
        values.size());
  return values;
}

int64_t parse_bytes(const std::string& flag, const std::string& text) {
  const std::pair<std::string_view, double> units[] = {
      {"GiB", 0x1p30}, {"G", 0x1p30}, {"MiB", 0x1p20}, {"M", 0x1p20},
      {"KiB", 0x1p10}, {"K", 0x1p10}, {"", 1.0}};
  for (const auto& [unit, factor] : units) {
    if (!text.ends_with(unit)) continue;
    const auto value = read_number<double>(text.substr(0, text.size() - unit.size()));
    if (!value || !std::isfinite(*value)) break;
    const double bytes = *value * factor;
    check(bytes >= 0x1p20 && bytes <= 0x1p50,
          "train: {}: {} is out of range; give 1MiB to 1048576GiB.", flag, text);
    return static_cast<int64_t>(bytes);
  }
  fail("train: {}: '{}' is not a size; write it as 24GiB, 512MiB or a number of bytes.", flag,
       text);
}

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t changed = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

/// What other programs call our flags.
constexpr std::pair<std::string_view, std::string_view> elsewhere[] = {
    {"--learning-rate", "--lr"},
    {"--optimizer", "--opt"},
    {"--optim", "--opt"},
    {"--scheduler", "--sched"},
    {"--lr-scheduler", "--sched"},
    {"--wd", "--weight-decay"},
    {"--max-steps", "--steps"},
    {"--num-epochs", "--epochs"},
    {"--data", "--data-dir"},
    {"--out", "--output"},
    {"--output-dir", "--output"},
    {"--arch", "--model"},
    {"--amp", "--precision"},
    {"--dtype", "--precision"},
    {"--gpus", "--gpu"},
    {"--num-workers", "--workers"},
    {"--batch", "--batch-size"},
    {"--bs", "--batch-size"},
    {"--lr-warmup", "--lr-warmup-steps"},
    {"--warmup", "--lr-warmup-steps"},
    {"--gradient-accumulation-steps", "--grad-accum-steps"},
    {"--max-grad-norm", "--clip-grad"},
    {"--num-threads", "--threads"}};

/// The name that `word` was probably meant to be; empty if none is near.
std::string nearest(const std::string& word, std::vector<std::string> names) {
  for (const auto& [other, ours] : elsewhere) names.emplace_back(other);
  std::string best;
  size_t best_distance = std::max<size_t>(2, word.size() / 3) + 1;
  for (const std::string& name : names) {
    const bool prefix = word.size() >= 4 && name.starts_with(word);
    const size_t distance = prefix ? 1 : edit_distance(word, name);
    if (distance < best_distance) {
      best = name;
      best_distance = distance;
    }
  }
  for (const auto& [other, ours] : elsewhere) {
    if (best == other) return std::string(ours);
  }
  return best;
}

/// Breaks a help text into lines that fit beside the column of names.
std::string wrapped(const std::string& text) {
  constexpr size_t room = 64;
  std::string lines;
  size_t length = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    const bool fits = length + 1 + word.size() <= room;
    if (length > 0) lines += fits ? ' ' : '\n';
    length = length > 0 && fits ? length + 1 + word.size() : word.size();
    lines += word;
    begin = end + 1;
  }
  return lines;
}

/// Declares flags to the parser in our own way: typed, range-checked, at most once each.
class Flags {
 public:
  explicit Flags(CLI::App& app) : app_(app) {}

  void group(std::string name) { group_ = std::move(name); }

  void integer(const std::string& name, std::optional<int64_t>& to, Interval range,
               const std::string& help) {
    value(name, "N", help, [&to, range](const std::string& flag, const std::string& text) {
      to = parse_integer(flag, text, range);
    });
  }
  void number(const std::string& name, std::optional<double>& to, Interval range,
              const std::string& help) {
    value(name, "X", help, [&to, range](const std::string& flag, const std::string& text) {
      to = parse_double(flag, text, range);
    });
  }
  template <class Text>  // std::string or std::optional<std::string>
  void text(const std::string& name, const char* type, Text& to, const std::string& help) {
    value(name, type, help, [&to](const std::string& flag, const std::string& text) {
      check(!text.empty(), "train: {}: the value is empty; give one.", flag);
      to = text;
    });
  }
  void choice(const std::string& name, std::optional<std::string>& to,
              std::vector<std::string> allowed, const std::string& help) {
    value(name, "NAME", help,
          [&to, allowed = std::move(allowed)](const std::string& flag, const std::string& text) {
            check(std::find(allowed.begin(), allowed.end(), text) != allowed.end(),
                  "train: {}: '{}' is not known; choose {}.", flag, text,
                  CLI::detail::join(allowed));
            to = text;
          });
  }
  void bytes(const std::string& name, std::optional<int64_t>& to, const std::string& help) {
    value(name, "SIZE", help, [&to](const std::string& flag, const std::string& text) {
      to = parse_bytes(flag, text);
    });
  }
  void list(const std::string& name, std::optional<std::vector<int64_t>>& to,
            const std::string& help) {
    value(name, "N,N,...", help,
          [&to](const std::string& flag, const std::string& text) { to = parse_list(flag, text); });
  }
  void flag(const std::string& name, bool& to, const std::string& help) {
    const std::string shown = long_name(name);
    names_.push_back(shown);
    CLI::Option* option = app_.add_flag(
        name,
        [&to, shown](int64_t count) {
          check(count == 1, "train: {} is given {} times; give it once.", shown, count);
          to = true;
        },
        wrapped(help));
    option->group(group_)->disable_flag_override();
  }

  const std::vector<std::string>& names() const { return names_; }

 private:
  using Setter = std::function<void(const std::string& flag, const std::string& text)>;

  static std::string long_name(const std::string& name) { return name.substr(name.find("--")); }

  void value(const std::string& name, const char* type, const std::string& help, Setter set) {
    const std::string shown = long_name(name);
    names_.push_back(shown);
    app_.add_option(
            name,
            [set = std::move(set), shown](const CLI::results_t& given) {
              check(given.size() == 1, "train: {} is given {} times; give it once.", shown,
                    given.size());
              set(shown, given.front());
              return true;
            },
            wrapped(help))
        ->type_name(type)
        ->group(group_)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }

  CLI::App& app_;
  std::string group_;
  std::vector<std::string> names_;
};

void declare_model(Flags& f, Options& o) {
  f.group("Model");
  f.text("--model", "NAME", o.model,
         "mlp, resnet (20 up to 64-pixel images, 50 above), resnet18/34/50/101/152, "
         "resnet20/32/44/56, gpt (as gpt-nano), gpt-nano, gpt-micro, gpt2, gpt2-medium, "
         "gpt2-large, gpt2-xl");
  f.list("--hidden", o.hidden, "mlp: widths of the hidden layers (512,512)");
  f.integer("--layers", o.layers, {1, 1024}, "gpt: transformer blocks");
  f.integer("--heads", o.heads, {1, 1024}, "gpt: attention heads");
  f.integer("--width", o.width, {1, 1 << 20}, "gpt: size of an embedding");
  f.integer("--context", o.context, {1, 1 << 20}, "gpt: longest sequence");
  f.integer("--vocab", o.vocab, {1, 1 << 24}, "gpt: vocabulary (what the data need)");
  f.number("--dropout", o.dropout, {0, 1, false, true}, "gpt: dropout probability (0)");
  f.text("--load", "FILE", o.load, "start from the weights in a safetensors file");
  f.flag("--partial", o.partial, "with --load: take what fits, list what does not");
}

void declare_device(Flags& f, Options& o) {
  f.group("Device");
  f.text("--device", "NAME", o.device, "cpu, cuda or cuda:N (GPU 0 if there is one, else the CPU)");
  f.text("--gpu", "N", o.gpu, "short for --device cuda:N");
  f.integer("--threads", o.threads, {1, 1024}, "CPU threads (all that the process may use)");
  f.text("--precision", "NAME", o.precision, "fp32; tf32, fp16 and bf16 where the device has them");
  f.bytes("--mem-limit", o.mem_limit, "most memory to reserve on the device, as 24GiB");
  f.flag("--deterministic", o.deterministic,
         "equal runs give equal bits (always so on the CPU with equal --threads)");
}

void declare_data(Flags& f, Options& o) {
  f.group("Data");
  f.text("--data-dir", "PATH", o.data_dir,
         "IDX (MNIST) or CIFAR files, a folder of images a class, text, or token .bin files; "
         "gpt also takes one file");
  f.choice("--dataset", o.dataset,
           {"auto", "fashion-mnist", "synthetic", "idx", "cifar10", "cifar100", "image-folder",
            "text", "tokens"},
           "what is used, or what --data-dir must hold: auto, fashion-mnist, synthetic, idx, "
           "cifar10, cifar100, image-folder, text, tokens (auto)");
  f.text("--tokenizer", "DIR", o.tokenizer,
         "gpt on text: 'bytes', or a folder with GPT-2's vocab.json and merges.txt (bytes)");
  f.integer("--seq-len", o.seq_len, {1, 1 << 20}, "gpt: tokens of a sample (the context)");
  f.integer("--image-size", o.image_size, {8, 4096},
            "side of synthetic images (32, or 224 for resnet18 to 152) and of images from folders "
            "(224)");
  f.integer("--synthetic-samples", o.synthetic_samples, {1, 1e9},
            "synthetic: training samples (10000); a tenth as many to test on");
  f.choice("--augment", o.augment, {"auto", "none", "crop", "crop-flip"},
           "auto (what is usual for the data), none; IDX and CIFAR also crop (moved by up to an "
           "eighth), crop-flip (also mirrored)");
  f.integer("--workers", o.workers, {0, 256}, "threads that prepare batches (1; folders: 2)");
  f.flag("--skip-bad", o.skip_bad, "leave unreadable samples out (up to 1 %) instead of stopping");
}

void declare_length(Flags& f, Options& o) {
  f.group("Length and batch");
  f.integer("-b,--batch-size", o.batch_size, {1, 1 << 24}, "samples of a micro-batch, per GPU");
  f.integer("--grad-accum-steps", o.grad_accum_steps, {1, 1 << 20},
            "micro-batches of one update (1)");
  f.integer("--global-batch-size", o.global_batch_size, {1, 1 << 30},
            "samples of one update over all GPUs; sets --grad-accum-steps");
  f.integer("--epochs", o.epochs, {1, 1e6}, "passes over the training data");
  f.integer("--steps", o.steps, {1, 1e12}, "updates, instead of --epochs");
  f.number("--target-accuracy", o.target_accuracy, {0, 1, true, false},
           "stop once the test accuracy reaches this share, as 0.9");
  f.integer("--stop-after", o.stop_after, {1, 1e12},
            "save and stop after this update, to be resumed; schedules do not change");
  f.integer("--seed", o.seed, {0, 9.2e18}, "of weights, order, augmentation, dropout (42)");
}

void declare_optimizer(Flags& f, Options& o) {
  f.group("Optimizer");
  f.choice("--opt", o.opt, {"sgd", "adamw"}, "sgd or adamw (resnet: sgd, else adamw)");
  f.number("--lr", o.lr, {0, 1e6}, "learning rate after warm-up");
  f.number("--momentum", o.momentum, {0, 1, false, true}, "sgd (0.9)");
  f.flag("--nesterov", o.nesterov, "sgd: Nesterov's momentum");
  f.number("--weight-decay", o.weight_decay, {0, 1e6}, "not on biases and norm gains");
  f.number("--beta1", o.beta1, {0, 1, false, true}, "adamw (0.9)");
  f.number("--beta2", o.beta2, {0, 1, false, true}, "adamw (0.999; gpt: 0.95)");
  f.number("--clip-grad", o.clip_grad, {0, 1e12}, "largest norm of the gradient; 0: off (gpt: 1)");
  f.choice("--sched", o.sched, {"constant", "step", "cosine", "linear"},
           "constant, step, cosine or linear (cosine)");
  f.integer("--lr-warmup-steps", o.lr_warmup_steps, count_or_zero,
            "updates over which the rate rises (5 % of all, at most 1000)");
  f.number("--min-lr", o.min_lr, {0, 1e6}, "cosine, linear: where they end (0; gpt: lr / 10)");
  f.integer("--lr-decay-steps", o.lr_decay_steps, {1, 1e12},
            "step: updates between decays (a third of all)");
  f.number("--lr-decay-rate", o.lr_decay_rate, {0, 1, true, false}, "step: factor (0.1)");
  f.number("--label-smoothing", o.label_smoothing, {0, 1, false, true}, "in training (0)");
}

void declare_run(Flags& f, Options& o) {
  f.group("Run");
  f.text("--output", "DIR", o.output, "run folder (runs/<date>-<model>-<n>)");
  f.flag("--overwrite", o.overwrite, "replace the run that --output holds");
  f.text("--resume", "PATH", o.resume,
         "a run folder or checkpoint to go on from; auto: the newest one of --output, or of runs/ "
         "for this model, if there is any");
  f.integer("--checkpoint-interval", o.checkpoint_interval, count_or_zero,
            "save every N updates; 0: after each epoch (0)");
  f.integer("--checkpoint-hist", o.checkpoint_hist, {1, 1e6}, "checkpoints to keep (3)");
  f.integer("--eval-interval", o.eval_interval, count_or_zero,
            "evaluate every N updates; 0: after each epoch (0)");
  f.integer("--eval-batches", o.eval_batches, count_or_zero,
            "batches of an evaluation; 0: all of the test data (0)");
  f.integer("--log-interval", o.log_interval, positive, "updates between two log lines (50)");
  f.flag("--quiet", o.quiet, "print errors only");
  f.flag("--dump-groups", o.dump_groups, "list every parameter with its weight decay, and leave");
  f.text("--log-sample-ids", "FILE", o.log_sample_ids,
         "append the numbers of the samples trained on, one line a batch");

  f.group("Sample of a gpt on text, after training");
  f.integer("--sample-tokens", o.sample_tokens, {0, 1 << 20}, "tokens to print; 0: none (256)");
  f.number("--temperature", o.temperature, {0, 100}, "0: always the likeliest token (0.8)");
  f.integer("--top-k", o.top_k, {0, 1 << 24}, "choose among the k likeliest; 0: all (40)");
  f.text("--prompt", "TEXT", o.prompt, "what the sample begins with (a line break)");
}

/// Refuses flags that the chosen model or optimizer would not look at.
class Applicable {
 public:
  template <class T>
  void only(bool applies, const char* flag, const std::optional<T>& value, const char* where) {
    only(applies, flag, value.has_value(), where);
  }
  void only(bool applies, const char* flag, bool given, const char* where) {
    check(applies || !given, "train: {} applies to {} only; leave it out.", flag, where);
  }
};

void check_applicable(const Options& o) {
  Applicable a;
  const bool gpt = is_gpt(o.model);
  a.only(is_mlp(o.model), "--hidden", o.hidden, "mlp");
  a.only(gpt, "--layers", o.layers, "gpt");
  a.only(gpt, "--heads", o.heads, "gpt");
  a.only(gpt, "--width", o.width, "gpt");
  a.only(gpt, "--context", o.context, "gpt");
  a.only(gpt, "--vocab", o.vocab, "gpt");
  a.only(gpt, "--dropout", o.dropout, "gpt");
  a.only(gpt, "--seq-len", o.seq_len, "gpt");
  a.only(gpt, "--tokenizer", o.tokenizer, "gpt");
  a.only(gpt, "--sample-tokens", o.sample_tokens, "gpt");
  a.only(gpt, "--temperature", o.temperature, "gpt");
  a.only(gpt, "--top-k", o.top_k, "gpt");
  a.only(gpt, "--prompt", o.prompt, "gpt");
  a.only(!gpt, "--target-accuracy", o.target_accuracy, "mlp and resnet");
  a.only(!gpt, "--image-size", o.image_size, "mlp and resnet");

  const std::string opt = o.opt.value_or(is_resnet(o.model) ? "sgd" : "adamw");
  a.only(opt == "sgd", "--momentum", o.momentum, "--opt sgd");
  a.only(opt == "sgd", "--nesterov", o.nesterov, "--opt sgd");
  a.only(opt == "adamw", "--beta1", o.beta1, "--opt adamw");
  a.only(opt == "adamw", "--beta2", o.beta2, "--opt adamw");
  const std::string sched = o.sched.value_or("cosine");
  a.only(sched == "step", "--lr-decay-steps", o.lr_decay_steps, "--sched step");
  a.only(sched == "step", "--lr-decay-rate", o.lr_decay_rate, "--sched step");
  a.only(sched == "cosine" || sched == "linear", "--min-lr", o.min_lr, "--sched cosine and linear");
  a.only(o.load.has_value(), "--partial", o.partial, "--load");
}

void check_consistent(const Options& o) {
  check(!o.model.empty(), "train: --model is missing; choose mlp, resnet or gpt (see --help).");
  check(is_mlp(o.model) || is_resnet(o.model) || is_gpt(o.model),
        "train: --model: '{}' is not known; choose mlp, resnet, resnet18, 34, 50, 101, 152, "
        "resnet20, 32, 44, 56, gpt, gpt-nano, gpt-micro, gpt2, gpt2-medium, gpt2-large or gpt2-xl.",
        o.model);
  check_applicable(o);
  check(!o.device || !o.gpu, "train: --device {} and --gpu {} are both given; give one.",
        o.device.value_or(""), o.gpu.value_or(""));
  check(!o.epochs || !o.steps, "train: --epochs {} and --steps {} are both given; give one.",
        o.epochs.value_or(0), o.steps.value_or(0));
  check(!o.resume || !o.overwrite, "train: --resume and --overwrite are both given; give one.");
  check(!o.overwrite || o.output, "train: --overwrite needs --output; name the run to replace.");
  check(!o.load || !o.resume, "train: --load and --resume are both given; give one.");
  check(!o.min_lr || !o.lr || *o.min_lr <= *o.lr, "train: --min-lr {} is above --lr {}; lower it.",
        o.min_lr.value_or(0), o.lr.value_or(0));
  check(!o.nesterov || !o.momentum || *o.momentum > 0,
        "train: --nesterov needs momentum: --momentum is 0; raise it or leave --nesterov out.");
  static const char* known[] = {"fp32", "tf32", "fp16", "bf16"};
  check(!o.precision ||
            std::find(std::begin(known), std::end(known), *o.precision) != std::end(known),
        "train: --precision: '{}' is not known; choose fp32, tf32, fp16 or bf16.",
        o.precision.value_or(""));
}

/// `--batch_size=3` as `--batch-size=3`.
std::string with_dashes(std::string argument) {
  if (!argument.starts_with("--")) return argument;
  const size_t end = std::min(argument.find('='), argument.size());
  std::replace(argument.begin(), argument.begin() + static_cast<std::ptrdiff_t>(end), '_', '-');
  return argument;
}

[[noreturn]] void refuse_unknown(const std::string& argument, const Flags& flags) {
  if (!argument.starts_with('-')) {
    fail("train: '{}' belongs to no flag; write flags as --name value (see --help).", argument);
  }
  const std::string name = argument.substr(0, argument.find('='));
  const std::string meant = nearest(name, flags.names());
  fail("train: {} is not a flag; {}.", name,
       meant.empty() ? "see --help" : fmt::format("did you mean {}?  See --help", meant));
}

}  // namespace

bool is_mlp(const std::string& model) {
  return model == "mlp";
}

bool is_resnet(const std::string& model) {
  static const char* names[] = {"resnet",    "resnet18", "resnet34", "resnet50", "resnet101",
                                "resnet152", "resnet20", "resnet32", "resnet44", "resnet56"};
  return std::find(std::begin(names), std::end(names), model) != std::end(names);
}

bool is_gpt(const std::string& model) {
  static const char* names[] = {"gpt",         "gpt-nano",   "gpt-micro", "gpt2",
                                "gpt2-medium", "gpt2-large", "gpt2-xl"};
  return std::find(std::begin(names), std::end(names), model) != std::end(names);
}

Parsed parse_options(const std::vector<std::string>& arguments) {
  Parsed parsed;
  Options& o = parsed.options;
  o.command = "train";
  for (const std::string& argument : arguments) o.command += " " + argument;

  CLI::App app("Trains an MLP, a ResNet or a GPT.", "train");
  app.allow_extras();
  app.footer(examples);
  app.get_formatter()->column_width(34);
  app.set_help_flag();
  Flags flags(app);
  declare_model(flags, o);
  declare_device(flags, o);
  declare_data(flags, o);
  declare_length(flags, o);
  declare_optimizer(flags, o);
  declare_run(flags, o);
  bool version = false;
  flags.group("Help");
  flags.flag("--version", version, "print the version and leave");
  app.set_help_flag("-h,--help", "print this and leave")->group("Help");

  std::vector<std::string> reversed;  // as CLI11 wants them
  for (auto it = arguments.rbegin(); it != arguments.rend(); ++it) {
    reversed.push_back(with_dashes(*it));
  }
  try {
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    parsed.text_to_print = app.help();
    return parsed;
  } catch (const CLI::ArgumentMismatch& error) {  // counts above 1 are ours to judge
    const std::string what = error.what();
    fail("train: {} has no value; write it as --name value (see --help).",
         what.substr(0, what.find(':')));
  } catch (const CLI::ParseError& error) {
    fail("train: the command line cannot be read: {}; see --help.", error.what());
  }
  for (const std::string& extra : app.remaining()) refuse_unknown(extra, flags);
  if (version) {
    parsed.text_to_print =
        std::string("crucible ") + build_info::version + " (" + git_revision() + ")\n";
    return parsed;
  }
  check_consistent(o);
  return parsed;
}

}  // namespace crucible::train
