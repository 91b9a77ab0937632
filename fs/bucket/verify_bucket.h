// Compares the objects of a bucket with what metadata says that they are, and changes nothing.
//
//   checked                         how
//   owner                           the object PREFIX/siltfs names the store
//   log, checkpoints                every object that a restore reads is read and verified
//   objects of segments             there, with the right size, and a trailer of this segment;
//                                   with `data`, the checksums of all blocks
//   tails of open segments          read, and complete
//   other objects                   foreign, or left over from changes that were interrupted
//
// A bucket may change meanwhile, because another machine has it mounted. If the log has grown, and
// something was found, all is compared again, several times at most.
//
// Thread-safety: any thread. Memory: about 200 bytes for each segment. Errors: those of the
// ObjectStore and of Env; kNotFound if the bucket has no store; kInterrupted.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/base/result.h"
#include "store/env/env.h"
#include "store/object/object_store.h"

namespace siltfs {

struct BucketFinding {
  std::string_view code;  // a literal: see kBucketFindingCodes
  std::string key;        // of the object
  std::string message;
};

// The codes, and what they mean. All but the last one are errors. An object that is left over is
// not: siltfs removes it by itself.
//   missing-object    metadata needs an object that is not there
//   wrong-size        an object does not have the size that metadata says
//   damaged-object    an object does not have its checksums, or belongs to another key
//   damaged-log       commits cannot be restored
//   foreign-owner     the prefix belongs to another store
//   foreign-object    siltfs does not make such objects
//   leftover-object   an object that nothing needs any more
inline constexpr std::string_view kLeftoverObject = "leftover-object";

struct BucketVerifyOptions {
  bool data = false;  // read all bytes of all segments
  unsigned threads = 8;
  // May be empty. `step` is a literal.
  std::function<void(std::string_view step, uint64_t done, uint64_t total)> on_progress = {};
  // May be empty. Polled; true ends the call with kInterrupted.
  std::function<bool()> interrupted = {};
};

struct BucketVerifyReport {
  std::vector<BucketFinding> findings;   // errors, in the order of the work; at most 10,000
  uint64_t errors = 0;                   // all of them
  std::vector<BucketFinding> leftovers;  // at most 10,000
  uint64_t leftover_objects = 0;
  uint64_t objects = 0;  // with the prefix
  uint64_t bytes = 0;    // of them
  uint64_t segments = 0;
  uint64_t segment_bytes = 0;
  uint64_t waiting_segments = 0;  // of the store, that the bucket does not have yet
  uint64_t log_objects = 0;
  uint64_t checkpoints = 0;
  uint64_t tails = 0;
  uint64_t data_bytes = 0;                 // verified because of `data`
  uint64_t commit = 0;                     // the number of the last commit in the bucket
  std::optional<uint64_t> commits_behind;  // of the store, if it has the bucket's history
};

// Compares with the bucket's own checkpoint and log.
Result<BucketVerifyReport> VerifyBucket(ObjectStore& objects, const BucketVerifyOptions& options);

// Compares with the metadata of a store that is not open: takes its lock. kInvalidArgument if its
// segments are not in a bucket.
Result<BucketVerifyReport> VerifyBucketOfStore(Env& env, ObjectStore& objects,
                                               const std::string& store,
                                               const BucketVerifyOptions& options);

}  // namespace siltfs
