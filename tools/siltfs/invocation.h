// Finds the command that the words of a command line name, before CLI11 parses them. Describes a
// mistake in the words in one sentence, also a mistake that CLI11 has found.
//
// Thread-safety: the functions have no state; an App belongs to one thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/base/result.h"

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace siltfs {

struct Invocation {
  // The words after the program's name, in CLI11's terms: "help gc" is "gc --help", and "version"
  // is "--version".
  std::vector<std::string> words;
  CLI::App* command = nullptr;  // the command they name; owned by the root App
};

// Follows the names of commands from `root` on. kInvalidArgument if the command is missing or
// unknown; the sentence suggests the closest command.
Result<Invocation> ResolveInvocation(CLI::App& root, std::vector<std::string> words);

// "siltfs index plan"
std::string FullName(const CLI::App& command);

// One sentence on a mistake in the arguments of `command`.
std::string ExplainMistake(CLI::App& command, const CLI::ParseError& mistake);

// A sentence if a positional argument of the parsed command is empty; all of them are paths or
// names.
std::optional<std::string> FindEmptyArgument(const CLI::App& command);

// Whether --json is among the words, even if they cannot be parsed. "--" ends the options.
bool AsksForJson(const std::vector<std::string>& words);

}  // namespace siltfs
