// The statistics of an unmounted store. Nothing is written, even if the store has crashed before.
#pragma once

#include <string>

#include "fs/interface/stats.h"
#include "store/base/result.h"
#include "store/env/env.h"

namespace siltfs {

class SegmentStore;  // store/segment/segment_store.h

// kNotFound if there is no store, kInUse if it is mounted. kNeedsNewer and kCorruption as when
// opening the store. After a crash, files and logical bytes do not count uncommitted changes.
Result<FileSystemStats> ReadStoreStats(Env& env, const std::string& store,
                                       SegmentStore* segments = nullptr);

}  // namespace siltfs
