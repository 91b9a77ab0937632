#include "tools/siltfs/stat_overview.h"

#include <sstream>

#include "tests/support/catch.h"
#include "tests/tools/run_in_process.h"
#include "tests/tools/some_statistics.h"
#include "tools/siltfs/space_bar.h"
#include "tools/siltfs/stat_report.h"
#include "tools/siltfs/text_layout.h"

namespace siltfs::testing {
namespace {

FileSystemStats NamedStatistics() {
  FileSystemStats stats = SomeStatistics();
  stats.label = "nightly";
  stats.uuid = "01234567-89ab-4def-8123-456789abcdef";
  stats.stored_bytes = uint64_t{25} << 30;
  stats.dead_bytes = uint64_t{5} << 30;
  stats.metadata_bytes = uint64_t{5} << 30;
  stats.index_bytes = uint64_t{1} << 20;
  return stats;
}

std::string Overview(const FileSystemStats& stats, const TextStyle& style) {
  return FormatStatOverview(ToMountedJson(stats), style, kSomeTime);
}

// The longest line, in columns.
size_t Columns(const std::string& text) {
  size_t most = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) most = std::max(most, WidthOf(line));
  return most;
}

TEST_CASE("The overview shows the store, its health and its disk on a terminal of 80 columns") {
  CHECK(Overview(NamedStatistics(), {.columns = 80}) ==
        R"(Store       /srv/store
Label       nightly
UUID        01234567-89ab-4def-8123-456789abcdef
Mounted     on /mnt (process 17)
Requests    through /dev/fuse
Health      OK: 40.0 GiB of data in 30.0 GiB, disk 40% full, verified 3 days ago
Disk        [#############xxxmmmioooooo........................................]
            # 20.0 GiB data  x 5.0 GiB dead  m 5.0 GiB metadata  i 1.0 MiB index
            o 10.0 GiB of other files  . 60.0 GiB free
)");
}

TEST_CASE("The overview fits a terminal of 40 columns") {
  const std::string text = Overview(NamedStatistics(), {.columns = 48, .interactive = true});
  CHECK(text ==
        R"(Store       /srv/store
Label       nightly
UUID        01234567-89ab-4def-8123-456789abcdef
Mounted     on /mnt (process 17)
Requests    through /dev/fuse
Health      OK: 40.0 GiB of data in 30.0 GiB,
            disk 40% full, verified 3 days ago
Disk        [######xmiooo......................]
            # 20.0 GiB data  x 5.0 GiB dead
            m 5.0 GiB metadata  i 1.0 MiB index
            o 10.0 GiB of other files
            . 60.0 GiB free
)");
}

TEST_CASE("The bar of a wide terminal has no more than 72 columns") {
  const std::string text = Overview(NamedStatistics(), {.columns = 300});
  CHECK(Columns(text) < 160);
  CHECK(Has(text, "Disk        [##############"));
  CHECK(Has(text,
            "# 20.0 GiB data  x 5.0 GiB dead  m 5.0 GiB metadata  i 1.0 MiB index  o 10.0 GiB of "
            "other files  . 60.0 GiB free\n"));
}

TEST_CASE("Only a UTF-8 locale gets characters that are not ASCII") {
  const std::string ascii = Overview(NamedStatistics(), {.columns = 60, .color = true});
  CHECK(std::ranges::all_of(ascii, [](char c) { return static_cast<uint8_t>(c) < 0x80; }));
  const std::string utf8 =
      Overview(NamedStatistics(), {.columns = 60, .interactive = true, .utf8 = true});
  INFO(utf8);
  CHECK(Has(utf8, "Disk        [\u2588\u2588\u2588"));
  CHECK(Has(utf8, "\u2593\u2593"));
  CHECK(Has(utf8, "\u00b7]\n"));
  CHECK(Has(utf8, "\u2588 20.0 GiB data"));
  CHECK(Columns(utf8) <= 60);
}

TEST_CASE("Colours are escape sequences around the same text") {
  const TextStyle plain{.columns = 60};
  TextStyle colored = plain;
  colored.color = true;
  const std::string without = FormatStatReport(ToMountedJson(NamedStatistics()), plain, kSomeTime);
  std::string with = FormatStatReport(ToMountedJson(NamedStatistics()), colored, kSomeTime);
  CHECK_FALSE(Has(without, "\x1b"));
  CHECK(Has(with, "\x1b[32mOK:\x1b[0m"));
  CHECK(Has(with, "\x1b[1mSpace\x1b[0m\n"));
  for (size_t at = 0; (at = with.find('\x1b')) != std::string::npos;)
    with.erase(at, with.find('m', at) - at + 1);
  CHECK(with == without);
}

TEST_CASE("The health is the worst finding, and the number of others") {
  FileSystemStats stats = NamedStatistics();
  stats.damaged_blocks = 2;
  stats.damaged_chunks = 9;
  stats.last_scrub.reset();
  const std::string text = Overview(stats, {.columns = 1000, .color = true});
  INFO(text);
  CHECK(Has(text, "Health      \x1b[31mCRITICAL:\x1b[0m 2 blocks with 9 chunks are damaged; run"));
  CHECK(Has(text, "(and 1 more: siltfs check-health /mnt)\n"));
  stats.damaged_blocks = 0;
  CHECK(Has(Overview(stats, {.columns = 1000}),
            "Health      WARNING: the store is 100 days old, and its data were never verified"));
}

TEST_CASE("The overview shows what daemons of earlier versions report") {
  nlohmann::json statistics = ToMountedJson(NamedStatistics());
  for (const char* key : {"label", "uuid", "disk_bytes", "disk_available_bytes"})
    statistics.erase(key);
  const std::string text = FormatStatOverview(statistics, TextStyle(), kSomeTime);
  CHECK_FALSE(Has(text, "Label"));
  CHECK_FALSE(Has(text, "UUID"));
  CHECK_FALSE(Has(text, "Disk"));
}

TEST_CASE("A label cannot change the terminal") {
  FileSystemStats stats = NamedStatistics();
  stats.label = "a\x1b[2Jb";
  CHECK(Has(Overview(stats, TextStyle()), "Label       a\\x1b[2Jb\n"));
}

TEST_CASE("On a narrow terminal the notes of the tables follow on lines of their own") {
  const auto json = ToMountedJson(NamedStatistics());
  const std::string narrow =
      FormatStatReport(json, {.columns = 40, .interactive = true}, kSomeTime);
  INFO(narrow);
  CHECK(Has(narrow, "40.0 GiB\n      contents of files, holes excluded\n"));
  CHECK(Columns(narrow.substr(narrow.find("Space"))) <= 40);
  CHECK(Has(FormatStatReport(json, {.columns = 40}, kSomeTime),
            "40.0 GiB  contents of files, holes excluded\n"));
}

std::vector<BarPart> Parts(const std::vector<uint64_t>& bytes) {
  std::vector<BarPart> parts;
  for (const uint64_t part : bytes) parts.push_back({.name = "p", .bytes = part});
  return parts;
}

TEST_CASE("Each part of a bar is visible, and all parts together fill it") {
  using Cells = std::vector<size_t>;
  CHECK(CellsOf(Parts({50, 25, 25}), 8) == Cells{4, 2, 2});
  CHECK(CellsOf(Parts({1, 0, 1'000'000}), 10) == Cells{1, 0, 9});
  CHECK(CellsOf(Parts({1, 1, 1}), 10) == Cells{4, 3, 3});
  CHECK(CellsOf(Parts({1, 1, 1, 97}), 3) == Cells{0, 1, 1, 1});
  CHECK(CellsOf(Parts({0, 0}), 10) == Cells{0, 0});
  CHECK(CellsOf(Parts({UINT64_MAX, UINT64_MAX}), 10) == Cells{5, 5});
}

TEST_CASE("A text is fitted by characters, and its colour ends with it") {
  CHECK(Fitted("abc", 3) == "abc");
  CHECK(Fitted("abcd", 3) == "ab>");
  CHECK(Fitted("\u2588\u2588\u2588\u2588", 3) == "\u2588\u2588>");
  CHECK(Fitted("\x1b[31mabcd\x1b[0m", 3) == "\x1b[31mab\x1b[0m>");
}

TEST_CASE("A word that does not fit has a line of its own") {
  CHECK(Wrapped("ab ", {"one", "two", "long_word", "x"}, " ", 10) ==
        "ab one two\n   long_word\n   x\n");
  CHECK(Wrapped("", {}, " ", 10) == "\n");
}

}  // namespace
}  // namespace siltfs::testing
