// Options of the log in a bucket, and what is known about how far behind the bucket is. Plain
// values.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "fs/shipping/log_object.h"
#include "store/base/result.h"

namespace siltfs {

struct ShippingOptions {
  WriterIdentity writer;
  // sync=bucket: AwaitShipped of the key-value store waits. Otherwise: sync=local.
  bool wait_for_bucket = false;
  // Commits for which no caller waits are collected for this long before they are put.
  std::chrono::nanoseconds interval = std::chrono::seconds(5);
  // A log object ends behind the commit that reaches this size.
  uint64_t object_bytes = uint64_t{4} << 20;
  // Commits that wait. Beyond this they are dropped, and a checkpoint replaces them.
  uint64_t queue_bytes = uint64_t{64} << 20;
  // A checkpoint is made when the log since the last one has more bytes than this and than a
  // quarter of the last checkpoint, or so many objects that a restore would take long.
  uint64_t checkpoint_bytes = uint64_t{64} << 20;
  uint64_t checkpoint_objects = 10000;
  // The writer counts as alive for this long after each object. It puts an object without commits
  // when a third of this time has passed. 0: no such objects.
  std::chrono::nanoseconds lease = std::chrono::seconds(60);
  // How long CloseCleanly waits for the bucket. After that the rest is shipped at the next open,
  // unless another writer has taken over.
  std::chrono::nanoseconds close_timeout = std::chrono::minutes(2);
  // CloseCleanly calls it when it no longer waits for the bucket: running requests are of no use
  // any more, and the close would wait for their end. May be empty.
  std::function<void()> given_up;
  // CloseCleanly calls it when the bucket has all commits. May be empty.
  std::function<void()> shipped_at_close;
  // False, for tests: no thread. Ship makes each step; AwaitShipped and WaitShipped call it.
  bool background = true;
  // Bytes that belong to the state of a commit (the superblock). Called before each object, after
  // its commits were chosen. May be empty.
  std::function<Result<std::string>()> attachment;
  // Called once, from any thread, when another writer has taken over. May be empty.
  std::function<void(const Status&)> fenced;
};

struct BucketLag {
  uint64_t commits = 0;  // that the bucket does not have
  uint64_t bytes = 0;    // of their mutations
  // Since the first of them was made. After an open, that is unknown for commits of earlier runs;
  // then since the moment up to which the bucket is known to have all commits.
  double seconds = 0;
  uint64_t shipped = 0;         // the sequence of the last commit in the bucket
  int64_t shipped_time_ns = 0;  // since 1970: the bucket has all commits up to then
  uint64_t newest = 0;          // the sequence of the last commit
  uint32_t epoch = 0;
  bool checkpoint_waits = false;  // only a checkpoint can bring the rest to the bucket
  bool fenced = false;
  uint64_t log_objects = 0;  // put since the store was opened
  uint64_t checkpoints = 0;  // made since the store was opened
  // Of the last checkpoint and the log since then, before their compression.
  uint64_t metadata_bytes = 0;
  std::string host;          // of the writer that has the lease
  int64_t lease_end_ns = 0;  // since 1970; 0: there is no writer
  std::string last_error;    // of the last attempt; empty if it succeeded
  // Mounts on other machines that follow this writer, as they were last looked at, and the lowest
  // commit that one of them shows; 0 without readers, and for a reader that is only beginning.
  uint64_t readers = 0;
  uint64_t slowest_reader = 0;
};

// What a commit refers to, and what must be in the bucket before the commit is. Thread-safety:
// Committed is called by one writer at a time, the others by the thread that ships.
class ShippedData {
 public:
  virtual ~ShippedData() = default;
  // Mutations of a commit that is locally durable, and is not shipped yet.
  virtual void Committed(const std::vector<Mutation>& mutations) = 0;
  // On return the bucket has everything that the commits up to now refer to.
  virtual Status Upload(uint32_t epoch) = 0;
  // The bucket has the commits up to this one, and counts the data of this epoch.
  virtual void Shipped(uint64_t sequence) = 0;
};

}  // namespace siltfs
