// The ordered key-value store under the metadata: the interface that each metadata engine
// implements (metadata_engine.h). Callers do not know the engine.
//
// Thread-safety: all calls from any thread; an iterator from one thread at a time. Snapshots and
// iterators must be destroyed before CloseCleanly. Errors: kIoError, kNoSpace, kCorruption. A
// failed Write is invisible to readers but may have reached the device. After a Write failed with
// an error other than kNoSpace, all further writes are refused. Durability: an OK Write is atomic
// and durable.
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

// How a store is opened.
struct KvStoreOptions {
  enum class Mode : uint8_t {
    kCreate,    // makes the directory if necessary; fails if a store is in it
    kFill,      // like kCreate, for a store that is made as a whole: faster, but nothing is durable
                // before CloseCleanly. A crash may leave a store that cannot be opened
    kOpen,      // recovers, which writes to disk
    kReadOnly,  // writes nothing to disk; a log left by a crash is replayed in memory. All writes
                // fail with kReadOnly
  };
  std::string path;  // a directory; the engine owns every file in it
  Mode mode = Mode::kOpen;
  // A file beside the directory, which the engine owns, too. RocksDB keeps its sync ledger in it
  // (sync_ledger.h). Empty: the store is opened without this file. Damage in a log may then look
  // like the end that a crash has torn.
  std::string ledger_path = {};
  // The first bytes of the keys that loads have (KvLoad). The engine may need to know them to make
  // loads fast.
  std::string loaded_bytes = {};
};

// A key set to a value, or removed.
struct Mutation {
  std::string key;
  std::optional<std::string> value;
};

// Takes mutations one by one; copies keys and values.
class MutationSink {
 public:
  virtual ~MutationSink() = default;
  virtual void Put(std::string_view key, std::string_view value) = 0;
  virtual void Remove(std::string_view key) = 0;
};

struct KvEntry {
  std::string key;
  std::string value;
};

// Walks a snapshot in key order. After a failure Valid() is false and status() says why.
class KvIterator {
 public:
  virtual ~KvIterator() = default;
  virtual void Seek(std::string_view key) = 0;  // to the first key >= `key`
  virtual void Next() = 0;
  virtual bool Valid() const = 0;
  // Both views are valid until the next Seek or Next.
  virtual std::string_view key() const = 0;
  virtual std::string_view value() const = 0;
  virtual Status status() const = 0;
};

// The store as it was at one moment; freed with its last reference.
class KvSnapshot {
 public:
  virtual ~KvSnapshot() = default;
  virtual Result<std::optional<std::string>> Get(std::string_view key) const = 0;
  // The iterator must not outlive the snapshot.
  std::unique_ptr<KvIterator> NewIterator() const { return NewIteratorBelow({}); }
  // The iterator stops before `end`, and the store reads nothing beyond it. An empty `end` means no
  // end.
  virtual std::unique_ptr<KvIterator> NewIteratorBelow(std::string_view end) const = 0;
  // An iterator without an end that may give up when it has passed many removed keys: then it is
  // not valid, and its status is kAborted. A Seek makes it usable again. Without an implementation
  // of the engine, it does not give up.
  virtual std::unique_ptr<KvIterator> NewImpatientIterator() const { return NewIterator(); }
  // Returns the smallest key in [begin, end), with its value. Unlike a Seek of an iterator with a
  // larger range, it never passes removed keys beyond `end`.
  Result<std::optional<KvEntry>> FirstIn(std::string_view begin, std::string_view end) const;
  // Returns the greatest key in [begin, end), with its value. Without an implementation of the
  // engine, this passes all keys of the range.
  virtual Result<std::optional<KvEntry>> LastIn(std::string_view begin, std::string_view end) const;
};

// A key and its value, which belong to the caller.
struct KvRecord {
  std::string_view key;
  std::string_view value;
};

// Records in strictly ascending order of their keys.
using KvRun = std::vector<KvRecord>;

// Many records that are added to a store. This is faster than writes of them, and does not keep
// other writes waiting for long. Until Load has succeeded, the store has none, some or all of the
// records, also after a crash. So the caller must be able to remove them. Without a call of Load,
// the destructor discards the records that the store does not have yet. Not thread-safe; it must be
// destroyed before CloseCleanly.
class KvLoad {
 public:
  virtual ~KvLoad() = default;
  // Takes records whose keys were never written, and that begin with the same byte. It is fastest
  // if a run begins behind the end of the last run with this first byte. After a failure, no calls
  // may follow.
  virtual Status Add(const KvRun& run) = 0;
  // Adds all records that the store does not have yet, like a Write. On return, all records are
  // durable. Snapshots that were made before may show them, too. At most one call. kNoSpace also if
  // the disk was full at a time since the load began.
  virtual Status Load() = 0;
};

class KvStore {
 public:
  virtual ~KvStore() = default;
  virtual Result<std::optional<std::string>> Get(std::string_view key) const = 0;
  virtual std::shared_ptr<const KvSnapshot> Snapshot() const = 0;
  // Applies the mutations in order, atomically.
  Status Write(const std::vector<Mutation>& mutations);
  // Like Write, but writes the mutations that `fill` passes to the sink. So the caller does not
  // copy a large group into a list first. `fill` may be called more than once and must pass the
  // same mutations each time.
  virtual Status WriteFrom(const std::function<void(MutationSink&)>& fill) = 0;
  // A write is durable on the local disk when it returns. This returns when the writes so far are
  // also in the other place that the store promises to wait for, if there is one (a bucket with
  // sync=bucket). After a failure they may not be there yet. Any thread.
  virtual Status AwaitShipped() { return Status::Ok(); }
  // Begins a load. Without an implementation of the engine, each Add is a Write.
  virtual Result<std::unique_ptr<KvLoad>> NewLoad();
  // Reads all stored data and verifies its checksums. kCorruption if a checksum differs; OK if the
  // engine keeps no checksums.
  virtual Status VerifyChecksums() const { return Status::Ok(); }
  // For a store opened read-only: the number of changes that opening it found in a log. 0 if the
  // store was last closed by CloseCleanly.
  virtual uint64_t LoggedChanges() const { return 0; }
  // Bytes on disk, including the log that is being written.
  virtual uint64_t DiskBytes() const = 0;
  // Empties the logs, so that the next open needs no recovery. No calls may follow; a failed close
  // may be retried. A store that is not closed by CloseCleanly is left as after a crash: no write
  // is lost, but the latest ones are only in the log.
  virtual Status CloseCleanly() = 0;
};

// Passes the mutations to the sink, in order.
void PassTo(MutationSink& sink, const std::vector<Mutation>& mutations);

}  // namespace siltfs
