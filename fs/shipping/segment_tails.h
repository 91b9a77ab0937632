// Brings the committed bytes of open segments to the bucket, and waits for the sealed ones.
//
// Commits refer to bytes of segments that are still files in STORE/segments: open segments, and
// sealed ones before their Put. These bytes are put as tail objects, each with the bytes that were
// committed since the last one. A segment's record says how many bytes are committed
// (SegmentRecord::length). They are durable and never change. Bytes beyond them may be torn, and
// are not put.
//
//   tails/EPOCH/IIIIIIII/OFFSET     bytes of segment I from OFFSET on, and a checksum behind them
//
// Each epoch puts the open segments from the beginning, because the writer before it may have put
// other bytes behind those that this writer has. A restore uses the tails of the epoch in which the
// last commit was made.
//
// The tails of a segment are removed when it is no longer a local file, so that the bucket has its
// object, and a log object has followed.
//
// Thread-safety: Committed from one thread at a time; Upload and Shipped from another one. Memory:
// about 100 bytes for each segment that is a local file.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "fs/shipping/shipping_options.h"
#include "store/base/location.h"
#include "store/base/thread_annotations.h"
#include "store/env/env.h"
#include "store/object/object_store.h"

namespace siltfs {

inline constexpr std::string_view kTailPrefix = "tails/";
// No tail is larger. Readers refuse a larger object.
inline constexpr uint64_t kMostTailObject = uint64_t{64} << 20;

struct TailName {
  uint32_t epoch = 0;
  SegmentId segment = kNoSegment;
  uint64_t offset = 0;
};
std::string TailKey(const TailName& name);
std::optional<TailName> ParseTailKey(std::string_view key);
// The prefix of the keys of an epoch.
std::string TailPrefix(uint32_t epoch);

// The object of these bytes, and the bytes of an object; kCorruption.
std::string EncodeTail(const TailName& name, ByteView bytes);
Result<std::string> DecodeTail(const TailName& name, ByteView object);

class SegmentTails final : public ShippedData {
 public:
  // The segments that were put.
  struct Uploads {
    // Returns when the bucket has all of them.
    std::function<Status()> wait;
    // Whether the bucket has this one; also true if there is no such segment.
    std::function<bool(SegmentId)> has;
  };
  SegmentTails(Env& env, std::string store, ObjectStore& objects, Uploads uploads);

  // The records of the store when it is opened.
  Status Load(const KvStore& kv);

  void Committed(const std::vector<Mutation>& mutations) override;
  Status Upload(uint32_t epoch) override;
  void Shipped(uint64_t sequence) override;

 private:
  struct Local {
    uint64_t committed = 0;  // bytes
    uint64_t put = 0;
    uint64_t tried = 0;  // the end of the last tail that was put, perhaps without an answer
  };

  // Puts the bytes from `local.put` on. False if the file is gone.
  Result<bool> PutTail(uint32_t epoch, SegmentId id, Local& local);
  Status AwaitUploads();
  Status RemoveBelow(const std::string& prefix, const std::string& end);

  Env& env_;
  const std::string store_;
  ObjectStore& objects_;
  const Uploads uploads_;

  // Used by the thread that ships.
  uint32_t epoch_ = 0;
  bool removed_older_ = false;
  // These are no local files any more. A Put may still be taking them over.
  std::set<SegmentId> put_;
  std::vector<SegmentId> gone_;  // the bucket has their objects, and their tails are to be removed

  Mutex mutex_;
  std::map<SegmentId, Local> local_ SILTFS_GUARDED_BY(mutex_);
};

}  // namespace siltfs
