/// Private: unpacking .gz files that are already in memory.
///
/// Source    RFC 1952.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace crucible::data {

/// Whether the bytes start with the two that open every gzip member.
bool starts_like_gzip(std::span<const std::byte> bytes);

/// The contents of all members of a .gz file, one after the other.
///
/// Memory    never more than `limit_bytes` + 64 KiB for the result, whatever the file claims.
/// Throws    IoError if the file is cut, damaged (CRC, length), followed by other bytes, or unpacks
///           to more than `limit_bytes`.
std::vector<std::byte> gunzip(std::span<const std::byte> packed, int64_t limit_bytes,
                              std::string_view file);

/// The first `count` bytes of the contents, fewer if there are fewer.  What follows is not checked.
/// Throws    IoError if the bytes needed are damaged.
std::vector<std::byte> gunzip_prefix(std::span<const std::byte> packed, int64_t count,
                                     std::string_view file);

}  // namespace crucible::data
