#include "tools/report/markup.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace siltfs::report {
namespace {

constexpr double kBarRadius = 3;

std::string_view NameOf(Anchor anchor) {
  switch (anchor) {
    case Anchor::kMiddle:
      return "middle";
    case Anchor::kEnd:
      return "end";
    case Anchor::kStart:
      break;
  }
  return "start";
}

std::string WithSpace(std::string_view attributes) {
  return attributes.empty() ? std::string() : " " + std::string(attributes);
}

}  // namespace

std::string Escape(std::string_view text) {
  std::string escaped;
  escaped.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string Coordinate(double value) {
  const double tenths = std::round(value * 10);
  if (std::fmod(tenths, 10) == 0) return fmt::format("{:.0f}", tenths / 10 + 0.0);
  return fmt::format("{:.1f}", tenths / 10);
}

Svg::Svg(const PlotName& name, double width, double height, std::string_view variant) {
  const std::string id = Escape(name.id + "-" + std::string(variant));
  text_ = fmt::format(
      "<svg role=\"img\" data-plot=\"{}\" viewBox=\"0 0 {} {}\" aria-labelledby=\"{}-t {}-d\">"
      "<title id=\"{}-t\">{}</title><desc id=\"{}-d\">{}</desc>\n",
      Escape(name.id), Coordinate(width), Coordinate(height), id, id, id, Escape(name.title), id,
      Escape(name.description));
}

void Svg::Close(std::string_view element, std::string_view tip) {
  if (tip.empty()) {
    text_ += "/>\n";
  } else {
    text_ += fmt::format("><title>{}</title></{}>\n", Escape(tip), element);
  }
}

void Svg::Rect(double x, double y, double width, double height, double radius, std::string_view cls,
               std::string_view tip, std::string_view data) {
  text_ += fmt::format(
      "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"{}\" class=\"{}\"{}", Coordinate(x),
      Coordinate(y), Coordinate(std::max(width, 0.0)), Coordinate(std::max(height, 0.0)),
      Coordinate(radius), Escape(cls), WithSpace(data));
  Close("rect", tip);
}

void Svg::Bar(double x, double y, double width, double height, std::string_view cls,
              std::string_view tip, std::string_view data) {
  const double r = std::max(0.0, std::min({kBarRadius, width / 2, height}));
  const auto c = [](double value) { return Coordinate(value); };
  text_ += fmt::format("<path d=\"M{} {}v{}q0 {} {} {}h{}q{} 0 {} {}v{}z\" class=\"{}\"{}", c(x),
                       c(y + height), c(r - height), c(-r), c(r), c(-r), c(width - 2 * r), c(r),
                       c(r), c(r), c(height - r), Escape(cls), WithSpace(data));
  Close("path", tip);
}

void Svg::Line(double x1, double y1, double x2, double y2, std::string_view cls) {
  text_ += fmt::format("<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" class=\"{}\"/>\n",
                       Coordinate(x1), Coordinate(y1), Coordinate(x2), Coordinate(y2), Escape(cls));
}

void Svg::Path(std::string_view d, std::string_view cls, std::string_view data) {
  text_ +=
      fmt::format("<path d=\"{}\" class=\"{}\"{}/>\n", Escape(d), Escape(cls), WithSpace(data));
}

void Svg::Circle(double x, double y, double radius, std::string_view cls, std::string_view tip,
                 std::string_view data) {
  text_ += fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"{}\" class=\"{}\"{}", Coordinate(x),
                       Coordinate(y), Coordinate(radius), Escape(cls), WithSpace(data));
  Close("circle", tip);
}

void Svg::Text(double x, double y, Anchor anchor, std::string_view cls, std::string_view text) {
  text_ += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"{}\" class=\"{}\">{}</text>\n",
                       Coordinate(x), Coordinate(y), NameOf(anchor), Escape(cls), Escape(text));
}

std::string Svg::Take() && {
  text_ += "</svg>\n";
  return std::move(text_);
}

}  // namespace siltfs::report
