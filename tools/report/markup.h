// The HTML and SVG of a report: escaped text, and the elements of plots.
//
// Plots have no colours of their own: each shape has classes, and the style sheet (style.h) gives
// them colours for light and dark pages and for paper.
//
// Thread-safety: pure functions, and plain values. Units: the user units of SVG, which are pixels
// at the natural size.
#pragma once

#include <string>
#include <string_view>

namespace siltfs::report {

// Escapes text for use between tags and in quoted attributes.
std::string Escape(std::string_view text);

// What a plot shows, in words.
struct PlotName {
  std::string id = {};  // letters, digits and hyphens
  std::string title = {};
  std::string description = {};  // a sentence or two with the main figures
};

enum class Anchor { kStart, kMiddle, kEnd };

class Svg {
 public:
  // `variant` is appended to the ids of title and description, so that a plot may be on a page
  // several times.
  Svg(const PlotName& name, double width, double height, std::string_view variant);

  // All text is escaped here. `tip` is shown while the pointer rests on the shape, and read aloud;
  // empty: none. `data` are more attributes, such as data-value="3", and not escaped.
  void Rect(double x, double y, double width, double height, double radius, std::string_view cls,
            std::string_view tip = {}, std::string_view data = {});
  // A bar on a base line: only the upper corners are round.
  void Bar(double x, double y, double width, double height, std::string_view cls,
           std::string_view tip, std::string_view data);
  void Line(double x1, double y1, double x2, double y2, std::string_view cls);
  void Path(std::string_view d, std::string_view cls, std::string_view data = {});
  void Circle(double x, double y, double radius, std::string_view cls, std::string_view tip = {},
              std::string_view data = {});
  void Text(double x, double y, Anchor anchor, std::string_view cls, std::string_view text);

  std::string Take() &&;

 private:
  void Close(std::string_view element, std::string_view tip);

  std::string text_;
};

// A coordinate with at most one decimal.
std::string Coordinate(double value);

}  // namespace siltfs::report
