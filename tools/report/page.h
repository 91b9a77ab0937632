// The parts of a page: sections with plots beside their figures in text.
//
// All text that is passed in is escaped here, except the plots, which are markup.
//
// Thread-safety: pure functions, and plain values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace siltfs::report {

struct Fact {
  std::string what = {};
  std::string value = {};
};

struct Tile {
  std::string what = {};
  std::string value = {};
  std::string note = {};
};

struct Table {
  std::string title = {};
  std::vector<std::string> heads = {};
  std::vector<std::vector<std::string>> rows = {};
};

struct Figure {
  std::string caption = {};  // may be empty
  std::string plots = {};    // markup; both layouts (DrawBoth)
};

struct Section {
  std::string id = {};
  std::string title = {};
  std::string lead = {};     // one or two sentences
  std::string caution = {};  // what limits the figures; may be empty
  std::vector<Figure> figures = {};
  std::string empty = {};  // in place of figures, if there is nothing to draw
  std::vector<Fact> facts = {};
  std::vector<Table> tables = {};  // folded
};

struct Page {
  std::string title = {};              // of the window
  std::string heading = {};            // the store
  std::string health = {};             // one word, or a few
  std::string health_class = {};       // ok, warn, bad
  std::vector<std::string> meta = {};  // of the line below the heading
  std::vector<Tile> tiles = {};
  std::vector<Section> sections = {};
  std::string footer = {};
};

// The whole document. It loads nothing and has no script.
std::string Format(const Page& page);

}  // namespace siltfs::report
