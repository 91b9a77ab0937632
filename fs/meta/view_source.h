// The state that a View pins: the groups that were not yet durable when the View was made, and a
// snapshot of the key-value store. Only the groups may change, as long as MetadataStore adds
// mutations to them (see View). Thread-safe.
#pragma once

#include <memory>

#include "fs/meta/group.h"
#include "fs/meta/metadata_store.h"

namespace siltfs {

class View::Source {
 public:
  // `committing` may be null.
  Source(std::shared_ptr<const Group> open, std::shared_ptr<const Group> committing,
         std::shared_ptr<const KvSnapshot> snapshot)
      : open_(std::move(open)),
        committing_(std::move(committing)),
        snapshot_(std::move(snapshot)) {}

  const Group& open() const { return *open_; }
  const Group* committing() const { return committing_.get(); }
  const KvSnapshot& snapshot() const { return *snapshot_; }

 private:
  std::shared_ptr<const Group> open_;
  std::shared_ptr<const Group> committing_;
  std::shared_ptr<const KvSnapshot> snapshot_;
};

}  // namespace siltfs
