#include <langinfo.h>
#include <locale.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <string_view>

#include "store/env/terminal.h"

namespace siltfs {
namespace {

std::string_view Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

// Asks a locale object of its own, because the locale of the process must stay "C": other code
// formats numbers.
bool LocaleIsUtf8() {
  const locale_t locale = newlocale(LC_CTYPE_MASK, "", nullptr);
  if (locale == nullptr) return false;
  const bool utf8 = std::string_view(nl_langinfo_l(CODESET, locale)) == "UTF-8";
  freelocale(locale);
  return utf8;
}

size_t ColumnsOfTerminal() {
  winsize size = {};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  const std::string_view text = Variable("COLUMNS");
  size_t columns = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), columns);
  const bool valid = error == std::errc() && rest == text.data() + text.size() && columns > 0;
  return valid ? columns : TextStyle::kUsualColumns;
}

}  // namespace

TextStyle StyleOfStandardOutput() {
  TextStyle style;
  style.utf8 = LocaleIsUtf8();
  if (isatty(STDOUT_FILENO) == 0) return style;
  const std::string_view terminal = Variable("TERM");
  style.columns = ColumnsOfTerminal();
  style.interactive = !terminal.empty() && terminal != "dumb";
  style.color = style.interactive && Variable("NO_COLOR").empty();
  return style;
}

}  // namespace siltfs
