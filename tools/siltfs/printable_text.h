// Text that is safe to show on a terminal and to log as one line.
#pragma once

#include <string>
#include <string_view>

namespace siltfs {

// Returns `text` with escapes for control characters (C0, DEL, C1), for characters that change the
// direction of text, for the line and paragraph separators of Unicode, and for bytes that are not
// UTF-8. The escapes are "\n", "\t" and "\r", and otherwise one "\xNN" for each byte. Other
// characters stay as they are. Backslashes stay, too, because people read the result, and no
// program decodes it.
//
// Use it for messages and for names within a report. JSON has its own escapes.
std::string Printable(std::string_view text);

}  // namespace siltfs
