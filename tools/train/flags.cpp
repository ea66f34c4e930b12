#include "tools/train/flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

#include "core/check.h"

namespace crucible::train {
namespace {

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
    {"--fp16", "--precision"},
    {"--bf16", "--precision"},
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

/// `--batch_size=3` as `--batch-size=3`.
std::string with_dashes(std::string argument) {
  if (!argument.starts_with("--")) return argument;
  const size_t end = std::min(argument.find('='), argument.size());
  std::replace(argument.begin(), argument.begin() + static_cast<std::ptrdiff_t>(end), '_', '-');
  return argument;
}

std::string long_name(const std::string& name) {
  return name.substr(name.find("--"));
}

[[noreturn]] void refuse_unknown(const std::string& argument,
                                 const std::vector<std::string>& names) {
  if (!argument.starts_with('-')) {
    fail("train: '{}' belongs to no flag; write flags as --name value (see --help).", argument);
  }
  const std::string name = argument.substr(0, argument.find('='));
  const std::string meant = nearest(name, names);
  fail("train: {} is not a flag; {}.", name,
       meant.empty() ? "see --help" : fmt::format("did you mean {}?  See --help", meant));
}

}  // namespace

bool Interval::holds(double x) const {
  return (low_open ? x > low : x >= low) && (high_open ? x < high : x <= high);
}

std::string Interval::text() const {
  if (high >= 1e18) {
    return low_open ? fmt::format("above {:g}", low) : fmt::format("of at least {:g}", low);
  }
  return fmt::format("in {}{:.10g}, {:.10g}{}", low_open ? '(' : '[', low, high,
                     high_open ? ')' : ']');
}

struct Flags::Parser {
  CLI::App app;
};

Flags::Flags(const std::string& program, const std::string& description, const std::string& footer)
    : parser_(new Parser{CLI::App(description, program)}) {
  CLI::App& app = parser_->app;
  app.allow_extras();
  app.footer(footer);
  app.get_formatter()->column_width(34);
  app.set_help_flag();
}

Flags::~Flags() = default;

void Flags::integer(const std::string& name, std::optional<int64_t>& to, const Interval& range,
                    const std::string& help) {
  value(name, "N", help, [&to, range](const std::string& flag, const std::string& text) {
    to = parse_integer(flag, text, range);
  });
}

void Flags::number(const std::string& name, std::optional<double>& to, const Interval& range,
                   const std::string& help) {
  value(name, "X", help, [&to, range](const std::string& flag, const std::string& text) {
    to = parse_double(flag, text, range);
  });
}

void Flags::text(const std::string& name, const char* type, std::optional<std::string>& to,
                 const std::string& help) {
  value(name, type, help, [&to](const std::string& flag, const std::string& text) {
    check(!text.empty(), "train: {}: the value is empty; give one.", flag);
    to = text;
  });
}

void Flags::text(const std::string& name, const char* type, std::string& to,
                 const std::string& help) {
  value(name, type, help, [&to](const std::string& flag, const std::string& text) {
    check(!text.empty(), "train: {}: the value is empty; give one.", flag);
    to = text;
  });
}

void Flags::choice(const std::string& name, std::optional<std::string>& to,
                   const std::vector<std::string>& allowed, const std::string& help) {
  value(name, "NAME", help, [&to, allowed](const std::string& flag, const std::string& text) {
    check(std::find(allowed.begin(), allowed.end(), text) != allowed.end(),
          "train: {}: '{}' is not known; choose {}.", flag, text, CLI::detail::join(allowed, ", "));
    to = text;
  });
}

void Flags::bytes(const std::string& name, std::optional<int64_t>& to, const std::string& help) {
  value(name, "SIZE", help,
        [&to](const std::string& flag, const std::string& text) { to = parse_bytes(flag, text); });
}

void Flags::list(const std::string& name, std::optional<std::vector<int64_t>>& to,
                 const std::string& help) {
  value(name, "N,N,...", help,
        [&to](const std::string& flag, const std::string& text) { to = parse_list(flag, text); });
}

void Flags::flag(const std::string& name, bool& to, const std::string& help) {
  const std::string shown = long_name(name);
  names_.push_back(shown);
  const auto set = [&to, shown](int64_t count) {
    check(count == 1, "train: {} is given {} times; give it once.", shown, count);
    to = true;
  };
  parser_->app.add_flag(name, set, wrapped(help))->group(group_)->disable_flag_override();
}

void Flags::help_flag() {
  parser_->app.set_help_flag("-h,--help", "print this and leave")->group(group_);
}

void Flags::value(const std::string& name, const char* type, const std::string& help, Setter set) {
  const std::string shown = long_name(name);
  names_.push_back(shown);
  const auto receive = [set = std::move(set), shown](const CLI::results_t& given) {
    check(given.size() == 1, "train: {} is given {} times; give it once.", shown, given.size());
    set(shown, given.front());
    return true;
  };
  parser_->app.add_option(name, receive, wrapped(help))
      ->type_name(type)
      ->group(group_)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

std::optional<std::string> Flags::parse(const std::vector<std::string>& arguments) {
  CLI::App& app = parser_->app;
  std::vector<std::string> reversed;  // as CLI11 wants them
  for (auto it = arguments.rbegin(); it != arguments.rend(); ++it) {
    reversed.push_back(with_dashes(*it));
  }
  try {
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    return app.help();
  } catch (const CLI::ArgumentMismatch& error) {  // counts above 1 are ours to judge
    const std::string what = error.what();
    fail("train: {} has no value; write it as --name value (see --help).",
         what.substr(0, what.find(':')));
  } catch (const CLI::ParseError& error) {
    fail("train: the command line cannot be read: {}; see --help.", error.what());
  }
  for (const std::string& extra : app.remaining()) refuse_unknown(extra, names_);
  return std::nullopt;
}

}  // namespace crucible::train
