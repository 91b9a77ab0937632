// Wrong invocations: the message names the mistake and suggests a command or option.
#include <algorithm>
#include <array>
#include <filesystem>

#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "tests/tools/run_in_process.h"
#include "tools/siltfs/closest_name.h"

namespace siltfs::testing {
namespace {

// Returns the message of a run with wrong usage.
std::string Mistake(std::vector<std::string> words, int code = 2) {
  words.insert(words.begin(), "siltfs");
  const Outcome outcome = Run(words);
  INFO(outcome.err);
  CHECK(outcome.code == code);
  CHECK(outcome.out.empty());
  CHECK(Lines(outcome.err) == 1);
  return outcome.err;
}

TEST_CASE("The closest name differs in one or two letters, or is abbreviated") {
  const std::array<std::string, 4> names = {"stat", "settle", "umount", "gc"};
  const auto closest = [&](std::string_view word) {
    const auto found = FindClosestName(word, names);
    return found ? names[*found] : std::string("none");
  };
  CHECK(closest("stat") == "stat");
  CHECK(closest("stta") == "stat");
  CHECK(closest("stats") == "stat");
  CHECK(closest("status") == "stat");
  CHECK(closest("set") == "settle");
  CHECK(closest("unmount") == "umount");
  CHECK(closest("gd") == "gc");
  CHECK(closest("foo") == "none");
  CHECK(closest("") == "none");
  CHECK(closest("xy") == "none");
  CHECK(closest(std::string(100'000, 's')) == "none");
}

TEST_CASE("An unknown command is named, and a similar one suggested") {
  CHECK(Mistake({"foo"}) == "siltfs: unknown command \"foo\" (try siltfs --help)\n");
  CHECK(Mistake({"stta"}) ==
        "siltfs: unknown command \"stta\", did you mean siltfs stat? (try siltfs --help)\n");
  CHECK(Has(Mistake({"unmount", "/mnt"}), "did you mean siltfs umount?"));
  CHECK(Has(Mistake({"verify", "/store"}), "did you mean siltfs bucket verify?"));
  CHECK(Mistake({"index", "foo"}) ==
        "siltfs: unknown command \"index foo\" (try siltfs index --help)\n");
  CHECK(Has(Mistake({"index", "gc"}), "did you mean siltfs gc?"));
  CHECK(Has(Mistake({"--", "stat"}), "unknown command \"--\""));
  CHECK(Has(Mistake({"help", "foo"}), "unknown command \"foo\""));
  CHECK(Has(Mistake({}), "a command is required, one of mkfs, "));
  CHECK(Has(Mistake({"index"}), "a command is required, one of stat, dump, "));
}

TEST_CASE("help and version are commands, too") {
  const auto output = [](const std::vector<std::string>& arguments) {
    const Outcome outcome = Run(arguments);
    INFO(outcome.err);
    CHECK(outcome.code == 0);
    return outcome.out;
  };
  CHECK(output({"siltfs", "help"}) == output({"siltfs", "--help"}));
  CHECK(output({"siltfs", "help", "gc"}) == output({"siltfs", "gc", "--help"}));
  CHECK(output({"siltfs", "help", "index"}) == output({"siltfs", "index", "--help"}));
  CHECK(output({"siltfs", "help", "index", "plan"}) ==
        output({"siltfs", "index", "plan", "--help"}));
  CHECK(output({"siltfs", "index", "help", "plan"}) ==
        output({"siltfs", "index", "plan", "--help"}));
  CHECK(output({"siltfs", "version"}) == output({"siltfs", "--version"}));
  CHECK(output({"siltfs", "-v"}) == output({"siltfs", "--version"}));
}

TEST_CASE("A wrong option is named, and a similar one suggested") {
  CHECK(Mistake({"stat", "--jsn", "a"}) ==
        "siltfs: unknown option \"--jsn\", did you mean --json? (try siltfs stat --help)\n");
  CHECK(Has(Mistake({"gc", "--dryrun"}), "unknown option \"--dryrun\", did you mean --dry-run?"));
  CHECK(Has(Mistake({"mkfs", "--chunk=8K", "a"}), "did you mean --chunk-avg?"));
  CHECK(Has(Mistake({"stat", "-x", "a"}), "unknown option \"-x\" (try siltfs stat --help)"));
  CHECK(Has(Mistake({"stat", "a", "b"}), "unexpected argument \"b\""));
  CHECK(Has(Mistake({"mkfs", "a", "--compression"}), "--compression: the value is missing"));
  CHECK(Has(Mistake({"stat", "a", "--json=no"}), "--json: the option takes no value"));
  CHECK(Has(Mistake({"index", "plan", "--entries", "1", "--memory", "1", "--flash", "1",
                     "--erase-cycles", "many"}),
            "--erase-cycles: \"many\" is not a number"));
  CHECK(Has(Mistake({"fsck", "a", "-n", "-y"}, 16), "-n excludes -y"));
}

TEST_CASE("A store may have the name of a command") {
  const TemporaryDirectory directory;
  for (const std::string name : {"stat", "index", "help"}) {
    REQUIRE(Run({"siltfs", "mkfs", directory / name}).code == 0);
    CHECK(Run({"siltfs", "stat", directory / name}).code == 0);
  }
  CHECK(Has(Run({"siltfs", "stat", "help"}).err, "/help: there is no siltfs store here"));
  CHECK(Has(Run({"siltfs", "stat", "version"}).err, "/version: there is no siltfs store here"));
}

TEST_CASE("An empty path is wrong usage for every path argument") {
  for (const std::string command : {"mkfs", "umount", "stat", "gc", "scrub", "settle"})
    CHECK(Has(Mistake({command, ""}), ": the path is empty; name a file or a directory\n"));
  for (const std::string command : {"stat", "dump", "verify", "rebuild"})
    CHECK(
        Has(Mistake({"index", command, ""}), ": the path is empty; name a file or a directory\n"));
  CHECK(Mistake({"mount", "", "m"}) ==
        "siltfs: STORE: the path is empty; name a file or a directory\n");
  CHECK(Mistake({"mount", "s", ""}) ==
        "siltfs: MOUNTPOINT: the path is empty; name a file or a directory\n");
  CHECK(Mistake({"fsck", ""}, 16) ==
        "siltfs: STORE: the path is empty; name a file or a directory\n");
  CHECK(Run({"mount.siltfs", "", "m"}).code == 1);
}

TEST_CASE("A missing parent directory is named") {
  const TemporaryDirectory directory;
  const std::string path = directory / "a/b/c";
  const Outcome outcome = Run({"siltfs", "mkfs", path});
  CHECK(outcome.code == 1);
  CHECK(outcome.err == "siltfs: " + path + ": its parent directory " + (directory / "a") +
                           " does not exist; make that directory first\n");
}

TEST_CASE("A dangling symbolic link is named") {
  const TemporaryDirectory directory;
  std::filesystem::create_symlink("nowhere", directory / "link");
  const std::string sentence =
      "siltfs: " + (directory / "link") +
      ": the symbolic link leads nowhere; correct the link or name another path\n";
  const Outcome made = Run({"siltfs", "mkfs", directory / "link"});
  CHECK(made.code == 1);
  CHECK(made.err == sentence);
  const Outcome stat = Run({"siltfs", "stat", directory / "link"});
  CHECK(stat.code == 10);
  CHECK(stat.err == sentence);
}

TEST_CASE("Control characters of a path do not reach the terminal") {
  const TemporaryDirectory directory;
  const std::string store = directory / "a\x1b[31m\nb\xff";
  const std::string shown = directory / R"(a\x1b[31m\nb\xff)";
  const Outcome missing = Run({"siltfs", "stat", store});
  CHECK(
      missing.err ==
      "siltfs: " + shown +
          ": there is no siltfs store here; name the directory of a store or make one with siltfs "
          "mkfs\n");
  REQUIRE(Run({"siltfs", "mkfs", store}).code == 0);
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"siltfs", "stat", store},
                                             {"siltfs", "fsck", store},
                                             {"siltfs", "index", "stat", store},
                                             {"siltfs", "index", "rebuild", store}}) {
    const Outcome outcome = Run(arguments);
    INFO(arguments[1] << ": " << outcome.out << outcome.err);
    CHECK(outcome.code == 0);
    CHECK(Has(outcome.out, shown));
    CHECK_FALSE(Has(outcome.out + outcome.err, "\x1b"));
  }
}

}  // namespace
}  // namespace siltfs::testing
