// The code that all programs that test a mounted siltfs need. It reads arguments, and turns
// failures into exit codes.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <exception>
#include <functional>
#include <optional>
#include <string>

#include "tests/crash/kill/failure.h"

namespace siltfs::killtest {

enum ExitCode : int { kDone = 0, kFailed = 1, kUsage = 2, kSkipped = 77, kInterrupted = 130 };

// Reads the arguments. Returns an exit code if the program must end at once, after help or an
// error.
inline std::optional<int> Parse(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& wish) {  // help
    return app.exit(wish);
  } catch (const CLI::ParseError& mistake) {
    fmt::print(stderr, "{0}: {1} (try {0} --help)\n", app.get_name(), mistake.what());
    return kUsage;
  }
  return std::nullopt;
}

// Runs the program; prints an exception to standard error and turns it into an exit code.
inline int Guard(const std::string& program, const std::function<int()>& run) {
  try {
    return run();
  } catch (const Interrupted&) {
    return kInterrupted;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", program, error.what());
    return kFailed;
  }
}

}  // namespace siltfs::killtest
