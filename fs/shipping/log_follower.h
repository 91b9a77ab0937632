// Reads the log in a bucket as it grows, object by object.
//
// Each object is verified: its checksum, its number, the checksum of its predecessor, and that the
// sequences of its commits have no gaps. So what is passed on is always the next part of the one
// history (bucket_log.h).
//
// The objects below a checkpoint are removed. If the next object is gone, or if the log does not
// have all commits because a checkpoint brought them, the follower has to begin again with the
// newest checkpoint: kStale. A writer that was asleep could put an object with a number that was
// removed. So an object counts only if its predecessor is still there after it was read: objects
// are removed in ascending order.
//
// Not thread-safe. Memory: one log object. Errors: those of the ObjectStore and of `apply`;
// kCorruption; kStale. After an error the position is that of the last object that was applied.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "fs/kv/kv_store.h"
#include "fs/shipping/log_object.h"
#include "fs/shipping/restore_kv_store.h"
#include "store/base/result.h"
#include "store/object/object_store.h"

namespace siltfs {

struct LogPosition {
  uint64_t next = 1;      // number of the next object
  uint64_t checksum = 0;  // of the last object
  uint64_t sequence = 0;  // of the last commit
  int64_t time_ns = 0;    // when it was made, since 1970
  // Of the writer that has put the data of this state, and the superblock of this state.
  uint32_t data_epoch = 0;
  std::string attachment;
};

class LogFollower {
 public:
  // `objects` must outlive the follower.
  LogFollower(ObjectStore& objects, const RestoredState& restored);

  // Called with all mutations of one object, in order. It applies them as one write.
  using Apply = std::function<Status(const std::vector<Mutation>& mutations)>;
  // Reads at most `most` objects. Returns how many there were.
  Result<size_t> Poll(size_t most, const Apply& apply);

  const LogPosition& position() const { return position_; }

 private:
  struct Next {
    LogObject object;
    uint64_t checksum = 0;
  };
  // False if there is no next object yet.
  Result<bool> Read(Next& next);
  Status Take(const Next& next, const Apply& apply);
  Status Gone() const;

  ObjectStore& objects_;
  LogPosition position_;
};

}  // namespace siltfs
