// The shape of a siltfs command: each has its file, and nothing to do with the others.
//
// A command never touches the process's streams or arguments but through Surroundings, so that
// tests run it in-process.
#pragma once

#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>

#include "store/base/status.h"
#include "store/env/env.h"
#include "tools/siltfs/exit_code.h"

// Who declares options or makes an App includes CLI/CLI.hpp, which takes seconds to compile.
namespace CLI {
class App;
}

namespace siltfs {

struct Surroundings {
  Env& env;
  std::ostream& out;  // results, and nothing else
  std::ostream& err;  // one sentence per failure, progress
  bool err_is_terminal = false;
  // Why `out` takes no more, once it has failed; where it is not set, no cause is known.
  std::function<std::string()> why_out_failed = {};
  // --json is among the arguments: failures are documents on `out`, too. RunSiltfs sets it.
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

// Its codes are those of fsck(8).
std::function<FsckCode()> ConfigureFsck(CLI::App& app, Surroundings& surroundings);

// As mount(8) calls it: mount.siltfs STORE MOUNTPOINT [-sfnv] [-o options]. Its codes are
// MountHelperCode's.
std::function<int()> ConfigureMountHelper(CLI::App& app, Surroundings& surroundings);

// Each of these says "siltfs: SENTENCE" on the error stream, escaped by Printable, in one line.
void Say(Surroundings& surroundings, std::string_view sentence);
void Warn(Surroundings& surroundings, std::string_view sentence);  // "siltfs: warning: SENTENCE"
// Under --json also prints {"error": SENTENCE} on the output stream, as the command's one document.
// Returns the code, for `return Fail(...)`.
ExitCode Fail(Surroundings& surroundings, ExitCode code, std::string_view sentence);
ExitCode Fail(Surroundings& surroundings, const Status& status);

}  // namespace siltfs
