// newer_superblock STORE: gives an unmounted store a feature that no present siltfs knows.
#include <cstdio>

#include "store/env/posix_env.h"
#include "store/superblock/superblock.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const auto env = siltfs::NewPosixEnv();
  auto state = siltfs::ReadSuperblock(*env, argv[1]);
  if (!state.ok()) {
    std::fprintf(stderr, "%s\n", state.status().ToString().c_str());
    return 1;
  }
  state->superblock.incompat_features |= uint64_t{1} << 63;
  const siltfs::Status written = siltfs::WriteSuperblock(*env, argv[1], state->superblock);
  if (!written.ok()) std::fprintf(stderr, "%s\n", written.ToString().c_str());
  return written.ok() ? 0 : 1;
}
