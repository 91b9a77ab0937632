// Makes the local part of a store from its bucket, on a machine that has nothing of it: metadata,
// superblock, and the files of open segments. The chunk index is rebuilt by the first mount.
//
// The result is the store as after a crash behind one of its commits. The first mount recovers it.
// Bytes of segments behind the last commit are left out, because a mount would take them as a sign
// that metadata was lost. So a segment that the bucket has as a whole, but of which the last commit
// knows only a part, becomes a local file with this part, and a tombstone hides the object.
//
// The superblock is written last. An interrupted restore leaves no store, but a mark: the next
// restore to this directory begins from scratch.
//
// Thread-safety: any thread; the caller holds no lock. Errors: those of RestoreKvStore, Env and
// ObjectStore; kAlreadyExists if there is a store, kNotEmpty if there are other files; kCorruption
// if a segment lacks committed bytes, unless `stop_at_damage` is set: then fsck finds what is lost.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "fs/shipping/restore_kv_store.h"
#include "store/env/env.h"
#include "store/object/object_store.h"

namespace siltfs {

struct RestoreStoreOptions {
  std::string store;             // path of the store's directory; made if it is missing
  std::string bucket_directory;  // BucketOptions::directory; made if it is missing
  RestoreOptions restore;
  // Set: begins an epoch of the log for this writer before anything is read. So a writer that still
  // lives is fenced. Otherwise it would go on meanwhile, and the restored store would be too old to
  // follow the log.
  std::optional<WriterIdentity> take_over = {};
  std::chrono::nanoseconds lease = std::chrono::seconds(60);  // of that epoch
  // Whether that epoch may follow this end of the log. Asked again if another writer was faster.
  // May be empty.
  std::function<Status(const LogEnd&)> may_follow = {};
};

Result<RestoredState> RestoreStore(Env& env, ObjectStore& objects,
                                   const RestoreStoreOptions& options);

}  // namespace siltfs
