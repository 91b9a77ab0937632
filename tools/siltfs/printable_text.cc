#include "tools/siltfs/printable_text.h"

#include <fmt/format.h>

#include <cstdint>
#include <iterator>

namespace siltfs {
namespace {

struct Character {
  size_t bytes = 0;  // 0: the first byte does not begin a UTF-8 character
  uint32_t code = 0;
};

// Returns the first character of `text`, which must not be empty.
Character FirstOf(std::string_view text) {
  const auto at = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = at(0);
  if (lead < 0x80) return {.bytes = 1, .code = lead};
  const size_t bytes = lead < 0xC0 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF8 ? 4 : 0;
  if (bytes == 0 || bytes > text.size()) return {};
  uint32_t code = lead & (0x7Fu >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if ((at(i) & 0xC0) != 0x80) return {};
    code = code << 6 | (at(i) & 0x3Fu);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xD800 && code < 0xE000;
  if (code < kLeast[bytes] || code > 0x10FFFF || surrogate) return {};
  return {.bytes = bytes, .code = code};
}

bool IsHarmless(uint32_t code) {
  const bool control = code < 0x20 || (code >= 0x7F && code < 0xA0);
  const bool line_end = code == 0x2028 || code == 0x2029;
  const bool direction = code == 0x061C || code == 0x200E || code == 0x200F ||
                         (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
  return !control && !line_end && !direction;
}

void AppendEscaped(std::string& escaped, std::string_view bytes) {
  for (const char byte : bytes) {
    switch (byte) {
      case '\n':
        escaped += "\\n";
        break;
      case '\r':
        escaped += "\\r";
        break;
      case '\t':
        escaped += "\\t";
        break;
      default:
        fmt::format_to(std::back_inserter(escaped), "\\x{:02x}", static_cast<uint8_t>(byte));
    }
  }
}

}  // namespace

std::string Printable(std::string_view text) {
  std::string printable;
  printable.reserve(text.size());
  while (!text.empty()) {
    const Character character = FirstOf(text);
    const std::string_view bytes = text.substr(0, character.bytes == 0 ? 1 : character.bytes);
    if (character.bytes > 0 && IsHarmless(character.code)) {
      printable += bytes;
    } else {
      AppendEscaped(printable, bytes);
    }
    text.remove_prefix(bytes.size());
  }
  return printable;
}

}  // namespace siltfs
