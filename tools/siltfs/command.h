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
#include "store/env/piped_streams.h"
#include "store/env/terminal.h"
#include "tools/siltfs/exit_code.h"
#include "tools/siltfs/health_state.h"

// Only files that declare options or make an App include CLI/CLI.hpp, which takes seconds to
// compile.
namespace CLI {
class App;
}

namespace siltfs {

struct Surroundings {
  Env& env;
  std::ostream& out;  // results, and nothing else
  std::ostream& err;  // progress, and one sentence per failure
  bool err_is_terminal = false;
  // How text on `out` is to be laid out. Called again for each screen, because a terminal may
  // change its width. Empty: as for a file.
  std::function<TextStyle()> out_style = {};
  // Returns why writing to `out` failed; if unset, the cause is unknown.
  std::function<std::string()> why_out_failed = {};
  // Standard input and output, for commands whose data are a stream of bytes; null: there are none.
  PipedStreams* pipes = nullptr;
  // RunSiltfs sets it if --json is among the arguments. Failures are then printed on `out`, too, as
  // JSON documents.
  bool json = false;
};

inline TextStyle StyleOfOut(const Surroundings& surroundings) {
  return surroundings.out_style ? surroundings.out_style() : TextStyle();
}

// Declares a command's options on `app` and returns the function to run after they are parsed.
using ConfigureCommand = std::function<ExitCode()> (*)(CLI::App& app, Surroundings& surroundings);

std::function<ExitCode()> ConfigureMkfs(CLI::App& app, Surroundings& surroundings);
std::function<ExitCode()> ConfigureMount(CLI::App& app, Surroundings& surroundings);
std::function<ExitCode()> ConfigureUmount(CLI::App& app, Surroundings& surroundings);
std::function<ExitCode()> ConfigureStat(CLI::App& app, Surroundings& surroundings);
std::function<ExitCode()> ConfigureSync(CLI::App& app, Surroundings& surroundings);
std::function<ExitCode()> ConfigureSettle(CLI::App& app, Surroundings& surroundings);
std::function<ExitCode()> ConfigureGc(CLI::App& app, Surroundings& surroundings);
std::function<ExitCode()> ConfigureScrub(CLI::App& app, Surroundings& surroundings);
std::function<ExitCode()> ConfigureClone(CLI::App& app, Surroundings& surroundings);
std::function<ExitCode()> ConfigureDu(CLI::App& app, Surroundings& surroundings);
std::function<ExitCode()> ConfigureFindDuplicates(CLI::App& app, Surroundings& surroundings);
std::function<ExitCode()> ConfigureSnapshot(CLI::App& app, Surroundings& surroundings);
std::function<ExitCode()> ConfigureQuota(CLI::App& app, Surroundings& surroundings);
std::function<ExitCode()> ConfigureSend(CLI::App& app, Surroundings& surroundings);
std::function<ExitCode()> ConfigureReceive(CLI::App& app, Surroundings& surroundings);
std::function<ExitCode()> ConfigureExport(CLI::App& app, Surroundings& surroundings);
std::function<ExitCode()> ConfigureImport(CLI::App& app, Surroundings& surroundings);
std::function<ExitCode()> ConfigureIndex(CLI::App& app, Surroundings& surroundings);
std::function<ExitCode()> ConfigureTune(CLI::App& app, Surroundings& surroundings);
std::function<ExitCode()> ConfigureList(CLI::App& app, Surroundings& surroundings);
std::function<ExitCode()> ConfigureExplain(CLI::App& app, Surroundings& surroundings);
std::function<ExitCode()> ConfigureMetrics(CLI::App& app, Surroundings& surroundings);
std::function<ExitCode()> ConfigureReport(CLI::App& app, Surroundings& surroundings);
std::function<ExitCode()> ConfigureNotify(CLI::App& app, Surroundings& surroundings);

// This command returns the exit codes of a plugin for monitoring systems.
std::function<HealthState()> ConfigureCheckHealth(CLI::App& app, Surroundings& surroundings);

// This command returns the exit codes of fsck(8).
std::function<FsckCode()> ConfigureFsck(CLI::App& app, Surroundings& surroundings);

// The helper that mount(8) calls: mount.siltfs STORE MOUNTPOINT [-sfnv] [-o options]. It returns
// the exit codes of MountHelperCode.
std::function<int()> ConfigureMountHelper(CLI::App& app, Surroundings& surroundings);

// Say and Warn print their text on the error stream, in one line, escaped by Printable. Say prints
// "siltfs: SENTENCE".
void Say(Surroundings& surroundings, std::string_view sentence);
void Warn(Surroundings& surroundings, std::string_view sentence);  // "siltfs: warning: SENTENCE"
// Prints like Say, with the remedy and the identifier of the message (message_table.h), and returns
// `code`, so that a command can write `return Fail(...)`. With --json it also prints the document
// {"error": SENTENCE, "id": IDENTIFIER} in one line on the output stream. Warn adds the identifier.
ExitCode Fail(Surroundings& surroundings, ExitCode code, std::string_view sentence);
ExitCode Fail(Surroundings& surroundings, const Status& status);

}  // namespace siltfs
