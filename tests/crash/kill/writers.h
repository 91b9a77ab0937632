// The load: four kinds of writers, each writer in its own directory. They run until they are told
// to stop or the daemon is killed.
#pragma once

#include <memory>

#include "store/base/random.h"
#include "tests/crash/kill/recorder.h"

namespace siltfs::killtest {

// Runs writer number `writer`; the number determines its kind. Leaves no file open. Throws the
// exceptions of Recorder.
void RunWriter(unsigned writer, Recorder& recorder, Random random, ByteView pool);

}  // namespace siltfs::killtest
