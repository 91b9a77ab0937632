// The whole of siltfs-bench behind main().
//
// Exit codes: 0 measured, and every answer was right; 1 an answer was wrong, or another failure;
// 2 usage.
#pragma once

#include <iosfwd>
#include <span>
#include <string>

namespace siltfs {

// `arguments` as main() gets them. Returns the exit code. Throws nothing.
int RunBench(std::span<const std::string> arguments, std::ostream& out, std::ostream& err);

}  // namespace siltfs
