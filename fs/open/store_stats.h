// The statistics of an unmounted store. Nothing is written, even if the store has crashed before.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "fs/interface/stats.h"
#include "store/base/result.h"
#include "store/env/env.h"

namespace siltfs {

class KvStore;       // fs/kv/kv_store.h
class SegmentStore;  // store/segment/segment_store.h

// kNotFound if there is no store, kInUse if it is mounted. kNeedsNewer and kCorruption as when
// opening the store. After a crash, files and logical bytes do not count uncommitted changes.
// `metadata_layer`: as in FileSystemOptions.
Result<FileSystemStats> ReadStoreStats(
    Env& env, const std::string& store, SegmentStore* segments = nullptr,
    std::function<Result<std::unique_ptr<KvStore>>(std::unique_ptr<KvStore>)> metadata_layer = {});

}  // namespace siltfs
