#include "tools/siltfs/stat_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tools/siltfs/text_layout.h"

namespace siltfs {

void StatTable::Section(std::string title) { rows_.push_back({std::move(title), {}, {}, false}); }

void StatTable::Row(std::string label, std::string value, std::string note) {
  rows_.push_back({"  " + std::move(label), std::move(value), std::move(note), false});
}

void StatTable::Name(std::string label, std::string value) {
  rows_.push_back({"  " + std::move(label), std::move(value), {}, /*is_name=*/true});
}

std::string StatTable::Format(const TextStyle& style) const {
  size_t label_width = 0;
  size_t value_width = 0;
  for (const Line& line : rows_) {
    if (line.value.empty()) continue;
    label_width = std::max(label_width, WidthOf(line.label));
    if (!line.is_name) value_width = std::max(value_width, WidthOf(line.value));
  }
  std::string text;
  for (const Line& line : rows_) {
    if (line.value.empty()) {
      text += Tinted(line.label, Tint::kBold, style) + "\n";
      continue;
    }
    const std::string row =
        fmt::format("{:<{}}  {:>{}}", line.label, label_width, line.value, value_width);
    text += row + FormatNote(line, WidthOf(row), style) + "\n";
  }
  return text;
}

// On a narrow terminal the note follows on lines of its own.
std::string StatTable::FormatNote(const Line& line, size_t row_width, const TextStyle& style) {
  if (line.note.empty()) return "";
  const bool fits = row_width + 2 + WidthOf(line.note) <= style.columns;
  if (fits || !style.interactive) return "  " + line.note;
  std::string note = Wrapped("      ", WordsOf(line.note), " ", style.columns);
  note.pop_back();
  return "\n" + note;
}

}  // namespace siltfs
