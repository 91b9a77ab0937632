// siltfs notify
#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>

#include "store/env/mountpoint.h"
#include "tools/siltfs/command.h"
#include "tools/siltfs/hooks.h"

namespace siltfs {
namespace {

struct NotifyCommandArguments {
  HookEvent event;
  uint64_t timeout_seconds = kHookTime.count();
};

ExitCode RunNotify(const NotifyCommandArguments& arguments, Surroundings& surroundings) {
  HookEvent event = arguments.event;
  // Hooks run in another directory.
  const auto store = AbsoluteName(event.store);
  if (store) event.store = *store;
  const bool all = RunHooks(event, std::chrono::seconds(arguments.timeout_seconds),
                            [&](const std::string& sentence) { Say(surroundings, sentence); });
  return all ? ExitCode::kDone : ExitCode::kFailed;
}

}  // namespace

std::function<ExitCode()> ConfigureNotify(CLI::App& app, Surroundings& surroundings) {
  auto arguments = std::make_shared<NotifyCommandArguments>();
  HookEvent& event = arguments->event;
  event.event = "test";
  event.message = "This is a test of the hooks; nothing is wrong.";
  app.add_option("STORE|MOUNTPOINT", event.store, "What the event is about")->required();
  app.add_option("--event", event.event, "The kind of event, for the hooks")
      ->type_name("EVENT")
      ->capture_default_str();
  app.add_option("--message", event.message, "One sentence for people")->type_name("TEXT");
  app.add_option("--count", event.count, "What the message counts, such as damaged blocks")
      ->type_name("N");
  app.add_option("--mountpoint", event.mountpoint, "Where the store is mounted")
      ->type_name("MOUNTPOINT");
  app.add_option("--timeout", arguments->timeout_seconds, "Longest time for each hook")
      ->type_name("SECONDS")
      ->capture_default_str()
      ->check(CLI::Range(uint64_t{1}, uint64_t{3600}).description(""));
  return [arguments, &surroundings] { return RunNotify(*arguments, surroundings); };
}

}  // namespace siltfs
