// The interface of a siltfs command. Each command has its own file and is independent of the
// others.
//
// A command accesses the process's streams and arguments only through Surroundings, so that tests
// can run it in-process.
#pragma once

#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>

#include "store/base/status.h"
#include "store/env/env.h"
#include "tools/siltfs/exit_code.h"

// Only files that declare options or make an App include CLI/CLI.hpp, which takes seconds to
// compile.
namespace CLI {
class App;
}

namespace siltfs {

struct Surroundings {
  Env& env;
  std::ostream& out;  // results, and nothing else
  std::ostream& err;  // one sentence per failure, progress
  bool err_is_terminal = false;
  // Returns why writing to `out` failed; if unset, the cause is unknown.
  std::function<std::string()> why_out_failed = {};
  // Set by RunSiltfs if --json is among the arguments: failures are JSON documents on `out`, too.
  bool json = false;
};

// Declares a command's options on `app` and returns what to run once they are parsed.
using ConfigureCommand = std::function<ExitCode()> (*)(CLI::App& app, Surroundings& surroundings);

std::function<ExitCode()> ConfigureMkfs(CLI::App& app, Surroundings& surroundings);
std::function<ExitCode()> ConfigureMount(CLI::App& app, Surroundings& surroundings);
std::function<ExitCode()> ConfigureUmount(CLI::App& app, Surroundings& surroundings);
std::function<ExitCode()> ConfigureStat(CLI::App& app, Surroundings& surroundings);
std::function<ExitCode()> ConfigureSync(CLI::App& app, Surroundings& surroundings);
std::function<ExitCode()> ConfigureSettle(CLI::App& app, Surroundings& surroundings);
std::function<ExitCode()> ConfigureGc(CLI::App& app, Surroundings& surroundings);
std::function<ExitCode()> ConfigureScrub(CLI::App& app, Surroundings& surroundings);
std::function<ExitCode()> ConfigureIndex(CLI::App& app, Surroundings& surroundings);

// Uses the exit codes of fsck(8).
std::function<FsckCode()> ConfigureFsck(CLI::App& app, Surroundings& surroundings);

// The helper that mount(8) calls: mount.siltfs STORE MOUNTPOINT [-sfnv] [-o options]. Uses the exit
// codes of MountHelperCode.
std::function<int()> ConfigureMountHelper(CLI::App& app, Surroundings& surroundings);

// Each of these prints "siltfs: SENTENCE" on the error stream in one line, escaped by Printable.
void Say(Surroundings& surroundings, std::string_view sentence);
void Warn(Surroundings& surroundings, std::string_view sentence);  // "siltfs: warning: SENTENCE"
// With --json it also prints {"error": SENTENCE} on the output stream, as the command's only
// document. Returns the code, for `return Fail(...)`.
ExitCode Fail(Surroundings& surroundings, ExitCode code, std::string_view sentence);
ExitCode Fail(Surroundings& surroundings, const Status& status);

}  // namespace siltfs
