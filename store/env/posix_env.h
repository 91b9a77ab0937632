// Env on the machine itself. Its only state is its anchor; any number may exist.
#pragma once

#include <memory>
#include <string>

#include "store/env/env.h"
#include "store/env/file_owner.h"

namespace siltfs {

// The mechanism of NewReadQueue.
enum class ReadMechanism : uint8_t {
  kBest,     // io_uring, or threads if the system refuses it (containers often do)
  kUring,    // io_uring only: NewReadQueue fails if the system refuses it
  kThreads,  // a thread pool; each thread waits for one read
};

// The parts of a path that may be symbolic links.
enum class SymbolicLinks : uint8_t {
  kFollow,  // all
  // None: a link is kCorruption. A store made by another user must not lead outside itself. On
  // Linux before 5.6 only the last name is checked.
  kRefuse,
};

struct PosixEnvOptions {
  ReadMechanism reads = ReadMechanism::kBest;
  SymbolicLinks links = SymbolicLinks::kFollow;
  // A directory that is opened when the Env is made; empty: none. Paths below it are resolved
  // relative to it, even after it was moved and replaced at this path. The path is used verbatim
  // and must be absolute. If it cannot be opened, there is no anchor.
  std::string anchor = {};
};

std::unique_ptr<Env> NewPosixEnv(PosixEnvOptions options = {});

// Gives a directory the mode that Env::CreateDirectory uses: only its owner has access.
Status KeepToOwner(const std::string& directory);

// The owner of a file or directory; follows symbolic links. kNotFound if `path` does not exist.
Result<FileOwner> OwnerOf(const std::string& path);

}  // namespace siltfs
