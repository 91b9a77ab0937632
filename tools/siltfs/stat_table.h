// The table of figures that `siltfs stat` prints: titles, and rows with a label, a value and a
// note.
//
// Not thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "store/env/terminal.h"

namespace siltfs {

class StatTable {
 public:
  void Section(std::string title);
  void Row(std::string label, std::string value, std::string note = {});
  // A name as value, which may be wider than the column of the figures.
  void Name(std::string label, std::string value);

  std::string Format(const TextStyle& style) const;

 private:
  struct Line {
    std::string label;
    std::string value;  // empty: the row is a title
    std::string note;
    bool is_name = false;
  };

  static std::string FormatNote(const Line& line, size_t row_width, const TextStyle& style);

  std::vector<Line> rows_;
};

}  // namespace siltfs
