/// The exceptions that crucible throws.
///
/// Messages read `<who>: <what is wrong>: <the values>; <what to do>.`
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace crucible {

/// Base of every exception thrown on purpose.  `exit_code()` is what a command-line tool returns
/// for it.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  virtual int exit_code() const { return 1; }
};

/// A caller's value is wrong: a shape, a dtype, a flag, a label.  Exit code 2.
class InvalidArgument : public Error {
 public:
  using Error::Error;
  int exit_code() const override { return 2; }
};

/// A file is missing, unreadable, damaged or cannot be written.  Exit code 2.
class IoError : public Error {
 public:
  using Error::Error;
  int exit_code() const override { return 2; }
};

/// A device has no room for a request.  The process stays usable.  Exit code 1.
class OutOfMemory : public Error {
 public:
  OutOfMemory(const std::string& message, int64_t requested_bytes)
      : Error(message), requested_bytes_(requested_bytes) {}
  /// Units     bytes, as asked for (before rounding up).
  int64_t requested_bytes() const { return requested_bytes_; }

 private:
  int64_t requested_bytes_;
};

/// A device, its driver or its library failed, or a needed device is absent.  Exit code 1.
class DeviceError : public Error {
 public:
  using Error::Error;
};

}  // namespace crucible
