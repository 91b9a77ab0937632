// The manual pages, the completions and --help list the same names.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "tests/support/catch.h"
#include "tests/support/read_text.h"
#include "tests/support/temporary_directory.h"
#include "tests/tools/run_in_process.h"

namespace siltfs::testing {
namespace {

using Names = std::set<std::string>;

const std::string kTools = SILTFS_SOURCE_DIR "/tools";

std::string ReadWhole(const std::string& path) {
  const std::optional<std::string> text = ReadTextOf(path);
  REQUIRE(text.has_value());
  return *text;
}

void Collect(const std::string& text, const std::string& pattern, Names& names) {
  const std::regex regex(pattern);
  for (std::sregex_iterator at(text.begin(), text.end(), regex); at != std::sregex_iterator();
       ++at) {
    names.insert((*at)[1]);
  }
}

const std::string kOption = R"((?:^|[\s,|\[])(--?[A-Za-z][A-Za-z-]*))";

// Returns the options in lines like " -o,--options OPT,... DESCRIPTION".
Names OptionsInHelp(const std::string& help) {
  Names names;
  std::istringstream lines(help.substr(0, help.find("Mount options:\n")));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("  -")) Collect(line.substr(0, line.find("  ", 2)), kOption, names);
  }
  return names;
}

// Returns the text of a manual page without fonts, escapes and quotes.
std::string Plain(const std::string& page) {
  std::string text = std::regex_replace(page, std::regex(R"(\\-)"), "-");
  text = std::regex_replace(text, std::regex(R"(\\f.)"), "");
  return std::regex_replace(text, std::regex("\""), "");
}

// Returns the text from a heading's line to the next heading.
std::string Section(const std::string& page, const std::string& heading) {
  const size_t start = page.find(heading + "\n");
  REQUIRE(start != std::string::npos);
  const size_t body = start + heading.size() + 1;
  return page.substr(body, page.find("\n.S", body) - body);
}

// Returns the line after each .TP.
std::string Tags(const std::string& section) {
  std::string tags;
  std::istringstream lines(section);
  for (std::string line; std::getline(lines, line);) {
    if (line == ".TP" && std::getline(lines, line)) tags += line + "\n";
  }
  return tags;
}

Names OptionsIn(const std::string& text) {
  Names names;
  Collect(text, kOption, names);
  return names;
}

Names Without(Names names, const Names& others) {
  for (const std::string& other : others) names.erase(other);
  return names;
}

// Returns the help of a command or subcommand, such as "index plan".
std::string Help(const std::string& command) {
  std::vector<std::string> arguments = {"siltfs"};
  std::istringstream words(command);
  for (std::string word; words >> word;) arguments.push_back(word);
  arguments.emplace_back("--help");
  return Run(arguments).out;
}

const Names kEverywhere = {"-h", "--help", "-V", "--version"};

// CLI11 2.4, which Debian 13 has, refuses other names when it builds the command line, so that no
// command works. CLI11 2.2 accepts them.
TEST_CASE("The names of options and operands are those that each version of CLI11 accepts") {
  const std::regex option(R"re(add_(?:option|flag)\w*(?:<[^>]*>)?\(\s*"([^"]*)")re");
  int names = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kTools)) {
    if (entry.path().extension() != ".cc") continue;
    const std::string source = ReadWhole(entry.path().string());
    for (std::sregex_iterator at(source.begin(), source.end(), option);
         at != std::sregex_iterator(); ++at) {
      INFO(entry.path().string() << ": " << (*at)[1]);
      CHECK((*at)[1].str().find_first_of(" :={") == std::string::npos);
      ++names;
    }
  }
  CHECK(names > 100);
}

TEST_CASE("The manual describes every command's options, and no others") {
  const std::string page = Plain(ReadWhole(kTools + "/man/siltfs.8"));
  for (const std::string command : {"mkfs",
                                    "mount",
                                    "umount",
                                    "sync",
                                    "stat",
                                    "tune",
                                    "settle",
                                    "gc",
                                    "scrub",
                                    "fsck",
                                    "import",
                                    "du",
                                    "find-duplicates",
                                    "quota set",
                                    "quota show",
                                    "quota remove",
                                    "snapshot create",
                                    "snapshot list",
                                    "snapshot show",
                                    "snapshot rename",
                                    "snapshot delete",
                                    "snapshot diff",
                                    "snapshot rollback",
                                    "snapshot prune",
                                    "send",
                                    "receive",
                                    "list",
                                    "check-health",
                                    "metrics",
                                    "report",
                                    "explain",
                                    "notify",
                                    "bucket push",
                                    "bucket pull",
                                    "bucket verify",
                                    "index stat",
                                    "index dump",
                                    "index verify",
                                    "index rebuild",
                                    "index plan"}) {
    INFO(command);
    const Names in_help = Without(OptionsInHelp(Help(command)), kEverywhere);
    CHECK(OptionsIn(Tags(Section(page, ".SS siltfs " + command))) == in_help);
  }
  CHECK(OptionsIn(Tags(Section(page, ".SH DESCRIPTION"))) ==
        OptionsInHelp(Run({"siltfs", "--help"}).out));
}

TEST_CASE("The manual has every command, and no others") {
  const std::string page = Plain(ReadWhole(kTools + "/man/siltfs.8"));
  Names in_manual;
  Collect(page, R"(\n\.SS siltfs ([a-z-]+))", in_manual);
  Names in_help;
  const std::string help = Run({"siltfs", "--help"}).out;
  Collect(help.substr(help.find("Subcommands:")), R"(\n  ([a-z-]+) )", in_help);
  CHECK(in_manual == in_help);
  Names below_index_in_manual;
  Collect(page, R"(\n\.SS siltfs index ([a-z]+))", below_index_in_manual);
  Names below_index_in_help;
  const std::string index_help = Help("index");
  Collect(index_help.substr(index_help.find("Subcommands:")), R"(\n  ([a-z]+) )",
          below_index_in_help);
  CHECK(below_index_in_manual == below_index_in_help);
}

TEST_CASE("The manual describes every mount option that help lists, and no others") {
  const std::string page = Plain(ReadWhole(kTools + "/man/siltfs.8"));
  const std::string help = Run({"siltfs", "mount", "--help"}).out;
  Names in_help;
  Collect(help.substr(help.find("Mount options:\n")), R"(\n  ([a-z_]+)(?:=[A-Z]+)? )", in_help);
  Names in_manual;
  Collect(Tags(Section(page, ".SH MOUNT OPTIONS")), R"((?:^|\n)\.BI? ([a-z_]+))", in_manual);
  CHECK(in_manual == in_help);
  CHECK(in_help.size() >= 9);
}

TEST_CASE("siltfs(5) names the same mount options, and every file of a store") {
  const std::string page = Plain(ReadWhole(kTools + "/man/siltfs.5"));
  const std::string help = Run({"siltfs", "mount", "--help"}).out;
  Names in_help;
  Collect(help.substr(help.find("Mount options:\n")), R"(\n  ([a-z_]+)(?:=[A-Z]+)? )", in_help);
  Names in_page;
  Collect(Tags(Section(page, ".SH MOUNT OPTIONS")), R"((?:^|\n)\.BI? ([a-z_]+))", in_page);
  CHECK(in_page == in_help);

  const TemporaryDirectory directory;
  REQUIRE(Run({"siltfs", "mkfs", directory / "store"}).code == 0);
  const std::string layout = Tags(Section(page, ".SH STORE LAYOUT"));
  for (const auto& entry : std::filesystem::directory_iterator(directory / "store")) {
    INFO(entry.path());
    CHECK(Has(layout, entry.path().filename().string()));
  }
}

TEST_CASE("The manual pages of mkfs.siltfs and similar links name every option, and no others") {
  for (const std::string program :
       {"mkfs.siltfs", "mount.siltfs", "umount.siltfs", "fsck.siltfs"}) {
    INFO(program);
    const std::string page = Plain(ReadWhole(kTools + "/man/" + program + ".8"));
    Names in_page = OptionsIn(page.substr(page.find(".SH SYNOPSIS")));
    // Clusters like -sfnv stand for several options.
    for (const std::string& name : Names(in_page)) {
      if (name[1] == '-' || name.size() == 2) continue;
      in_page.erase(name);
      for (const char letter : name.substr(1)) in_page.insert(std::string("-") + letter);
    }
    CHECK(in_page == OptionsInHelp(Run({program, "--help"}).out));
  }
}

std::string OutputOf(const std::string& script) {
  const std::string command =
      "bash -c 'source " + kTools + "/completions/siltfs.bash; " + script + "'";
  FILE* pipe = popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string output;
  for (int c = 0; (c = std::fgetc(pipe)) != EOF;) output += static_cast<char>(c);
  REQUIRE(pclose(pipe) == 0);
  return output;
}

Names LongOnly(const Names& names) {
  Names kept;
  for (const std::string& name : names) {
    if (name.starts_with("--")) kept.insert(name);
  }
  return kept;
}

TEST_CASE("Completion offers every long option, and no others") {
  for (const std::string command : {"mkfs",         "mount",        "umount",          "sync",
                                    "stat",         "tune",         "settle",          "gc",
                                    "scrub",        "fsck",         "import",          "send",

                                    "receive",      "du",           "find-duplicates", "list",
                                    "check-health", "metrics",      "explain",         "report",
                                    "notify",       "index",        "index stat",

                                    "index dump",   "index verify", "index rebuild",   "index plan",
                                    "quota set",    "quota show",   "quota remove",    "bucket",
                                    "bucket push",  "bucket pull",  "bucket verify"}) {
    INFO(command);
    CHECK(OptionsIn(OutputOf("_siltfs_options \"" + command + "\"")) ==
          LongOnly(OptionsInHelp(Help(command))));
  }
}

TEST_CASE("Completion knows commands, mount options and values") {
  const auto complete = [](const std::string& words, int at) {
    return OutputOf("COMP_WORDS=(" + words + "); COMP_CWORD=" + std::to_string(at) +
                    "; _siltfs; printf \"%s \" \"${COMPREPLY[@]}\"");
  };
  CHECK(complete("siltfs m", 1) == "mkfs mount metrics ");
  CHECK(complete("siltfs mount -o ro,no", 3) ==
        "ro,noxattr ro,nogc ro,nosuid ro,nodev ro,noexec ro,noatime ");
  CHECK(complete("mkfs.siltfs --index-engine si", 2) == "silt ");
  CHECK(complete("mkfs.siltfs --chunk-a", 1) == "--chunk-avg ");
  CHECK(complete("siltfs f", 1) == "fsck find-duplicates ");
  CHECK(complete("siltfs d", 1) == "du ");
  CHECK(complete("siltfs du --m", 2) == "--max-depth ");
  CHECK(complete("siltfs find-duplicates --l", 2) == "--limit ");
  CHECK(complete("siltfs sen", 1) == "send ");
  CHECK(complete("siltfs send --t", 2) == "--two-way ");
  CHECK(complete("siltfs rec", 1) == "receive ");
  CHECK(complete("siltfs li", 1) == "list ");
  CHECK(complete("siltfs ch", 1) == "check-health ");
  CHECK(complete("siltfs check-health --sc", 2) == "--scrub-age ");
  CHECK(complete("siltfs met", 1) == "metrics ");
  CHECK(complete("siltfs rep", 1) == "report ");
  CHECK(complete("siltfs report --q", 2) == "--quiet ");
  CHECK(complete("siltfs help che", 2) == "check-health ");
  CHECK(complete("siltfs tu", 1) == "tune ");
  CHECK(complete("siltfs tune --uuid r", 3) == "random ");
  CHECK(complete("siltfs stat --w", 2) == "--watch ");
  CHECK(complete("siltfs sy", 1) == "sync ");
  CHECK(complete("siltfs sc", 1) == "scrub ");
  CHECK(complete("siltfs im", 1) == "import ");
  CHECK(complete("siltfs import --one", 2) == "--one-file-system ");
  CHECK(complete("siltfs export --v", 2) == "--verify ");
  CHECK(complete("fsck.siltfs --d", 1) == "--data ");
  CHECK(complete("siltfs index p", 2) == "plan ");
  CHECK(complete("siltfs q", 1) == "quota ");
  CHECK(complete("siltfs b", 1) == "bucket ");
  CHECK(complete("siltfs bucket pu", 2) == "push pull ");
  CHECK(complete("siltfs bucket verify --da", 3) == "--data ");
  CHECK(complete("siltfs quota s", 2) == "set show ");
  CHECK(complete("siltfs quota set --b", 3) == "--bytes ");
  CHECK(complete("siltfs index d", 2) == "dump ");
  CHECK(complete("siltfs index r", 2) == "rebuild ");
  CHECK(complete("siltfs index verify --j", 3) == "--json ");
  CHECK(complete("siltfs index plan --us", 3) == "--use-all-memory ");
  CHECK(complete("siltfs index plan --trie w", 4) == "weak ");
}

}  // namespace
}  // namespace siltfs::testing
