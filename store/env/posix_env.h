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

struct PosixEnvOptions {
  ReadMechanism reads = ReadMechanism::kBest;
};

std::unique_ptr<Env> NewPosixEnv(PosixEnvOptions options = {});

// Gives a directory the mode of those that an Env makes: nobody but its owner may look into it.
Status KeepToOwner(const std::string& directory);

}  // namespace siltfs
