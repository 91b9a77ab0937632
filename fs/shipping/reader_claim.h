// The reader's side of its object in the bucket (reader_object.h): keeps the segments that the
// reader needs.
//
// The claim holds from Begin on, as long as Keep is called more often than the claim's age. A
// reader begins with a claim on everything. Only then it reads the end of the log. So it never
// needs a segment that was deleted before its claim was seen (reader_watch.h).
//
// A claim lapses if the writer has given the reader up, which Keep finds out, or if the reader was
// asleep for so long that the writer may have given it up. Segments may be gone then. The reader
// begins again, with Begin, and catches up.
//
// Not thread-safe, except for lapsed. Errors: those of the ObjectStore.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "fs/shipping/reader_object.h"
#include "store/object/object_store.h"

namespace siltfs {

class ReaderClaim {
 public:
  // `clock` returns nanoseconds that never go back, and that go on while the machine is suspended.
  // Both arguments must outlive the claim.
  ReaderClaim(ObjectStore& objects, ReaderObject reader, std::function<int64_t()> clock)
      : objects_(objects), clock_(std::move(clock)), reader_(std::move(reader)) {}

  // Claims the segments of all commits.
  Status Begin();
  // The reader needs only the segments of this commit and of later ones. Also a sign of life.
  // kStale if the claim has lapsed.
  Status Keep(uint64_t reached);
  // Whether a Keep is due as a sign of life.
  bool IsDue() const;
  // Whether the writer may have given this reader up.
  bool lapsed() const;
  // Gives all segments up, at the end.
  Status End();

  uint64_t reached() const { return reader_.reached; }
  std::chrono::nanoseconds age() const { return reader_.age; }

 private:
  Status Put(uint64_t reached, const PutCondition& condition);

  ObjectStore& objects_;
  const std::function<int64_t()> clock_;
  ReaderObject reader_;
  std::string version_;
  std::atomic<int64_t> last_ns_{0};  // when the last Put that succeeded began
  std::atomic<bool> given_up_{true};
};

}  // namespace siltfs
