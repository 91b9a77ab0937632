// Makes a key-value store from what a bucket has: the newest checkpoint, and the log behind it.
//
// The result is a prefix of the history: all commits up to one, and none after it. Checksums, the
// chain of log objects and the sequences of commits are verified. If the newest checkpoint cannot
// be used, the one before it is, with the log from there.
//
// Damage: if an object of the log is damaged or missing although later ones exist, the result is
// kCorruption with a sentence that says which commits would be lost. With `stop_at_damage` the
// result is the state before the damage.
//
// Thread-safety: any thread. Memory: one log object or part, and the objects that are read ahead
// (ObjectsAhead). Errors: those of the ObjectStore and of the key-value store; kNotFound if the
// bucket has no store; kCorruption; kInterrupted.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "fs/kv/kv_store.h"
#include "fs/shipping/bucket_log.h"
#include "fs/shipping/checkpoint.h"
#include "store/base/result.h"
#include "store/object/object_store.h"

namespace siltfs {

struct RestoreOptions {
  bool stop_at_damage = false;
  // Objects of the log are read by several threads. Otherwise the calls of the ObjectStore have an
  // order, which tests need.
  bool reads_ahead = true;
  // Called with a sentence about damage that was passed over. May be empty.
  std::function<void(const std::string&)> report = {};
  // Called with the bytes of the checkpoint, and the log objects, that are done. May be empty.
  std::function<void(uint64_t done, uint64_t total)> on_progress = {};
  // Polled; true ends the call with kInterrupted. May be empty.
  std::function<bool()> interrupted = {};
};

struct RestoredState {
  uint64_t sequence = 0;    // of the last commit
  int64_t time_ns = 0;      // when it was made; 0 if the log does not say
  uint32_t data_epoch = 0;  // of the writer that has put the data of this state
  LogEnd end;               // of the log when it was read
  bool damaged = false;     // commits were lost
  std::string attachment;   // ShippingOptions::attachment
};

// Makes an empty store for the checkpoint with this manifest. Called again if a checkpoint turns
// out to be damaged; the earlier store was destroyed then.
using MakeEmptyKvStore = std::function<Result<std::unique_ptr<KvStore>>(const Manifest& manifest)>;

struct RestoredKvStore {
  std::unique_ptr<KvStore> kv;
  RestoredState state;
};

Result<RestoredKvStore> RestoreKvStore(ObjectStore& objects, const MakeEmptyKvStore& make_empty,
                                       const RestoreOptions& options);

}  // namespace siltfs
