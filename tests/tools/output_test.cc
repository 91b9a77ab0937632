// Tests the standard output of every command. With --json a failure prints a document with the
// cause. Output that cannot be written is a failure.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include <sys/wait.h>

#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "tests/tools/run_in_process.h"

namespace siltfs::testing {
namespace {

using Words = std::vector<std::string>;

// All commands with --json, except index plan, which takes no store.
const std::vector<Words> kJsonCommands = {{"stat"},
                                          {"gc"},
                                          {"gc", "--dry-run"},
                                          {"scrub"},
                                          {"settle"},
                                          {"fsck"},
                                          {"fsck", "-y"},
                                          {"index", "stat"},
                                          {"index", "dump"},
                                          {"index", "verify"},
                                          {"index", "rebuild"}};

Words Siltfs(Words command, const Words& more) {
  command.insert(command.begin(), "siltfs");
  command.insert(command.end(), more.begin(), more.end());
  return command;
}

TEST_CASE("With --json a failing command prints one document with the sentence of its message") {
  const TemporaryDirectory directory;
  const auto check = [](const Words& arguments, int code) {
    const Outcome outcome = Run(arguments);
    INFO(arguments[1] << " " << arguments[2] << ": " << outcome.out << outcome.err);
    CHECK(outcome.code == code);
    CHECK(Lines(outcome.out) == 1);
    const auto document = nlohmann::json::parse(outcome.out);
    CHECK("siltfs: " + document.at("error").get<std::string>() + "\n" == outcome.err);
  };
  for (const Words& command : kJsonCommands) {
    const bool fsck = command[0] == "fsck";
    check(Siltfs(command, {"--json", directory / "missing"}), fsck ? 8 : 10);
    check(Siltfs(command, {"--json"}), fsck ? 16 : 2);
    check(Siltfs(command, {"--json", ""}), fsck ? 16 : 2);
    check(Siltfs(command, {"--json", "--frobnicate", "x"}), fsck ? 16 : 2);
  }
  check({"siltfs", "index", "plan", "--json"}, 2);
  check({"siltfs", "index", "plan", "--json", "--entries", "1G", "--memory", "1", "--flash", "1T"},
        1);
  check({"siltfs", "frobnicate", "--json"}, 2);
}

TEST_CASE("Without --json, or with it after --, a failure prints no document") {
  for (const Words& command : kJsonCommands) {
    CHECK(Run(Siltfs(command, {"/missing/store"})).out.empty());
    CHECK(Run(Siltfs(command, {"--", "--json"})).out.empty());
  }
}

TEST_CASE("A path that is not UTF-8 can be printed as JSON") {
  const TemporaryDirectory directory;
  const std::string store = directory / "st\xff\nore";
  const Outcome missing = Run({"siltfs", "stat", "--json", store});
  CHECK(missing.code == 10);
  CHECK(nlohmann::json::parse(missing.out).contains("error"));
  REQUIRE(Run({"siltfs", "mkfs", store}).code == 0);
  for (const Words& command : kJsonCommands) {
    const Outcome outcome = Run(Siltfs(command, {"--json", store}));
    INFO(command.back() << ": " << outcome.err);
    CHECK(outcome.code == 0);
    if (!outcome.out.empty()) CHECK(nlohmann::json::parse(outcome.out).is_object());
  }
}

// Returns all commands that print something about a store, and commands that need no store.
std::vector<Words> PrintingCommands(const std::string& store) {
  std::vector<Words> commands;
  for (const Words& command : kJsonCommands) {
    if (command.back() == "dump") continue;  // it prints nothing for an empty index
    commands.push_back(Siltfs(command, {store}));
    commands.push_back(Siltfs(command, {"--json", store}));
  }
  const Words plan = {"index", "plan", "--entries", "1000000", "--memory", "64M", "--flash", "1G"};
  for (const Words& command : {Words{"--help"}, Words{"--version"}, Words{"help", "gc"},
                               Words{"fsck", "--help"}, Words{"index", "plan", "--help"}, plan})
    commands.push_back(Siltfs(command, {}));
  return commands;
}

TEST_CASE("Every command fails if the disk of its standard output is full") {
  const TemporaryDirectory directory;
  const std::string store = directory / "store";
  REQUIRE(Run({"siltfs", "mkfs", store}).code == 0);
  for (const Words& arguments : PrintingCommands(store)) {
    const auto env = NewPosixEnv();
    std::ofstream out("/dev/full");
    std::ostringstream err;
    Surroundings surroundings{.env = *env, .out = out, .err = err, .why_out_failed = [] {
                                return std::string("the disk is full");
                              }};
    const int code = RunSiltfs(arguments, surroundings);
    INFO(arguments[1] << " " << arguments.back());
    CHECK(code == (arguments[1] == "fsck" ? 8 : 1));
    CHECK(err.str() == "siltfs: standard output: the disk is full [S0001]\n");
  }
}

TEST_CASE("If a command fails and cannot print, its exit code stays, and fsck adds a bit") {
  const TemporaryDirectory directory;
  const auto env = NewPosixEnv();
  const auto run = [&](const Words& arguments) {
    std::ofstream out("/dev/full");
    std::ostringstream err;
    Surroundings surroundings{.env = *env, .out = out, .err = err};
    return RunSiltfs(arguments, surroundings);
  };
  CHECK(run({"siltfs", "stat", "--json", directory / "missing"}) == 10);
  REQUIRE(Run({"siltfs", "mkfs", directory / "store"}).code == 0);
  std::ofstream(directory / "store/superblock.1") << "rotten";
  CHECK(run({"siltfs", "fsck", directory / "store"}) == (4 | 8));
  CHECK(run({"mount.siltfs", "--help"}) == 32);
}

// Runs the program in a shell, which redirects its descriptors. Returns the program's exit code.
int CodeOf(const std::string& command) {
  const int status = std::system((std::string(SILTFS_PROGRAM) + " " + command).c_str());
  REQUIRE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

TEST_CASE("The program reports why standard output cannot be written") {
  const TemporaryDirectory directory;
  const std::string err = directory / "err";
  const auto said = [&] {
    std::ifstream file(err);
    std::string text;
    std::getline(file, text, '\0');
    return text;
  };
  REQUIRE(CodeOf("mkfs " + (directory / "store")) == 0);
  for (const std::string& command :
       {std::string("--help"), std::string("version"), "stat --json " + (directory / "store")}) {
    INFO(command);
    CHECK(CodeOf(command + " >/dev/full 2>" + err) == 1);
    CHECK(said() ==
          "siltfs: standard output: cannot write: No space left on device; free space on this disk "
          "or use another one [S0507]\n");
    CHECK(CodeOf(command + " >&- 2>" + err) == 1);
    CHECK(said() ==
          "siltfs: standard output: cannot write: Bad file descriptor; open it before the command "
          "starts [S0522]\n");
    CHECK(CodeOf(command + " >/dev/null 2>" + err) == 0);
    CHECK(said().empty());
  }
  CHECK(CodeOf("fsck " + (directory / "store") + " >&- 2>" + err) == 8);
  // A command that prints nothing needs no standard output.
  CHECK(CodeOf("mkfs " + (directory / "silent") + " >&- 2>" + err) == 0);
}

}  // namespace
}  // namespace siltfs::testing
