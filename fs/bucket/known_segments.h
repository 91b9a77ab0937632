// The segments that metadata knows, in a bucket or in a store's directory, and the files that the
// directory has of them. The verification of a bucket compares them (verify_bucket.h).
//
// Thread-safety: as values. Errors: those of metadata and of Env.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "fs/kv/kv_store.h"
#include "fs/records/epoch_floors.h"
#include "fs/records/position_record.h"
#include "store/base/location.h"
#include "store/env/env.h"
#include "store/segment/store_uuid.h"
#include "store/superblock/superblock.h"

namespace siltfs {

// The segments that some metadata knows, with the lengths that their objects may have.
struct KnownSegment {
  bool sealed = false;
  uint64_t length = 0;
  std::optional<uint64_t> intended;  // length of a replacement
};
using KnownSegments = std::map<SegmentId, KnownSegment>;

Result<KnownSegments> ReadKnownSegments(const KvSnapshot& metadata);

// What the store's directory has.
struct LocalStore {
  StoreUuid uuid;
  KnownSegments segments;
  PositionRecord position;
  EpochFloors floors;
  std::map<SegmentId, uint64_t> waiting;  // generations of files that wait for their upload
  std::map<SegmentId, uint64_t> removed;  // generations up to which objects will be deleted
  std::set<SegmentId> files;              // in STORE/segments
};

// Reads a store that is not open.
Result<LocalStore> ReadLocalStore(Env& env, const std::string& store, const Superblock& superblock);

}  // namespace siltfs
