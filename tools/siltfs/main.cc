#include <iostream>

#include "store/env/posix_env.h"
#include "store/env/process.h"
#include "tools/siltfs/run_siltfs.h"

int main(int argc, char** argv) {
  // The paths that are given to it are resolved before they are used.
  const auto env = siltfs::NewPosixEnv({.links = siltfs::SymbolicLinks::kRefuse});
  siltfs::Surroundings surroundings{.env = *env,
                                    .out = std::cout,
                                    .err = std::cerr,
                                    .err_is_terminal = siltfs::StandardErrorIsTerminal()};
  return siltfs::RunSiltfs(std::vector<std::string>(argv, argv + argc), surroundings);
}
