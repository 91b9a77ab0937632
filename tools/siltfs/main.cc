#include <iostream>

#include "store/env/piped_streams.h"
#include "store/env/posix_env.h"
#include "store/env/process.h"
#include "store/env/standard_output.h"
#include "store/env/terminal.h"
#include "tools/siltfs/run_siltfs.h"

int main(int argc, char** argv) {
  const siltfs::Status occupied = siltfs::OccupyStandardDescriptors();
  if (!occupied.ok()) return static_cast<int>(siltfs::ExitCode::kFailed);
  siltfs::StandardOutput output;
  // Symbolic links can be refused, because commands resolve the user's paths before they use them.
  const auto env = siltfs::NewPosixEnv({.links = siltfs::SymbolicLinks::kRefuse});
  const auto pipes = siltfs::StandardPipes();
  siltfs::Surroundings surroundings{.env = *env,
                                    .out = output.stream(),
                                    .err = std::cerr,
                                    .err_is_terminal = siltfs::StandardErrorIsTerminal(),
                                    .out_style = siltfs::StyleOfStandardOutput,
                                    .why_out_failed = [&output] { return output.failure(); },
                                    .pipes = pipes.get()};
  return siltfs::RunSiltfs(std::vector<std::string>(argv, argv + argc), surroundings);
}
