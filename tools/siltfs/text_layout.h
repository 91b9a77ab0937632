// Lays text out on lines of a terminal: columns, colours, wrapping.
//
// Thread-safety: pure functions, safe to call from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "store/env/terminal.h"

namespace siltfs {

enum class Tint : uint8_t { kNone, kBold, kGreen, kYellow, kRed, kBlue, kMagenta, kCyan, kGray };

// Returns the text with the escape sequences of the tint, or the text alone if the style has no
// colours.
std::string Tinted(std::string_view text, Tint tint, const TextStyle& style);

// The columns that the text takes. Counts each character as one column, and no escape sequences.
size_t WidthOf(std::string_view text);

// Returns the part of the text that fits into the columns. A text that is cut ends in ">".
std::string Fitted(const std::string& text, size_t columns);

// Puts words (or groups of words that stay together) on lines. The first line begins with `head`,
// the others with as many spaces. A word that does not fit into a line has a line of its own. The
// result ends in a newline.
std::string Wrapped(const std::string& head, const std::vector<std::string>& words,
                    std::string_view separator, size_t columns);

std::vector<std::string> WordsOf(std::string_view text);

}  // namespace siltfs
