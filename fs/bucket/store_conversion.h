// Moves the segments of a store between its directory and a bucket (docs/bucket.md).
//
//   ConvertToBucket      a store in its directory becomes one whose segments are in a bucket
//   ConvertToDirectory   the way back
//
// Atomicity: one write of the superblock is the conversion. Before it, the store is what it was,
// and can be mounted and changed; a later call goes on with what is there and still fits. After it,
// the store is of the other kind, and the next call or the next opening only tidies up.
//
// The store must have been closed cleanly, and must not be open: both functions take its lock.
// kInvalidArgument if it was not closed; kCorruption if a segment is missing or has another length
// than metadata says (fsck repairs that); kStale if the bucket has commits of another machine;
// kInterrupted; those of Env and ObjectStore. After each error the store can be used.
//
// Thread-safety: any thread. Memory: about 50 bytes for each segment, and a few MiB for each
// thread. Durability: the new state is durable on return.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "fs/bucket/bucket_config.h"
#include "store/base/result.h"
#include "store/env/env.h"
#include "store/object/object_store.h"

namespace siltfs {

struct ConversionOptions {
  std::string store;
  unsigned threads = 4;
  // May be empty. `done` and `total` are bytes of segments.
  std::function<void(uint64_t done, uint64_t total)> on_progress = {};
  // May be empty. Polled by a thread; true ends the conversion with kInterrupted.
  std::function<bool()> interrupted = {};
};

struct Conversion {
  bool converted = false;       // false: the store was of this kind before
  uint64_t segments = 0;        // that the new place has
  uint64_t bytes = 0;           // of these segments
  uint64_t moved_segments = 0;  // transferred by this call; an earlier call has done the rest
  uint64_t moved_bytes = 0;
};

// Uploads all sealed segments, and makes the superblock say that they are in the bucket. The
// commits are not in the bucket yet: the next opening for writing (StoreBucket) puts a checkpoint
// there.
//
// `objects` are those of `config`. The prefix is claimed for the store, or belongs to it already: a
// conversion that was interrupted, or a store that came from there (ConvertToDirectory).
// kAlreadyExists if the prefix belongs to another store or has objects; kInvalidArgument if a
// conversion to another bucket was begun.
Result<Conversion> ConvertToBucket(Env& env, ObjectStore& objects, const BucketConfig& config,
                                   const ConversionOptions& options);

// Downloads all segments, verifies them, and makes the superblock say that they are in the
// directory. kNoSpace, before anything is downloaded, if the disk has not enough room. The bucket
// stays as it is.
//
// For a store in its directory, the call removes what an unfinished conversion has left.
Result<Conversion> ConvertToDirectory(Env& env, ObjectStore& objects,
                                      const ConversionOptions& options);

// Removes what a conversion has left beside a store that is in its directory. Needs no bucket.
Status ForgetBucket(Env& env, const std::string& store);

}  // namespace siltfs
