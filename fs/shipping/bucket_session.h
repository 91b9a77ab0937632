// The bucket of a store that is open for writing: its commits, its segments, and the writer's
// epoch.
//
// Use: make a session, pass `segments()` and `Layer` to FileSystemOptions, and keep the session
// until the file system is destroyed.
//
//   Layer      checks that the store and the bucket have the same history (kStale), begins an epoch
//              of the log, opens the segments with this epoch, and starts the shipper
//   segments   forwards to the segments in the bucket once Layer has opened them
//
// Segments in the bucket of which this store has no record were put by a writer that was fenced.
// Layer removes them. A fenced writer may also put a segment later, with an id that this store uses
// by then (epoch_floors.h). Layer removes such an object if the store has the segment in a local
// file. If a replacement of a segment was announced and is not recorded as done, the writer before
// may still put the new content, although it was fenced. So Layer puts the content that is there
// again, with the new epoch, and a late one never wins.
//
// Thread-safety: every call from any thread after Layer. Ownership: `env` and `objects` must
// outlive the session, and the session must outlive the file system.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "fs/kv/kv_store.h"
#include "fs/records/epoch_floors.h"
#include "fs/shipping/segment_tails.h"
#include "fs/shipping/shipped_segment_store.h"
#include "fs/shipping/shipper.h"
#include "fs/shipping/shipping_options.h"
#include "store/bucket/bucket_segment_store.h"
#include "store/env/env.h"
#include "store/object/object_store.h"

namespace siltfs {

struct BucketSessionOptions {
  std::string store;  // path
  // `attachment` is set by the session: it is the superblock.
  ShippingOptions shipping;
  // `epoch` and `gate` are set by the session. `directory` must exist.
  BucketOptions bucket;
  // How long a removal or replacement of a segment waits for the bucket.
  std::chrono::nanoseconds change_timeout = std::chrono::minutes(10);
};

class BucketSession {
 public:
  BucketSession(Env& env, ObjectStore& objects, BucketSessionOptions options);
  ~BucketSession();

  // FileSystemOptions::segments.
  SegmentStore& segments();
  // FileSystemOptions::metadata_layer. At most one call.
  Result<std::unique_ptr<KvStore>> Layer(std::unique_ptr<KvStore> kv);

  Shipper& shipper() { return shipper_; }
  BucketLag lag() const { return shipper_.lag(); }
  // Returns when the bucket has all segments and commits up to now. kIoError, with the last
  // failure, after `timeout`; kReadOnly if fenced; kInterrupted when the session ends. Call after
  // Layer.
  Status AwaitAll(std::chrono::nanoseconds timeout);
  // Null before Layer.
  BucketSegmentStore* bucket() { return bucket_.get(); }
  // The store is about to be closed (Shipper::BeginClosing).
  void BeginClosing() { shipper_.BeginClosing(); }
  // Ends all waiting; for the end of the process.
  void Interrupt();

 private:
  class LateSegments;

  Status WaitForUploads();
  Status RemoveForeign(const KvStore& kv, const EpochFloors& floors);
  Result<bool> IsForeign(const KvStore& kv, const EpochFloors& floors, SegmentId id);
  // Deletes at the end what the next open would have to delete.
  void DeleteUseless();
  Status PinAnnounced(const KvStore& kv);
  Status PutAgain(SegmentId id, const ReadableFile& content);

  Env& env_;
  ObjectStore& objects_;
  const BucketSessionOptions options_;
  Shipper shipper_;
  SegmentTails tails_;
  std::unique_ptr<BucketSegmentStore> bucket_;
  std::unique_ptr<ShippedSegmentStore> shipped_;
  const std::unique_ptr<LateSegments> late_;
};

}  // namespace siltfs
