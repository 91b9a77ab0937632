// The options of a BucketSegmentStore. A plain value.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "store/bucket/commit_gate.h"

namespace siltfs {

struct BucketOptions {
  // A local directory for segments and tombstones, in the same file system as the store, because
  // Put renames files into it. Its parent must exist; the first change makes the directory.
  std::string directory;
  // The most bytes of that directory (local_cache.h).
  uint64_t cache_bytes = uint64_t{2} << 30;
  // The most files with images of objects. Each takes about 300 bytes of memory.
  uint32_t cache_files = 16384;

  // Threads that upload segments. Each streams one segment. 0: the caller calls RunBackground, and
  // segments are fetched only by the threads that read them.
  uint32_t upload_threads = 4;
  // Threads that fetch blocks before a reader needs them.
  uint32_t fetch_threads = 4;
  // GETs at the same time, by readers and threads together. A GET takes at most 2 MiB of memory.
  uint32_t most_gets = 8;

  // How long a read repeats its requests while the bucket fails, before it returns kIoError.
  std::chrono::nanoseconds bucket_timeout = std::chrono::minutes(2);
  // How long Put and Replace wait for room in the cache before they return kNoSpace.
  std::chrono::nanoseconds room_timeout = std::chrono::minutes(10);

  // The number of this writer's turn. It is the upper half of the generations of all contents that
  // are put from now on. So the contents of two writers never have the same key, and those of the
  // later writer win.
  uint32_t epoch = 0;
  // The store only reads: it changes nothing in the bucket, and Put, Replace and Remove return
  // kReadOnly.
  bool read_only = false;
  // Null: contents are uploaded and deleted at once. Must outlive the store.
  CommitGate* gate = nullptr;
};

}  // namespace siltfs
