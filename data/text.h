/// Text files as sequences of tokens.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "data/token_dataset.h"
#include "data/tokenizer.h"

namespace crucible::data {

/// The text of one file, or of every text file in a directory, joined in the order of their names.
///
/// Of a directory, links, names that begin with a dot, and files with a zero byte (indexes, images)
/// are skipped; sub-directories are not searched.
/// Throws    IoError if there is no text, or more than 1 GiB of it (make that a .bin file of
/// tokens).
std::string read_text(const std::filesystem::path& path);

/// Whether `directory` holds at least one file that read_text would take.
bool has_text(const std::filesystem::path& directory);

/// Text as tokens in memory.
/// Throws    IoError as read_text does.
TokenSourcePtr load_text(const std::filesystem::path& path, const Tokenizer& tokenizer);

}  // namespace crucible::data
