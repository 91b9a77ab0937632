#include "tools/siltfs/hooks.h"

#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>

#include "store/env/process.h"
#include "tools/siltfs/printable_text.h"

namespace siltfs {
namespace {

constexpr const char* kVariable = "SILTFS_HOOKS";
constexpr const char* kDefaultDirectory = "/etc/siltfs/hooks.d";
// After this time a program whose processes were killed is given up. It waits in the kernel.
constexpr std::chrono::seconds kAfterKill{5};
constexpr std::string_view kPath =
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
constexpr std::array kKept = {"HOME", "LANG", "LC_ALL", "LOGNAME", "TZ", "USER"};

std::optional<std::string> Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

std::vector<std::string> EnvironmentOf(const HookEvent& event) {
  std::vector<std::string> variables = {std::string(kPath)};
  for (const char* name : kKept) {
    if (const auto value = Variable(name)) variables.push_back(fmt::format("{}={}", name, *value));
  }
  variables.push_back("SILTFS_EVENT=" + event.event);
  variables.push_back("SILTFS_STORE=" + event.store);
  variables.push_back("SILTFS_MOUNTPOINT=" + event.mountpoint);
  variables.push_back(fmt::format("SILTFS_COUNT={}", event.count));
  variables.push_back("SILTFS_MESSAGE=" + Printable(event.message));
  return variables;
}

Status DescribeEnd(const ProgramEnd& end, const std::string& program) {
  if (end.succeeded()) return Status::Ok();
  const std::string how = end.signal != 0
                              ? fmt::format("the hook was ended by signal {}", end.signal)
                              : fmt::format("the hook ended with exit code {}", end.exit_code);
  return Status(StatusCode::kAborted, how).At(program);
}

Status RunHook(const std::string& program, const HookEvent& event, std::chrono::seconds timeout) {
  SILTFS_ASSIGN_OR_RETURN(
      StartedProgram started,
      StartedProgram::Start({.path = program, .environment = EnvironmentOf(event)}));
  SILTFS_ASSIGN_OR_RETURN(const auto end, started.Wait(timeout));
  if (end) return DescribeEnd(*end, program);
  started.Kill();
  SILTFS_RETURN_IF_ERROR(started.Wait(kAfterKill).status());
  return Status(StatusCode::kAborted,
                fmt::format("the hook was killed, because it had run for {} s", timeout.count()))
      .At(program);
}

std::vector<std::string> NotifyArguments(const HookEvent& event) {
  return {"notify",
          "--event=" + event.event,
          "--message=" + Printable(event.message),
          fmt::format("--count={}", event.count),
          "--mountpoint=" + event.mountpoint,
          "--",
          event.store};
}

// systemd replaces "$NAME" in the arguments of a unit, and "$$" by "$".
std::string EscapeForSystemd(const std::string& argument) {
  std::string escaped;
  for (const char c : argument) {
    if (c == '$') escaped += '$';
    escaped += c;
  }
  return escaped;
}

bool IsSystemService() { return CurrentUserId() == 0 && Variable("INVOCATION_ID").has_value(); }

StartedProgram::Options AsUnit(const std::string& program,
                               const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {"--quiet", "--collect", "--no-block",
                                    "--description=Hooks of siltfs"};
  if (const auto directory = Variable(kVariable))
    words.push_back(fmt::format("--setenv={}={}", kVariable, *directory));
  words.emplace_back("--");
  words.push_back(EscapeForSystemd(program));
  for (const std::string& argument : arguments) words.push_back(EscapeForSystemd(argument));
  return {
      .path = "systemd-run", .arguments = std::move(words), .environment = CurrentEnvironment()};
}

}  // namespace

std::string DamageMessage(uint64_t blocks) {
  return blocks == 1 ? "1 more block is damaged"
                     : fmt::format("{} more blocks are damaged", blocks);
}

std::string HookDirectory() { return Variable(kVariable).value_or(kDefaultDirectory); }

bool HasHooks() {
  const std::string directory = HookDirectory();
  if (directory.empty()) return false;
  const auto found = FindPrograms(directory);
  return !found.ok() || !found->programs.empty() || !found->refused.empty();
}

bool RunHooks(const HookEvent& event, std::chrono::seconds timeout,
              const std::function<void(const std::string& sentence)>& say) {
  const std::string directory = HookDirectory();
  if (directory.empty()) return true;
  const auto found = FindPrograms(directory);
  if (!found.ok()) {
    say(found.status().ToString());
    return false;
  }
  for (const std::string& sentence : found->refused) say(sentence);
  bool all = found->refused.empty();
  for (const std::string& program : found->programs) {
    const Status ran = RunHook(program, event, timeout);
    if (ran.ok()) continue;
    say(ran.ToString());
    all = false;
  }
  return all;
}

Result<StartedProgram> StartNotify(const HookEvent& event) {
  SILTFS_ASSIGN_OR_RETURN(const std::string program, PathOfOwnProgram());
  const std::vector<std::string> arguments = NotifyArguments(event);
  if (IsSystemService()) {
    auto unit = StartedProgram::Start(AsUnit(program, arguments));
    if (unit.ok()) return unit;
    unit.status().IgnoreError("without systemd-run the command is started directly");
  }
  return StartedProgram::Start(
      {.path = program, .arguments = arguments, .environment = CurrentEnvironment()});
}

}  // namespace siltfs
