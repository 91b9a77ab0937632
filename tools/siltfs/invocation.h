// Finds the command that a command line names, before CLI11 parses the words. Describes a mistake
// in the words in one sentence; this includes mistakes that CLI11 finds.
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
  // The words after the program's name, in the form that CLI11 understands: "help gc" becomes "gc
  // --help", and "version" becomes "--version".
  std::vector<std::string> words;
  CLI::App* command = nullptr;  // the command that the words name; owned by the root App
};

// Returns the command under `root` that `words` name. Returns kInvalidArgument if the command is
// missing or unknown; for an unknown command the message suggests the closest one, if any.
Result<Invocation> ResolveInvocation(CLI::App& root, std::vector<std::string> words);

// Returns the command's name, preceded by the names of its groups, for example "siltfs index plan".
std::string FullName(const CLI::App& command);

// Returns one sentence that describes a mistake in the arguments of `command`.
std::string ExplainMistake(CLI::App& command, const CLI::ParseError& mistake);

// Returns an error sentence if a positional argument of the parsed command is empty. All positional
// arguments are paths or names, so none may be empty.
std::optional<std::string> FindEmptyArgument(const CLI::App& command);

// Returns whether --json is among the words, even if the words cannot be parsed. "--" ends the
// options.
bool AsksForJson(const std::vector<std::string>& words);

}  // namespace siltfs
