#include "tools/report/page.h"

#include <fmt/format.h>

#include "tools/report/markup.h"
#include "tools/report/style.h"

namespace siltfs::report {
namespace {

std::string FormatTable(const Table& table) {
  std::string text = fmt::format(
      "<details><summary>{}</summary><div class=\"table\"><table><thead><tr>", Escape(table.title));
  for (const std::string& head : table.heads)
    text += fmt::format("<th scope=\"col\">{}</th>", Escape(head));
  text += "</tr></thead><tbody>\n";
  for (const auto& row : table.rows) {
    text += "<tr>";
    for (const std::string& cell : row) text += fmt::format("<td>{}</td>", Escape(cell));
    text += "</tr>\n";
  }
  return text + "</tbody></table></div></details>\n";
}

std::string FormatFacts(const std::vector<Fact>& facts) {
  std::string text = "<dl class=\"facts\">\n";
  for (const Fact& fact : facts) {
    text +=
        fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", Escape(fact.what), Escape(fact.value));
  }
  return text + "</dl>\n";
}

std::string FormatSection(const Section& section) {
  std::string text = fmt::format("<section id=\"{}\">\n<h2>{}</h2>\n<p class=\"lead\">{}</p>\n",
                                 Escape(section.id), Escape(section.title), Escape(section.lead));
  if (!section.caution.empty())
    text += fmt::format("<p class=\"caution\">{}</p>\n", Escape(section.caution));
  text += "<div class=\"body\">\n<div>\n";
  for (const Figure& figure : section.figures) {
    text += "<figure>";
    if (!figure.caption.empty())
      text += fmt::format("<figcaption>{}</figcaption>", Escape(figure.caption));
    text += "\n" + figure.plots + "</figure>\n";
  }
  if (section.figures.empty())
    text += fmt::format("<p class=\"empty\">{}</p>\n", Escape(section.empty));
  for (const Table& table : section.tables) text += FormatTable(table);
  return text + "</div>\n" + FormatFacts(section.facts) + "</div>\n</section>\n";
}

std::string FormatTiles(const std::vector<Tile>& tiles) {
  std::string text = "<div class=\"tiles\">\n";
  for (const Tile& tile : tiles) {
    text += fmt::format(
        "<div class=\"tile\"><p class=\"what\">{}</p><p class=\"number\">{}</p>"
        "<p class=\"note\">{}</p></div>\n",
        Escape(tile.what), Escape(tile.value), Escape(tile.note));
  }
  return text + "</div>\n";
}

// A line is broken between the parts, if it can be.
std::string FormatParts(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) {
    text += fmt::format("<span class=\"part\">{}{}</span>", Escape(part),
                        &part == &parts.back() ? "" : " · ");
  }
  return text;
}

}  // namespace

// The policy forbids scripts and everything from elsewhere, also if a name should ever get past the
// escapes.
std::string Format(const Page& page) {
  std::string text = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
      "style-src 'unsafe-inline'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"referrer\" content=\"no-referrer\">\n"
      "<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n<main>\n",
      Escape(page.title), kStyle);
  text += fmt::format(
      "<header>\n<p class=\"brand\">siltfs report</p>\n<h1>{}</h1>\n"
      "<p class=\"meta\"><span class=\"health {}\">{}</span>{}</p>\n</header>\n",
      Escape(page.heading), Escape(page.health_class), Escape(page.health), FormatParts(page.meta));
  text += FormatTiles(page.tiles);
  for (const Section& section : page.sections) text += FormatSection(section);
  return text +
         fmt::format("<footer>{}</footer>\n</main>\n</body>\n</html>\n", Escape(page.footer));
}

}  // namespace siltfs::report
