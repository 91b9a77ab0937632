// The whole of siltfs-bench behind main().
//
// Exit codes: 0 if every answer was right; 1 for a wrong answer or another failure; 2 for usage.
#pragma once

#include <iosfwd>
#include <span>
#include <string>

namespace siltfs {

// `arguments` as main() gets them. Returns the exit code. Throws nothing.
int RunBench(std::span<const std::string> arguments, std::ostream& out, std::ostream& err);

}  // namespace siltfs
