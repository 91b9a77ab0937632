#include "tools/siltfs/invocation.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>
#include <utility>

#include "tools/siltfs/closest_name.h"

namespace siltfs {
namespace {

Status Wrong(std::string cause) { return {StatusCode::kInvalidArgument, std::move(cause)}; }

std::vector<CLI::App*> CommandsOf(CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

void CollectCommands(CLI::App& app, std::vector<CLI::App*>& commands) {
  for (CLI::App* command : CommandsOf(app)) {
    commands.push_back(command);
    CollectCommands(*command, commands);
  }
}

CLI::App& RootOf(CLI::App& app) {
  return app.get_parent() == nullptr ? app : RootOf(*app.get_parent());
}

// "siltfs verify" suggests "siltfs index verify". If the group is named, only one command outside
// of it comes into question: "siltfs index gc" suggests "siltfs gc".
std::string SuggestCommand(CLI::App& group, std::string_view word) {
  std::vector<CLI::App*> commands = CommandsOf(group);
  if (group.get_parent() == nullptr) {
    CollectCommands(group, commands);
  } else {
    std::ranges::copy_if(CommandsOf(RootOf(group)), std::back_inserter(commands),
                         [&](const CLI::App* command) { return command->get_name() == word; });
  }
  std::vector<std::string> names;
  for (const CLI::App* command : commands) names.push_back(command->get_name());
  const auto closest = FindClosestName(word, names);
  return closest ? fmt::format(", did you mean {}?", FullName(*commands[*closest])) : "";
}

std::string ListCommands(CLI::App& group) {
  std::string list;
  for (const CLI::App* command : CommandsOf(group))
    list += fmt::format("{}{}", list.empty() ? "" : ", ", command->get_name());
  return list;
}

Status Missing(CLI::App& group) {
  return Wrong(fmt::format("a command is required, one of {} (try {} --help)", ListCommands(group),
                           FullName(group)));
}

Status Unknown(CLI::App& group, const std::string& word) {
  const std::string whole = fmt::format("{} {}", FullName(group), word);
  return Wrong(fmt::format("unknown command \"{}\"{} (try {} --help)",
                           whole.substr(whole.find(' ') + 1), SuggestCommand(group, word),
                           FullName(group)));
}

bool IsOption(std::string_view word) {
  return word.size() > 1 && word.starts_with('-') && word != "--";
}

std::string SuggestOption(const CLI::App& command, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  const auto closest = FindClosestName(word.substr(0, word.find('=')), names);
  return closest ? fmt::format(", did you mean {}?", names[*closest]) : "";
}

std::string ExplainExtras(const CLI::App& command, const std::vector<std::string>& extras) {
  const auto option = std::find_if(extras.begin(), extras.end(), IsOption);
  if (option != extras.end())
    return fmt::format("unknown option \"{}\"{}", *option, SuggestOption(command, *option));
  return fmt::format("unexpected argument \"{}\"", extras.front());
}

// Rewrites CLI11's text, which is "--index-memory: 1 required SIZE missing" or, for flags, "json
// was given a disallowed ..."
std::string ExplainMismatch(std::string_view what) {
  const std::string_view name = what.substr(0, what.find_first_of(": "));
  if (what.find("flag override") == std::string_view::npos)
    return fmt::format("{}: the value is missing", name);
  return fmt::format("{}{}: the option takes no value", name.size() == 1 ? "-" : "--", name);
}

// Rewrites CLI11's text, which is "Could not convert: NAME = VALUE". CLI11 converts only the values
// of options that take numbers.
std::string ExplainConversion(std::string_view what) {
  constexpr std::string_view kPrefix = "Could not convert: ";
  constexpr std::string_view kEquals = " = ";
  const size_t equals = what.find(kEquals);
  if (!what.starts_with(kPrefix) || equals == std::string_view::npos) return std::string(what);
  return fmt::format("{}: \"{}\" is not a number",
                     what.substr(kPrefix.size(), equals - kPrefix.size()),
                     what.substr(equals + kEquals.size()));
}

}  // namespace

std::string FullName(const CLI::App& command) {
  if (command.get_parent() == nullptr) return command.get_name();
  return fmt::format("{} {}", FullName(*command.get_parent()), command.get_name());
}

Result<Invocation> ResolveInvocation(CLI::App& root, std::vector<std::string> words) {
  CLI::App* command = &root;
  for (size_t i = 0; !CommandsOf(*command).empty(); ++i) {
    if (i == words.size()) return Missing(*command);
    if (IsOption(words[i])) break;  // an option of the group itself, like --help
    if (words[i] == "help") {
      words.erase(words.begin() + static_cast<ptrdiff_t>(i));
      words.emplace_back("--help");
      return ResolveInvocation(root, std::move(words));
    }
    if (words[i] == "version" && command == &root) return Invocation{{"--version"}, &root};
    const std::vector<CLI::App*> commands = CommandsOf(*command);
    const auto next = std::find_if(commands.begin(), commands.end(),
                                   [&](const CLI::App* one) { return one->check_name(words[i]); });
    if (next == commands.end()) return Unknown(*command, words[i]);
    command = *next;
  }
  return Invocation{std::move(words), command};
}

std::string ExplainMistake(CLI::App& command, const CLI::ParseError& mistake) {
  const std::vector<std::string> extras = RootOf(command).remaining(/*recurse=*/true);
  // Report a misspelled option first, because a missing argument may be its consequence.
  const bool unexpected = dynamic_cast<const CLI::ExtrasError*>(&mistake) != nullptr ||
                          dynamic_cast<const CLI::RequiredError*>(&mistake) != nullptr;
  std::string what = mistake.what();
  if (unexpected && !extras.empty()) {
    what = ExplainExtras(command, extras);
  } else if (dynamic_cast<const CLI::ArgumentMismatch*>(&mistake) != nullptr) {
    what = ExplainMismatch(what);
  } else if (dynamic_cast<const CLI::ConversionError*>(&mistake) != nullptr) {
    what = ExplainConversion(what);
  }
  return fmt::format("{} (try {} --help)", what, FullName(command));
}

std::optional<std::string> FindEmptyArgument(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_positional()) continue;
    const auto& results = option->results();
    if (std::find(results.begin(), results.end(), "") == results.end()) continue;
    const std::string name = option->get_name(/*positional=*/true);
    return fmt::format("{}: the {} is empty", name, name.ends_with("NAME") ? "name" : "path");
  }
  return std::nullopt;
}

bool AsksForJson(const std::vector<std::string>& words) {
  const auto end = std::find(words.begin(), words.end(), "--");
  return std::find(words.begin(), end, "--json") != end;
}

}  // namespace siltfs
