// The ordered key-value store that metadata stands on: the narrow seam behind which RocksDB lies
// (and where a distributed store could). Nothing above knows which it is.
//
// Thread-safety: all calls from any thread; an iterator from one thread at a time. Snapshots and
// iterators must be gone before CloseCleanly. Errors: kIoError, kNoSpace, kCorruption. A failed
// Write changed nothing that a reader sees, but may have reached the device: after one (kNoSpace
// excepted) the caller must not write again, and is refused if it does. Durability: an OK Write is
// atomic and durable.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/base/result.h"

namespace siltfs {

// A key set to a value, or removed.
struct Mutation {
  std::string key;
  std::optional<std::string> value;
};

// Takes mutations one by one; copies what it is given.
class MutationSink {
 public:
  virtual ~MutationSink() = default;
  virtual void Put(std::string_view key, std::string_view value) = 0;
  virtual void Remove(std::string_view key) = 0;
};

// Walks a snapshot in key order. After a failure Valid() is false and status() says why.
class KvIterator {
 public:
  virtual ~KvIterator() = default;
  virtual void Seek(std::string_view key) = 0;  // to the first key >= `key`
  virtual void Next() = 0;
  virtual bool Valid() const = 0;
  virtual std::string_view key() const = 0;    // until the next move
  virtual std::string_view value() const = 0;  //
  virtual Status status() const = 0;
};

// The store as it was at one moment; released when the last holder lets go.
class KvSnapshot {
 public:
  virtual ~KvSnapshot() = default;
  virtual Result<std::optional<std::string>> Get(std::string_view key) const = 0;
  // The iterator must not outlive the snapshot.
  std::unique_ptr<KvIterator> NewIterator() const { return NewIteratorBelow({}); }
  // Ends before `end` (empty: at the end), and spares the store to look beyond it.
  virtual std::unique_ptr<KvIterator> NewIteratorBelow(std::string_view end) const = 0;
};

class KvStore {
 public:
  virtual ~KvStore() = default;
  virtual Result<std::optional<std::string>> Get(std::string_view key) const = 0;
  virtual std::shared_ptr<const KvSnapshot> Snapshot() const = 0;
  // Applies the mutations in order, as one.
  Status Write(const std::vector<Mutation>& mutations);
  // The same for those that `fill` passes to the sink: so a large group need not be copied into a
  // list first. `fill` may be called more than once, and must pass the same each time.
  virtual Status WriteFrom(const std::function<void(MutationSink&)>& fill) = 0;
  // Reads everything that is stored and compares it with its checksums. kCorruption for what
  // differs; OK where the store keeps none.
  virtual Status VerifyChecksums() const { return Status::Ok(); }
  // Of a store opened read-only: how many changes were found in a log, where CloseCleanly leaves
  // none.
  virtual uint64_t LoggedChanges() const { return 0; }
  // Bytes on disk, live log included.
  virtual uint64_t DiskBytes() const = 0;
  // Leaves nothing in a log: what is on disk afterwards needs no recovery. No call may follow, this
  // one excepted after a failure. Without it the store is left as by a crash: all that was written
  // is there, in the log.
  virtual Status CloseCleanly() = 0;
};

// Passes the mutations on, in order.
void PassTo(MutationSink& sink, const std::vector<Mutation>& mutations);

}  // namespace siltfs
