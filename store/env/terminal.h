// How text for people is to be laid out on standard output.
//
// Thread-safety: from any thread.
#pragma once

#include <cstddef>

namespace siltfs {

// The default suits a file or a pipe.
struct TextStyle {
  static constexpr size_t kUsualColumns = 80;

  size_t columns = kUsualColumns;  // of a line
  bool interactive = false;        // a terminal on which the cursor can be moved
  bool utf8 = false;               // otherwise plain ASCII
  bool color = false;
};

// Returns the style for standard output. The width of a terminal may change at any time. Colours
// need a terminal, and no variable NO_COLOR (https://no-color.org). The character set is that of
// the locale in the environment (LC_ALL, LC_CTYPE, LANG).
TextStyle StyleOfStandardOutput();

}  // namespace siltfs
