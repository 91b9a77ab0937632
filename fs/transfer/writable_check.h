// Whether a transfer or a clone into the file system can begin.
//
// Thread-safety: from any thread. Errors: kReadOnly with the reason; those of GetStats.
#pragma once

#include "fs/interface/file_system.h"
#include "store/base/status.h"

namespace siltfs {

// OK if the file system can be changed.
Status CheckWritable(FileSystem& file_system);

}  // namespace siltfs
