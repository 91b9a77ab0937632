// Fetches blocks of contents from the bucket, verifies them, and keeps them in the local cache.
//
// A block that several readers want is fetched once: the others wait for it, and get the same
// bytes, even if the cache has no room for them. At most `most_gets` GETs run at the same time.
//
// Failures: a request that fails, is truncated or returns wrong bytes is repeated with growing
// pauses until `timeout`. Nothing that does not match its checksum reaches the cache or a reader.
//
// Thread-safety: every call from any thread. After Stop, Fetch still works, but does not repeat.
// Errors, without a path: kIoError if the bucket does not answer or does not have the object, or
// its table; kCorruption if an answer that the service has sent several times does not match the
// checksums; kNeedsNewer.
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "store/base/lru_cache.h"
#include "store/base/thread_annotations.h"
#include "store/bucket/local_cache.h"
#include "store/bucket/outage.h"
#include "store/bucket/segment_object.h"
#include "store/bucket/stop_signal.h"
#include "store/object/object_store.h"

namespace siltfs {

class BlockFetcher {
 public:
  // Blocks of one GET.
  static constexpr uint32_t kMostBlocks = 8;

  struct Options {
    uint32_t threads = 0;  // for Prefetch; 0: Prefetch does nothing
    uint32_t most_gets = 1;
    std::chrono::nanoseconds timeout{0};
  };
  // The bytes of consecutive blocks.
  struct Blocks {
    uint32_t first = 0;
    Bytes bytes;
  };

  // All must outlive this object.
  BlockFetcher(ObjectStore& objects, LocalCache& cache, StopSignal& stop, Options options);
  ~BlockFetcher();  // stops

  // Fetches this block, and if it is missing in the cache, at most `count` - 1 further ones behind
  // it that are missing, too. The result has at least the bytes of the first block.
  Result<std::shared_ptr<const Blocks>> Fetch(const SegmentContent& content, uint32_t block,
                                              uint32_t count);
  // Fetches those of these blocks that are missing, in the background. A hint.
  void Prefetch(const SegmentContent& content, uint32_t block, uint32_t count);

  // The checksums of a content in the bucket, from memory, from the cache or from the bucket.
  Result<std::shared_ptr<const BlockChecksums>> Checksums(const SegmentContent& content);
  // The checksums in the bucket, by one request that is not repeated. kNotFound if there is no such
  // object.
  Result<BlockChecksums> ReadChecksums(const SegmentContent& content);
  void Remember(BlockChecksums checksums);

  // Ends the threads.
  void Stop();

  // How many fetches have had no answer (Outage).
  uint64_t unanswered() const { return outage_.unanswered(); }

 private:
  struct Flight;
  struct Task {
    SegmentContent content;
    uint32_t block;
    uint32_t count;
  };
  using BlockId = std::pair<ContentId, uint32_t>;

  std::shared_ptr<Flight> Register(const SegmentContent& content, uint32_t block, uint32_t count,
                                   bool& is_mine);
  Status Load(const SegmentContent& content, Flight& flight);
  // Reads the block from the cache, if it is there and matches its checksum.
  bool LoadUnverified(const BlockChecksums& checksums, Flight& flight);
  Status Get(const BlockChecksums& checksums, MutableByteView bytes, uint32_t first);
  // From the content's image, if it has an intact trailer.
  std::optional<BlockChecksums> KeptChecksums(const SegmentContent& content);
  Result<BlockChecksums> LoadChecksums(const SegmentContent& content);
  void ThreadMain();

  ObjectStore& objects_;
  LocalCache& cache_;
  StopSignal& stop_;
  Outage outage_;
  const Options options_;
  LruCache<ContentId, const BlockChecksums> tables_;

  Mutex mutex_;
  CondVar changed_;
  std::map<BlockId, std::shared_ptr<Flight>> flights_ SILTFS_GUARDED_BY(mutex_);
  std::set<ContentId> loading_tables_ SILTFS_GUARDED_BY(mutex_);
  std::deque<Task> tasks_ SILTFS_GUARDED_BY(mutex_);
  uint32_t gets_ SILTFS_GUARDED_BY(mutex_) = 0;
  bool stopping_ SILTFS_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_ SILTFS_GUARDED_BY(mutex_);
};

}  // namespace siltfs
