#include "data/gzip.h"

#include <zlib.h>

#include <algorithm>

#include "core/check.h"

namespace crucible::data {
namespace {

/// zlib's stream, closed on every path.
class Inflater {
 public:
  explicit Inflater(std::string_view file) {
    const int result = inflateInit2(&stream_, 15 + 16);  // 15: largest window; 16: gzip framing
    check<IoError>(result == Z_OK, "{}: zlib cannot start: code {}; check the free memory.", file,
                   result);
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  z_stream& operator*() { return stream_; }
  z_stream* operator->() { return &stream_; }

 private:
  z_stream stream_{};
};

/// Unpacks up to `limit` bytes.  `prefix`: stop there; else one more byte is an error.
std::vector<std::byte> unpack(std::span<const std::byte> packed, int64_t limit, bool prefix,
                              std::string_view file) {
  constexpr size_t chunk = 1 << 16;
  Inflater inflater(file);
  std::vector<std::byte> out;
  size_t used = 0;     // bytes of `packed` given to zlib
  size_t written = 0;  // bytes of `out` filled
  bool in_member = false;
  while (true) {
    if (inflater->avail_in == 0 && used < packed.size()) {
      const size_t count = std::min<size_t>(packed.size() - used, 1u << 30);
      inflater->next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data() + used));
      inflater->avail_in = static_cast<uInt>(count);
      used += count;
    }
    const size_t at = used - inflater->avail_in;
    if (!in_member) {
      if (at == packed.size() && at > 0) break;
      check<IoError>(starts_like_gzip(packed.subspan(at)),
                     "{}: byte {} of {} does not start a gzip member; the file is not gzip or has "
                     "bytes after its end, download it again.",
                     file, at, packed.size());
      in_member = true;
    }
    if (prefix && static_cast<int64_t>(written) >= limit) break;
    if (out.size() - written < chunk) {
      const size_t most = static_cast<size_t>(limit) + chunk;
      out.resize(std::min(most, std::max(out.size() * 2, written + chunk)));
    }
    const size_t room = std::min<size_t>(out.size() - written, 1u << 30);
    inflater->next_out = reinterpret_cast<Bytef*>(out.data() + written);
    inflater->avail_out = static_cast<uInt>(room);
    const int result = inflate(&*inflater, Z_NO_FLUSH);
    written += room - inflater->avail_out;
    check<IoError>(
        prefix || static_cast<int64_t>(written) <= limit,
        "{}: unpacks to more than the {} bytes its header stands for; download it again.", file,
        limit);
    if (result == Z_STREAM_END) {
      in_member = false;
      inflateReset(&*inflater);
      continue;
    }
    const size_t now = used - inflater->avail_in;
    check<IoError>(result == Z_OK || result == Z_BUF_ERROR,
                   "{}: gzip data is damaged near byte {} of {}: {}; download it again.", file, now,
                   packed.size(), inflater->msg ? inflater->msg : "checksum or length differ");
    check<IoError>(
        now < packed.size() || inflater->avail_out == 0,
        "{}: gzip data is cut: it ends after {} bytes inside a member; download it again.", file,
        packed.size());
  }
  out.resize(std::min<size_t>(written, static_cast<size_t>(limit)));
  return out;
}

}  // namespace

bool starts_like_gzip(std::span<const std::byte> bytes) {
  return bytes.size() >= 2 && bytes[0] == std::byte{0x1f} && bytes[1] == std::byte{0x8b};
}

std::vector<std::byte> gunzip(std::span<const std::byte> packed, int64_t limit_bytes,
                              std::string_view file) {
  return unpack(packed, limit_bytes, false, file);
}

std::vector<std::byte> gunzip_prefix(std::span<const std::byte> packed, int64_t count,
                                     std::string_view file) {
  return unpack(packed, count, true, file);
}

}  // namespace crucible::data
