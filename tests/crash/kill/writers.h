// The load: programs of four kinds, each in a directory of its own, until they are told to stop or
// the mount is gone.
#pragma once

#include <memory>

#include "store/base/random.h"
#include "tests/crash/kill/recorder.h"

namespace siltfs::killtest {

// Runs writer number `writer` (its kind follows from that). Leaves nothing open. Throws what
// Recorder throws.
void RunWriter(unsigned writer, Recorder& recorder, Random random, ByteView pool);

}  // namespace siltfs::killtest
