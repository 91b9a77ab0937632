// The table of messages: its identifiers, the sentences that they belong to, and docs/messages.md.
#include "tools/siltfs/message_table.h"

#include <fmt/format.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "tests/support/catch.h"
#include "tests/support/read_text.h"
#include "tests/tools/run_in_process.h"
#include "tools/siltfs/log_identifiers.h"

namespace siltfs::testing {
namespace {

std::string SentenceOf(const MessageRow& row) {
  std::string sentence(row.text);
  std::ranges::replace(sentence, '*', 'x');
  return sentence;
}

TEST_CASE("Each message has an identifier of its own, and the identifiers are in order") {
  std::string last;
  for (const MessageRow* row : AllMessages()) {
    INFO(row->id << ": " << row->text);
    CHECK(std::regex_match(std::string(row->id), std::regex(R"(S\d{4})")));
    CHECK(last < row->id);
    last = row->id;
  }
}

TEST_CASE("The text of each row finds this row, and no row hides another one") {
  for (const MessageRow* row : AllMessages()) {
    INFO(row->id << ": " << row->text);
    if (row->text.empty()) continue;
    const MessageRow* found = FindMessage("/a/path: " + SentenceOf(*row) + " y");
    REQUIRE(found != nullptr);
    CHECK(found->id == row->id);
  }
}

TEST_CASE("Causes are sentences, and remedies are clauses that a sentence can end with") {
  for (const MessageRow* row : AllMessages()) {
    INFO(row->id << ": " << row->cause << " " << row->remedy);
    CHECK(row->cause.ends_with('.'));
    REQUIRE_FALSE(row->remedy.empty());
    CHECK_FALSE(row->remedy.ends_with('.'));
    CHECK(std::islower(static_cast<unsigned char>(row->remedy[0])) != 0);
    CHECK((!row->is_appended || row->remedy.find(';') == std::string_view::npos));
  }
}

TEST_CASE("A failure without a row has the identifier of its exit code") {
  const auto id = [](ExitCode code) { return IdentifyFailure("something else", code).id; };
  CHECK(id(ExitCode::kFailed) == "S0001");
  CHECK(id(ExitCode::kUsage) == "S0002");
  CHECK(id(ExitCode::kNoStore) == "S0010");
  CHECK(id(ExitCode::kInUse) == "S0011");
  CHECK(id(ExitCode::kNeedsNewer) == "S0012");
  CHECK(id(ExitCode::kDamaged) == "S0013");
  CHECK(id(ExitCode::kInterrupted) == "S0099");
  CHECK(IdentifyFailure("something else", ExitCode::kDamaged).sentence ==
        "something else; run siltfs fsck on the store's directory");
  CHECK(IdentifyFailure("something else", ExitCode::kFailed).sentence == "something else");
}

TEST_CASE("docs/messages.md and the table have the same rows") {
  const auto document = ReadTextOf(SILTFS_SOURCE_DIR "/docs/messages.md");
  REQUIRE(document.has_value());
  std::set<std::string> in_document;
  std::istringstream lines(*document);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("| S")) in_document.insert(line);
  }
  std::set<std::string> in_table;
  for (const MessageRow* row : AllMessages()) {
    const size_t begin = row->text.find_first_not_of(' ');
    std::string text;
    if (begin != std::string_view::npos) {
      text =
          fmt::format("`{}`", row->text.substr(begin, row->text.find_last_not_of(' ') + 1 - begin));
    }
    in_table.insert(fmt::format("| {} | {} | {} | {} |", row->id, text, row->cause, row->remedy));
  }
  for (const std::string& row : in_table) {
    INFO(row);
    CHECK(in_document.contains(row));
  }
  for (const std::string& row : in_document) {
    INFO(row);
    CHECK(in_table.contains(row));
  }
}

TEST_CASE("explain prints a row, or all rows") {
  const Outcome one = Run({"siltfs", "explain", "s0201"});
  CHECK(one.code == 0);
  CHECK(one.out ==
        "S0201: there is no siltfs store here\n"
        "  Cause: The directory is not that of a store.\n"
        "  What to do: name the directory of a store or make one with siltfs mkfs.\n");
  const Outcome all = Run({"siltfs", "explain"});
  CHECK(all.code == 0);
  CHECK(Lines(all.out) == AllMessages().size());
  const Outcome unknown = Run({"siltfs", "explain", "S9999"});
  CHECK(unknown.code == 2);
  CHECK(unknown.ids == std::vector<std::string>{"S0153"});
  CHECK(Has(Run({"siltfs", "explain", "S0201", "--json"}).out, R"("id": "S0201")"));
}

TEST_CASE("Messages end with their identifiers, and JSON documents have them") {
  CHECK(Run({"siltfs", "stat", "/nowhere"}).ids == std::vector<std::string>{"S0201"});
  const Outcome json = Run({"siltfs", "stat", "--json", "/nowhere"});
  CHECK(Has(json.out, R"("id":"S0201")"));
  CHECK(Has(json.out, "make one with siltfs mkfs\""));
  CHECK(Run({"siltfs", "stta"}).ids == std::vector<std::string>{"S0102"});
}

TEST_CASE("Lines of the log end with the identifiers of their messages") {
  const auto logged = [](LogTarget target, const std::string& line) {
    std::ostringstream out;
    const auto sink = std::make_shared<spdlog::sinks::ostream_sink_st>(out);
    AddIdentifiers(*sink, target);
    spdlog::logger("siltfs", sink).error("{}", line);
    return out.str();
  };
  const std::string closed = "/store: closed, everything is durable";
  CHECK(logged(LogTarget::kSystemLog, closed) == closed + " [S1002]");
  CHECK(logged(LogTarget::kSystemLog, "something else") == "something else");
  CHECK(logged(LogTarget::kFile, closed).ends_with("] [siltfs] [error] " + closed + " [S1002]\n"));
}

}  // namespace
}  // namespace siltfs::testing
