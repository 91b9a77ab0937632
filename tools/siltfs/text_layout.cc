#include "tools/siltfs/text_layout.h"

#include <algorithm>

namespace siltfs {
namespace {

constexpr char kEscape = '\x1b';
constexpr std::string_view kReset = "\x1b[0m";

std::string_view SequenceOf(Tint tint) {
  switch (tint) {
    case Tint::kBold:
      return "\x1b[1m";
    case Tint::kGreen:
      return "\x1b[32m";
    case Tint::kYellow:
      return "\x1b[33m";
    case Tint::kRed:
      return "\x1b[31m";
    case Tint::kBlue:
      return "\x1b[34m";
    case Tint::kMagenta:
      return "\x1b[35m";
    case Tint::kCyan:
      return "\x1b[36m";
    case Tint::kGray:
      return "\x1b[90m";
    case Tint::kNone:
      break;
  }
  return "";
}

// The length of the escape sequence or the character at the beginning of the text.
size_t StepOf(std::string_view text, bool& is_visible) {
  is_visible = text[0] != kEscape;
  if (!is_visible) {
    const size_t end = text.find('m');
    return end == std::string_view::npos ? text.size() : end + 1;
  }
  size_t step = 1;
  while (step < text.size() && (static_cast<uint8_t>(text[step]) & 0xC0) == 0x80) ++step;
  return step;
}

}  // namespace

std::string Tinted(std::string_view text, Tint tint, const TextStyle& style) {
  if (!style.color || tint == Tint::kNone) return std::string(text);
  return std::string(SequenceOf(tint)).append(text).append(kReset);
}

size_t WidthOf(std::string_view text) {
  size_t width = 0;
  while (!text.empty()) {
    bool is_visible = false;
    text.remove_prefix(StepOf(text, is_visible));
    width += is_visible ? 1 : 0;
  }
  return width;
}

std::string Fitted(const std::string& text, size_t columns) {
  if (WidthOf(text) <= columns || columns == 0) return text;
  std::string fitted;
  size_t width = 0;
  bool is_tinted = false;
  for (std::string_view rest = text; !rest.empty() && width + 1 < columns;) {
    bool is_visible = false;
    const size_t step = StepOf(rest, is_visible);
    fitted += rest.substr(0, step);
    if (is_visible) {
      ++width;
    } else {
      is_tinted = rest.substr(0, step) != kReset;
    }
    rest.remove_prefix(step);
  }
  if (is_tinted) fitted += kReset;
  return fitted + ">";
}

std::string Wrapped(const std::string& head, const std::vector<std::string>& words,
                    std::string_view separator, size_t columns) {
  const size_t indent = WidthOf(head);
  std::string text = head;
  size_t width = indent;
  bool is_first = true;  // in its line
  for (const std::string& word : words) {
    const size_t needed = WidthOf(word) + (is_first ? 0 : separator.size());
    if (!is_first && width + needed > columns) {
      text += "\n" + std::string(indent, ' ');
      width = indent;
      is_first = true;
    }
    if (!is_first) {
      text += separator;
      width += separator.size();
    }
    text += word;
    width += WidthOf(word);
    is_first = false;
  }
  return text + "\n";
}

std::vector<std::string> WordsOf(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    if (end > 0) words.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

}  // namespace siltfs
