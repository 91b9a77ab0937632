// Env on the machine itself. Holds no state but its anchor; any number may exist.
#pragma once

#include <memory>
#include <string>

#include "store/env/env.h"
#include "store/env/file_owner.h"

namespace siltfs {

// What stands behind NewReadQueue.
enum class ReadMechanism : uint8_t {
  kBest,     // io_uring, or threads where the machine refuses it (containers often do)
  kUring,    // io_uring or nothing: NewReadQueue fails where the machine refuses it
  kThreads,  // a pool of threads that each wait for a read
};

// What of a path may be a symbolic link.
enum class SymbolicLinks : uint8_t {
  kFollow,  // all of it
  // Nothing: kCorruption. A store that somebody else has made is not to lead anywhere else. Of
  // Linux before 5.6 only the last name is looked at.
  kRefuse,
};

struct PosixEnvOptions {
  ReadMechanism reads = ReadMechanism::kBest;
  SymbolicLinks links = SymbolicLinks::kFollow;
  // A directory that is opened when the Env is made; empty: none. What lies below it is found
  // through it from then on, also when it was moved and another one stands at this path. The path
  // is used as it is, and must be absolute. Where it cannot be opened, there is no anchor.
  std::string anchor = {};
};

std::unique_ptr<Env> NewPosixEnv(PosixEnvOptions options = {});

// Gives a directory the mode of those that an Env makes: nobody but its owner may look into it.
Status KeepToOwner(const std::string& directory);

// Of a file or directory; of what a symbolic link leads to. kNotFound if there is nothing.
Result<FileOwner> OwnerOf(const std::string& path);

}  // namespace siltfs
