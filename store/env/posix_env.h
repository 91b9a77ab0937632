// The Env on the machine itself. Its only state is an open directory, the anchor
// (PosixEnvOptions::anchor). Any number of these Envs may exist.
#pragma once

#include <memory>
#include <string>

#include "store/env/env.h"
#include "store/env/file_owner.h"

namespace siltfs {

// How NewReadQueue reads.
enum class ReadMechanism : uint8_t {
  kBest,     // io_uring, or threads if the system refuses it (containers often do)
  kUring,    // io_uring only: NewReadQueue fails if the system refuses it
  kThreads,  // a thread pool; each thread waits for one read
};

// The parts of a path that may be symbolic links.
enum class SymbolicLinks : uint8_t {
  kFollow,  // all
  // None. A link in a path is kCorruption, because a store made by another user must not lead
  // outside itself. On Linux before 5.6 only the last name of a path is checked.
  kRefuse,
};

struct PosixEnvOptions {
  ReadMechanism reads = ReadMechanism::kBest;
  SymbolicLinks links = SymbolicLinks::kFollow;
  // A directory that is opened when the Env is made; empty: no anchor. Paths below it are resolved
  // relative to the opened directory, even after this directory was moved and replaced. The path is
  // used verbatim and must be absolute. If the directory cannot be opened, there is no anchor.
  std::string anchor = {};
};

std::unique_ptr<Env> NewPosixEnv(PosixEnvOptions options = {});

// Gives a directory the mode that Env::CreateDirectory uses: only its owner has access.
Status KeepToOwner(const std::string& directory);

// The owner of a file or directory; follows symbolic links. kNotFound if `path` does not exist.
Result<FileOwner> OwnerOf(const std::string& path);

}  // namespace siltfs
