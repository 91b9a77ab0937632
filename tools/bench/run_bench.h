// The whole of siltfs-bench behind main().
//
// Exit codes: 0 if every answer was right; 1 for a wrong answer or another failure; 2 for wrong
// usage.
#pragma once

#include <iosfwd>
#include <span>
#include <string>

namespace siltfs {

// Runs the program and returns its exit code. Throws nothing. `arguments` are those of main().
int RunBench(std::span<const std::string> arguments, std::ostream& out, std::ostream& err);

}  // namespace siltfs
