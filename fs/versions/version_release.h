// Finds the versions that no snapshot needs after one was deleted (version_key.h).
//
// A version that was kept for snapshot n serves the snapshots after `born`, up to n. The deletion
// of snapshot d leaves a version without a use if d was the only snapshot that it served. So it was
// kept for d, or for a snapshot after d that was deleted before the next remaining one; and it was
// born in the last snapshot before d, or later. The table of versions by snapshot lists these
// versions together, so the cost is proportional to what is freed, plus one seek for each deleted
// number in between.
//
// Thread-safety: one thread at a time. Memory: one batch. Errors: those of the key-value store;
// kCorruption for a malformed key. Durability: the caller writes the batches. A crash between two
// batches leaves versions that serve nothing; the caller repeats the release.
#pragma once

#include <string>
#include <vector>

#include "fs/versions/version_keeper.h"

namespace siltfs {

class VersionRelease {
 public:
  // `remaining`: the snapshots of the same lineage without the deleted one, ascending. `newest`:
  // the greatest number of any snapshot so far.
  VersionRelease(SnapshotNumber deleted, LineageNumber lineage,
                 const std::vector<SnapshotBounds>& remaining, SnapshotNumber newest);

  // Appends to `batch` the removal of at most `most` versions. Returns false at the end. `present`
  // must include the removals of earlier batches.
  Result<bool> Next(const KvSnapshot& present, size_t most, std::vector<Mutation>& batch);
  // The sizes of the files whose inodes were released so far. Their content may still be in use.
  uint64_t content_bytes() const { return content_bytes_; }

 private:
  const LineageNumber lineage_;
  SnapshotNumber before_ = 0;  // the last remaining snapshot before the deleted one
  SnapshotNumber at_ = 0;      // versions kept for this snapshot come next
  SnapshotNumber end_ = 0;
  std::string from_;  // where the next batch begins
  uint64_t content_bytes_ = 0;
};

}  // namespace siltfs
