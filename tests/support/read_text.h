// Reads a file in one call. With AddressSanitizer, std::istreambuf_iterator takes most of the
// time of some tests, because it is called for each byte.
#pragma once

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

namespace siltfs::testing {

// Returns the content of a regular file, or nothing if it cannot be opened.
inline std::optional<std::string> ReadTextOf(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return std::nullopt;
  std::string text(std::filesystem::file_size(path), '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(in.gcount()));
  return text;
}

}  // namespace siltfs::testing
