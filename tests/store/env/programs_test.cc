#include "store/env/programs.h"

#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <string>

#include "tests/support/catch.h"
#include "tests/support/read_text.h"
#include "tests/support/temporary_directory.h"

namespace siltfs::testing {
namespace {

using std::chrono::seconds;

void MakeScript(const std::string& path, const std::string& text, mode_t mode = 0755) {
  std::ofstream(path) << "#!/bin/sh\n" << text;
  REQUIRE(chmod(path.c_str(), mode) == 0);
}

ProgramEnd EndOf(StartedProgram& program) {
  const auto end = program.Wait(seconds(60));
  REQUIRE_OK(end);
  REQUIRE(end->has_value());
  return **end;
}

TEST_CASE("a program gets its arguments and variables, and no descriptor of this process") {
  const TemporaryDirectory directory;
  const std::string out = directory / "out";
  MakeScript(directory / "program", "{ echo \"$1 $NAME\"; pwd; cat; ls /proc/self/fd | wc -l; } >" +
                                        out + "\nkill -TERM $$; exit 7\n");
  // A descriptor without O_CLOEXEC.
  const int inherited = dup(STDERR_FILENO);
  REQUIRE(inherited >= 0);
  auto started = StartedProgram::Start({.path = directory / "program",
                                        .arguments = {"first"},
                                        .environment = {"NAME=value", "PATH=/usr/bin:/bin"}});
  close(inherited);
  REQUIRE_OK(started);
  const ProgramEnd end = EndOf(*started);
  CHECK(end.signal == SIGTERM);
  CHECK_FALSE(end.succeeded());
  // Standard input, output and error, and the directory that ls reads.
  CHECK(ReadTextOf(out) == "first value\n/\n4\n");
}

TEST_CASE("a program gets the default signals, even if this thread blocks them") {
  const TemporaryDirectory directory;
  MakeScript(directory / "program", "kill -TERM $$\nexit 0\n");
  sigset_t blocked;
  sigset_t before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  REQUIRE(pthread_sigmask(SIG_BLOCK, &blocked, &before) == 0);
  auto started = StartedProgram::Start({.path = directory / "program"});
  REQUIRE(pthread_sigmask(SIG_SETMASK, &before, nullptr) == 0);
  REQUIRE_OK(started);
  CHECK(EndOf(*started).signal == SIGTERM);
}

TEST_CASE("Kill ends a program with its children, and Wait tells exit codes") {
  const TemporaryDirectory directory;
  MakeScript(directory / "hangs", "sleep 1000 &\necho $! >" + (directory / "child") + "\nwait\n");
  auto hangs = StartedProgram::Start({.path = directory / "hangs"});
  REQUIRE_OK(hangs);
  std::optional<std::string> child;
  while (!(child = ReadTextOf(directory / "child")) || !child->ends_with("\n")) usleep(1000);
  const auto still = hangs->Wait(std::chrono::milliseconds(0));
  REQUIRE_OK(still);
  CHECK_FALSE(still->has_value());
  hangs->Kill();
  CHECK(EndOf(*hangs).signal == SIGKILL);
  while (ReadTextOf("/proc/" + child->substr(0, child->size() - 1) + "/cmdline").value_or("") != "")
    usleep(1000);

  MakeScript(directory / "fails", "exit 3\n");
  auto fails = StartedProgram::Start({.path = directory / "fails"});
  REQUIRE_OK(fails);
  CHECK(EndOf(*fails).exit_code == 3);
  CHECK(StartedProgram::Start({.path = directory / "missing"}).status().Is(StatusCode::kNotFound));
}

TEST_CASE("only programs with plain names that no other user can change are found") {
  const TemporaryDirectory directory;
  MakeScript(directory / "b-2", "");
  MakeScript(directory / "a_1", "");
  MakeScript(directory / "old.dpkg-old", "");
  MakeScript(directory / "backup~", "");
  MakeScript(directory / "text", "", 0644);
  MakeScript(directory / "weak", "", 0757);
  REQUIRE(mkdir((directory / "folder").c_str(), 0755) == 0);
  REQUIRE(symlink((directory / "a_1").c_str(), (directory / "link").c_str()) == 0);
  const auto found = FindPrograms(directory.path());
  REQUIRE_OK(found);
  CHECK(found->programs ==
        std::vector<std::string>{directory / "a_1", directory / "b-2", directory / "link"});
  REQUIRE(found->refused.size() == 1);
  CHECK(found->refused[0] ==
        directory / "weak" + ": it is not run, because other users can change it");

  const auto none = FindPrograms(directory / "none");
  REQUIRE_OK(none);
  CHECK(none->programs.empty());
  REQUIRE(chmod(directory.path().c_str(), 0777) == 0);
  CHECK(FindPrograms(directory.path()).status().Is(StatusCode::kNotPermitted));
}

}  // namespace
}  // namespace siltfs::testing
