// The walk behind every mark (mark.h): all references of one commit's metadata.
//
// Thread-safety: one thread. Errors: those of snapshot, nodes, `visit` and pace; kCorruption for
// metadata that cannot be decoded.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "fs/mark/mark.h"
#include "fs/mark/node_set.h"
#include "fs/records/schema.h"

namespace siltfs {

// Calls a MarkPace at intervals.
class Pacer {
 public:
  // The work of reading, verifying and decoding a node or a record.
  static constexpr uint32_t kNodeWork = 64;
  static constexpr uint32_t kRecordWork = 8;

  // `files`: counts CountFile; may be null.
  explicit Pacer(const MarkPace& pace, ProgressMeter* files = nullptr)
      : pace_(pace), files_(files) {}

  // Counts an inode record that was walked.
  void CountFile() {
    if (files_ != nullptr) files_->Add();
  }

  // Counts work. The unit is the work of passing one name to `visit`. Calls the pace when enough
  // work has been counted.
  Status Step(uint32_t work = 1) {
    work_ += work;
    if (work_ < kWorkBetweenCalls) return Status::Ok();
    work_ = 0;
    return pace_ ? pace_() : Status::Ok();
  }

 private:
  static constexpr uint32_t kWorkBetweenCalls = 4096;

  const MarkPace& pace_;
  ProgressMeter* const files_;
  uint32_t work_ = 0;
};

// Names the inode to which the record of this key belongs, for messages.
std::string NameOfOwner(Table table, std::string_view key);

using ReferenceVisit = std::function<Status(const ChunkName&)>;

// Like ForEachReference, but skips nodes that are in `walked`, and everything under them. Adds all
// other nodes to `walked`.
Status WalkReferences(const KvSnapshot& metadata, NodeStore& nodes, NodeSet& walked, Pacer& pacer,
                      const ReferenceVisit& visit);

}  // namespace siltfs
