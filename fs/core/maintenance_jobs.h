// The jobs that maintain a writable store, in the background or when called: recompression, garbage
// collection, scrub and the update of the segment guide.
//
// Thread-safety: every call from any thread. Ownership: borrows the parts and the nodes, which must
// outlive it. The jobs write metadata, so stop or destroy them while metadata still takes writes.
// Make no commit after their destruction, because a commit passes sealed segments to recompression.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fs/chunks/chunk_parts.h"
#include "fs/gc/garbage_collector.h"
#include "fs/guide/guide_updater.h"
#include "fs/recipe/recipe_node.h"
#include "fs/recompression/recompressor.h"
#include "fs/records/scrub_record.h"
#include "fs/scrub/scrubber.h"
#include "store/segment/base_chooser.h"

namespace siltfs {

class MaintenanceJobs {
 public:
  struct Options {
    std::string spill_directory;       // for garbage collection
    std::optional<ScrubRecord> scrub;  // an unfinished scrub
    // Bytes of the reserve and of the free space that garbage collection leaves to metadata and the
    // index.
    uint64_t room_for_others = 0;
    // Chooses the bases of deltas (Recompressor::Options); must outlive the jobs. Only used if the
    // superblock allows deltas. Null: no chunk becomes a delta.
    BaseChooser* chooser = nullptr;
  };
  // `parts` is writable and has a CommitPort; `nodes` reads recipe nodes from `parts`. `records`:
  // the segment records at the time when the store was opened. Construct the jobs before the first
  // commit, because each commit passes newly sealed segments to recompression. Starts no thread.
  MaintenanceJobs(ChunkParts& parts, NodeStore& nodes, const SegmentRecords& records,
                  Options options);

  Recompressor& recompressor() { return recompressor_; }
  GarbageCollector& collector() { return collector_; }
  Scrubber& scrubber() { return scrubber_; }
  // Null if the store has no segment guide.
  GuideUpdater* guide_updater() { return guide_updater_.get(); }

  // Interrupts all jobs, and returns when they have ended. No job begins afterwards.
  void Stop();

 private:
  // The order matters: each job is destroyed before the jobs that it uses.
  Recompressor recompressor_;
  GarbageCollector collector_;
  Scrubber scrubber_;
  std::unique_ptr<GuideUpdater> guide_updater_;
};

}  // namespace siltfs
