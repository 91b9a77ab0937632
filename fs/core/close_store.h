// The end of a clean close of a writable store: makes everything durable and marks the store as
// unmounted.
#pragma once

#include <string>

#include "fs/chunks/chunk_store.h"
#include "fs/core/index_replay.h"
#include "fs/core/maintenance_jobs.h"
#include "fs/core/store_maintenance_impl.h"
#include "fs/deltas/near_duplicates.h"
#include "fs/guide/segment_guide.h"
#include "fs/meta/id_allocator.h"
#include "fs/meta/metadata_store.h"
#include "index/chunk_index.h"
#include "store/base/status.h"
#include "store/env/env.h"
#include "store/env/space_reserve.h"
#include "store/superblock/superblock.h"

namespace siltfs {

// The parts that are closed. Pointers may be null.
struct PartsToClose {
  Env& env;
  const std::string& store;  // path
  SpaceReserve& reserve;
  Superblock& superblock;
  ChunkIndex& index;
  SegmentGuide* guide;
  MetadataStore& metadata;
  IdAllocator& ids;
  ChunkStore& chunks;
  NearDuplicates* near_duplicates;
  StoreMaintenanceImpl* maintenance;  // stopped; null if the store keeps no history of its sizes
  MaintenanceJobs& jobs;              // stopped
  IndexReplay* replay;                // stopped
};

// Commits all changes and closes the parts. No calls but this one run meanwhile. After kNoSpace the
// call may be repeated if chunks.finished() is false; after another error, and if it is true, the
// store is as after a crash.
Status CloseStore(const PartsToClose& parts);

}  // namespace siltfs
