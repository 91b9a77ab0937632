// The end of the log in a bucket, and the one writer that appends to it.
//
// One writer: the number of an object decides. A writer puts each object with the condition that
// there is none with this number. It begins with an object of a new epoch at the next number. If
// another writer then tries to put an object with this number, it fails: that writer is fenced.
// Nothing that a fenced writer has not shipped counts.
//
// An object below the oldest kept checkpoint is deleted, and its number could be put again. So a
// writer that was asleep for long could put an object there. Objects are deleted in ascending
// order, so an object whose predecessor still exists has a number that was never deleted. A writer
// looks at the predecessor after each put, and only then counts its object.
//
// A lost answer: the writer reads the object back, and compares all bytes. Until it knows whether
// its object is there, it puts the same bytes and no others.
//
// Not thread-safe, except for ReadLogEnd. Errors: those of the ObjectStore; kStale if the writer is
// fenced, from then on for ever; kNotFound if objects were
// removed while they were read; then the call may be repeated.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "fs/shipping/log_object.h"
#include "store/base/result.h"
#include "store/object/object_store.h"

namespace siltfs {

struct LogEnd {
  uint64_t next = 1;      // number of the next object
  uint64_t checksum = 0;  // of the last object
  // Of the last object; default values if there is none.
  uint32_t epoch = 0;
  uint64_t last = 0;  // sequence of the last commit
  int64_t time_ns = 0;
  int64_t lease_end_ns = 0;
  WriterIdentity writer;
  // The last object cannot be read. Then `last`, `time_ns` and `read_epoch` are those of the last
  // one that can be read, and `epoch` is at least as high as any that was in use.
  bool damaged = false;
  uint32_t read_epoch = 0;
};

// If objects at the end are damaged, returns what can be known.
Result<LogEnd> ReadLogEnd(ObjectStore& objects);

class BucketLog {
 public:
  // `objects` must outlive the log.
  BucketLog(ObjectStore& objects, WriterIdentity writer)
      : objects_(objects), writer_(std::move(writer)) {}

  // Begins an epoch. `check` says whether the writer may follow this end; it is called again if
  // another writer was faster.
  Status Begin(const std::function<Status(const LogEnd&)>& check, int64_t now_ns,
               int64_t lease_end_ns);

  // Sets the next object; sets its epoch, number, predecessor and writer.
  Status Prepare(LogObject object);
  // Whether an object was prepared, and is not confirmed yet.
  bool is_pending() const { return !pending_.empty(); }
  // Puts the prepared object. OK: it is the next object of the log. May be repeated after an error
  // other than kStale.
  Status Confirm();

  uint32_t epoch() const { return end_.epoch; }
  uint64_t next() const { return end_.next; }
  const LogEnd& end() const { return end_; }
  bool fenced() const { return fenced_; }

 private:
  Status Fenced();
  // Compares the object with this number with the pending one.
  Result<bool> IsOurs();

  ObjectStore& objects_;
  const WriterIdentity writer_;
  LogEnd end_;
  LogObject prepared_;   // without attachment and commits
  std::string pending_;  // its bytes
  bool fenced_ = false;
};

}  // namespace siltfs
