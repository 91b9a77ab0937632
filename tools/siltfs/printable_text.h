// Text that is safe to show on a terminal and to log as one line.
#pragma once

#include <string>
#include <string_view>

namespace siltfs {

// Returns the text with escapes for control characters (C0, DEL, C1), for characters that change
// the direction of text, and for bytes that are not UTF-8: "\n", "\t", "\r" or "\x1b", one "\x.."
// for each byte. Other characters stay as they are, also backslashes: the result is for people and
// is not decoded.
//
// For messages and for names within a report; JSON has its own escapes.
std::string Printable(std::string_view text);

}  // namespace siltfs
