// Env on the machine itself. Holds no state; any number may exist.
#pragma once

#include <memory>

#include "store/env/env.h"

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
};

std::unique_ptr<Env> NewPosixEnv(PosixEnvOptions options = {});

// Gives a directory the mode of those that an Env makes: nobody but its owner may look into it.
Status KeepToOwner(const std::string& directory);

}  // namespace siltfs
