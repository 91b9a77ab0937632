// Tells a BucketSegmentStore when a change of a segment may reach the bucket, with regard to the
// metadata that is in the bucket.
//
// The metadata in the bucket may be older than the local one. If this machine is lost, the store is
// opened with the metadata in the bucket. So no object that this metadata needs may be deleted, and
// no replacement may be visible in the bucket before the intent for it is.
//
// Thread-safety: every call from any thread. The calls are short, and take none of the locks of
// the caller.
#pragma once

#include <cstdint>

namespace siltfs {

class CommitGate {
 public:
  virtual ~CommitGate() = default;

  // The position of the newest local commit. Positions ascend and are valid after a restart.
  virtual uint64_t Position() = 0;
  // Whether the bucket holds all commits up to this position. Then a replacement that was made at
  // this position may be uploaded.
  virtual bool MayReplace(uint64_t position) = 0;
  // Whether the bucket holds all commits up to this position, and no reader of the bucket uses an
  // older one. Then the contents that became useless at this position may be deleted.
  virtual bool MayDelete(uint64_t position) = 0;
};

}  // namespace siltfs
