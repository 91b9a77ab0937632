// The writer's side of readers (reader_object.h): which commits the live readers still need.
//
// A reader is live until its object has not changed for the time that the object states. Only the
// writer's monotonic clock counts, from the moment at which this class first saw the content. So
// the clocks of the machines need not agree. The object of a reader that is not live is removed:
// the reader's next Put then fails, and it knows that it was given up (reader_claim.h).
//
// Not thread-safe. Memory: about 200 bytes for each reader. Errors: those of the ObjectStore. An
// object that cannot be decoded counts as a reader that needs everything, until its time is over.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "fs/shipping/reader_object.h"
#include "store/object/object_store.h"

namespace siltfs {

struct ReaderView {
  uint64_t readers = 0;           // that are live
  uint64_t reached = UINT64_MAX;  // the lowest of theirs
};

class ReaderWatch {
 public:
  // `objects` must outlive the watch.
  explicit ReaderWatch(ObjectStore& objects) : objects_(objects) {}

  // `now_ns`: of a monotonic clock. A reader that begins after this call has begun is not seen. It
  // reads the end of the log later, so it needs no older commit than the log has now.
  Result<ReaderView> Look(int64_t now_ns);

 private:
  struct Known {
    std::string version;
    int64_t since_ns = 0;  // when this version was first seen
    ReaderObject reader;
    bool listed = false;
  };
  Status Note(const ObjectInfo& info, int64_t now_ns);
  Status Read(const std::string& key, Known& known);

  ObjectStore& objects_;
  std::map<std::string, Known> known_;  // by key
};

}  // namespace siltfs
