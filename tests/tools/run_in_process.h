// Runs the siltfs command line within the test's process.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "store/env/posix_env.h"
#include "tools/siltfs/run_siltfs.h"

namespace siltfs::testing {

struct Outcome {
  int code = 0;
  std::string out;
  std::string err;
};

inline Outcome Run(const std::vector<std::string>& arguments) {
  const auto env = NewPosixEnv();
  std::ostringstream out;
  std::ostringstream err;
  Surroundings surroundings{.env = *env, .out = out, .err = err};
  const int code = RunSiltfs(arguments, surroundings);
  return {.code = code, .out = out.str(), .err = err.str()};
}

inline size_t Lines(const std::string& text) {
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

inline bool Has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace siltfs::testing
