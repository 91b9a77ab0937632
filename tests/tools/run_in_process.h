// Runs the siltfs command line within the test's process.
#pragma once

#include <algorithm>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "store/env/posix_env.h"
#include "tools/siltfs/run_siltfs.h"

namespace siltfs::testing {

struct Outcome {
  int code = 0;
  std::string out;
  std::string err;  // without the identifiers of messages
  std::vector<std::string> ids = {};
};

inline Outcome Run(const std::vector<std::string>& arguments) {
  const auto env = NewPosixEnv();
  std::ostringstream out;
  std::ostringstream err;
  Surroundings surroundings{.env = *env, .out = out, .err = err};
  Outcome outcome{.code = RunSiltfs(arguments, surroundings), .out = out.str(), .err = err.str()};
  static const std::regex kIdentifier(R"( \[(S\d{4})\]\n)");
  for (std::smatch found; std::regex_search(outcome.err, found, kIdentifier);) {
    outcome.ids.push_back(found[1]);
    outcome.err.erase(static_cast<size_t>(found.position()), found[0].length() - 1);
  }
  return outcome;
}

inline size_t Lines(const std::string& text) {
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

inline bool Has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace siltfs::testing
