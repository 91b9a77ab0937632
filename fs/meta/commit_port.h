// The functions of metadata that the chunk store and its maintenance jobs use: they commit, read
// the committed state, and write outside of commits. MetadataStore implements them.
//
// Thread-safety: every call from any thread, except where a function excludes the commit thread.
// Ownership: users borrow the port, which must outlive them. Errors: those of MetadataStore. After
// a failure other than kNoSpace, CommitNow and WriteThrough fail permanently; not so after those of
// MetadataStore::AwaitShipped, with which CommitNow ends.
#pragma once

#include <memory>
#include <vector>

#include "fs/kv/kv_store.h"
#include "store/base/status.h"

namespace siltfs {

class CommitPort {
 public:
  virtual ~CommitPort() = default;

  // Commits, even if nothing changed. On return, all operations and chunks accepted before the call
  // are durable, and metadata has the records of the segments sealed before the call. Neither the
  // commit thread nor a thread that holds a lock which an operation or a commit needs may call it.
  virtual Status CommitNow() = 0;
  // The durable state: that of the last commit, with the later WriteThrough calls.
  virtual std::shared_ptr<const KvSnapshot> CommittedSnapshot() const = 0;
  // Writes at once, outside of commits. The mutations are durable on the local disk on return.
  // Their keys must never be written by operations.
  virtual Status WriteThrough(const std::vector<Mutation>& mutations) = 0;
};

}  // namespace siltfs
