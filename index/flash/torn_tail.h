// Repairs a log after a crash: a file of pages that is written from front to back. After a crash,
// bytes that were written since the last sync may be missing or torn.
//
// Functions only; no other thread may use the file. Each function returns the number of bytes that
// it wrote.
#pragma once

#include <cstdint>

#include "store/base/result.h"
#include "store/env/env.h"

namespace siltfs {

// Removes everything from offset `end` (<= the file's size) on. The rest may still have to be
// synced. kCorruption if the tail is so long that it does not come from a crash. A full disk
// without room for zeros in place of the tail is not an error.
Result<uint64_t> CutTail(File& file, uint64_t end);

// Writes the bytes from `begin` to `end` again, and syncs the file. If the process was killed after
// a failed sync, the page cache holds pages that no later sync writes to the device.
Result<uint64_t> RewriteAndSync(File& file, uint64_t begin, uint64_t end);

}  // namespace siltfs
