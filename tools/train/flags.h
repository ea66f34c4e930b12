/// Flags declared in our own way: typed, range-checked, at most once each, with suggestions for
/// misspelt ones.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace crucible::train {

/// The numbers that a flag takes.
struct Interval {
  double low, high;
  bool low_open = false, high_open = false;

  bool holds(double x) const;
  std::string text() const;  ///< "in [0, 1)", "of at least 3"
};

/// A command line.  Underscores in the names of flags count as dashes.  Each declaration keeps a
/// reference to where the value goes; an absent flag leaves it alone.
class Flags {
 public:
  Flags(const std::string& program, const std::string& description, const std::string& footer);
  ~Flags();

  /// The heading in --help of the flags that follow.
  void group(std::string name) { group_ = std::move(name); }

  void integer(const std::string& name, std::optional<int64_t>& to, const Interval& range,
               const std::string& help);
  void number(const std::string& name, std::optional<double>& to, const Interval& range,
              const std::string& help);
  void text(const std::string& name, const char* type, std::optional<std::string>& to,
            const std::string& help);
  void text(const std::string& name, const char* type, std::string& to, const std::string& help);
  void choice(const std::string& name, std::optional<std::string>& to,
              const std::vector<std::string>& allowed, const std::string& help);
  /// A number with a unit: 24GiB.
  void bytes(const std::string& name, std::optional<int64_t>& to, const std::string& help);
  /// Numbers with commas between them.
  void list(const std::string& name, std::optional<std::vector<int64_t>>& to,
            const std::string& help);
  void flag(const std::string& name, bool& to, const std::string& help);
  void help_flag();

  /// Reads a command line.
  /// Returns   the text to print if it asks for help.
  /// Throws    InvalidArgument, one line, naming flag and value.
  std::optional<std::string> parse(const std::vector<std::string>& arguments);

 private:
  using Setter = std::function<void(const std::string& flag, const std::string& text)>;
  struct Parser;

  void value(const std::string& name, const char* type, const std::string& help, Setter set);

  std::unique_ptr<Parser> parser_;
  std::string group_;
  std::vector<std::string> names_;
};

}  // namespace crucible::train
