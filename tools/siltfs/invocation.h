// The words of a command line before and after CLI11 has parsed them: which command they name, and
// what is wrong with them, in one sentence.
//
// Thread-safety: functions only; an App belongs to one thread.
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
  CLI::App* command = nullptr;  // the command that they name; owned by the root App
};

// Follows the names of commands from `root` on. kInvalidArgument for a command that is missing or
// unknown; the sentence names the command that may be meant.
Result<Invocation> ResolveInvocation(CLI::App& root, std::vector<std::string> words);

// "siltfs index plan"
std::string FullName(const CLI::App& command);

// What is wrong with the arguments of `command`.
std::string ExplainMistake(CLI::App& command, const CLI::ParseError& mistake);

// A sentence if a positional argument of the parsed command, all of which are paths or names, is
// empty.
std::optional<std::string> FindEmptyArgument(const CLI::App& command);

// Whether --json is among the words, even if they cannot be parsed. "--" ends the options.
bool AsksForJson(const std::vector<std::string>& words);

}  // namespace siltfs
