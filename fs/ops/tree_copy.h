// Copies the records of a tree from a snapshot of metadata to new, hidden inodes.
//
// The copy shares the recipes and the overlays' chunks of the source: no chunk is read or written.
// So every chunk that the snapshot refers to must remain until the copies are written. The copies
// keep all attributes but ctime and btime, their extended attributes, the order and the cookies of
// their directories, and the links within the tree. A file that also has names outside of the tree
// gets the number of names inside.
//
// The walk reads each directory in its own order. It is breadth first, so that the records of each
// table are made almost in the order of their keys, which makes their loads fast. If too many
// directories wait to be read, it goes on depth first. Memory: 48 bytes for each waiting directory
// and each level of the tree, and that of ClonedLinks. Not thread-safe. Errors: those of metadata
// and of HiddenWriter; kCorruption, with the inode, if records contradict each other; those of the
// request's functions.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fs/interface/entry_store.h"
#include "fs/kv/kv_store.h"
#include "fs/ops/cloned_links.h"
#include "fs/ops/hidden_writer.h"
#include "fs/records/directory_entry.h"
#include "fs/records/inode_record.h"

namespace siltfs {

class TreeCopy {
 public:
  // The arguments must outlive it. `now`: the ctime and btime of all copies. `quota`: the quota
  // that the copies count against.
  TreeCopy(const KvSnapshot& snapshot, const CloneRequest& request, int64_t now, uint64_t quota,
           HiddenWriter& writer, size_t most_links);

  // Copies the tree, or the file. All records of the copy are durable on return, except for the
  // root's inode, which is returned. kNotFound if the snapshot does not have the source.
  struct Root {
    uint64_t number = 0;
    InodeRecord record;
  };
  Result<Root> Copy();

  const CloneTotals& totals() const { return totals_; }
  uint64_t chunk_references() const { return references_; }

 private:
  struct Directory {
    uint64_t source = 0;
    uint64_t copy = 0;
    uint64_t entries = 0;  // according to its record
    uint64_t found = 0;
    uint64_t next_cookie = 0;
  };

  // Directories whose entries are to be copied, in this order. A level is read after the directory
  // in the level above has been stopped, and before that one goes on.
  struct Level {
    std::optional<Directory> reading;
    std::deque<Directory> waiting;
  };

  Status CopyDirectories();
  // Makes the next directory the one that is read, and returns it; null at the end.
  Directory* NextToRead();
  void AddDirectory(const Directory& found);
  Status CopyEntry(Directory& directory, uint64_t cookie, const CookieEntry& entry);
  // Copies what belongs to an inode besides its record, counts the inode, and sets the times of
  // `record`, which is then the copy's.
  Status CopyParts(uint64_t source, uint64_t copy, InodeRecord& record);
  Status CopyXattrs(uint64_t source, uint64_t copy, const InodeRecord& record);
  Status CopyOverlay(uint64_t source, uint64_t copy);
  Result<InodeRecord> FindRecord(uint64_t inode);
  Status FlushIfFull();

  const CloneRequest& request_;
  const int64_t now_;
  const uint64_t quota_;
  HiddenWriter& writer_;
  ClonedLinks links_;
  const std::unique_ptr<KvIterator> inodes_;
  const std::unique_ptr<KvIterator> cookies_;
  const std::unique_ptr<KvIterator> xattrs_;
  const std::unique_ptr<KvIterator> extents_;
  std::string xattrs_read_;  // the end of the range that xattrs_ has read last
  std::vector<Level> levels_;
  size_t waiting_ = 0;  // directories, in all levels
  CloneTotals totals_;
  uint64_t references_ = 0;
};

}  // namespace siltfs
