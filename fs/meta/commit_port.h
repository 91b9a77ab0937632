// What the chunk store and its maintenance jobs need of metadata: to commit, to read the committed
// state, and to write outside of commits. MetadataStore implements it.
//
// Thread-safety: every call from any thread, except where a function excludes the commit thread.
// Ownership: users borrow the port, which must outlive them. Errors: those of MetadataStore. After
// a failure other than kNoSpace, CommitNow and WriteThrough fail permanently.
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
  // are durable, and metadata knows the segments sealed before it. Not for the commit thread, nor
  // for a thread that holds a lock which an operation or a commit needs.
  virtual Status CommitNow() = 0;
  // The durable state: the last whole commit, and later WriteThrough calls.
  virtual std::shared_ptr<const KvSnapshot> CommittedSnapshot() const = 0;
  // Writes at once, outside of commits. The mutations are durable on return. Their keys must never
  // be written by operations.
  virtual Status WriteThrough(const std::vector<Mutation>& mutations) = 0;
};

}  // namespace siltfs
