// Headers that describe objects in requests and replies, and the values in them.
//
// Thread-safety: pure functions.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace siltfs {

// Metadata that are stored with each object (s3_object_store.h).
inline constexpr const char* kChecksumHeader = "x-amz-meta-siltfs-checksum";
inline constexpr const char* kPutHeader = "x-amz-meta-siltfs-put";

// nullopt unless the text consists of digits and the number fits 64 bits.
inline std::optional<uint64_t> ParseDecimal(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return {};
  return number;
}

// The ETag without its quotes. nullopt if it is none: empty, weak, or with characters that cannot
// stand in a header.
inline std::optional<std::string> ParseEtag(std::string_view text) {
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') {
    text = text.substr(1, text.size() - 2);
  }
  if (text.empty() || text.size() > 256 || text.starts_with("W/")) return {};
  for (const char c : text) {
    if (c <= 0x20 || c >= 0x7F || c == '"' || c == '\\') return {};
  }
  return std::string(text);
}

}  // namespace siltfs
