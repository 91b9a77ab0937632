#include "fs/diff/inode_comparison.h"

#include <memory>
#include <string>
#include <string_view>

#include "fs/records/schema.h"
#include "fs/records/source_record.h"

namespace siltfs {
namespace {

// Walks the keys of one inode in one table.
class InodeKeys {
 public:
  InodeKeys(const InodeInState& inode, Table table)
      : table_(table),
        range_(RangeOf(table, inode.number)),
        iterator_(inode.state.NewIteratorBelow(range_.end)) {
    iterator_->Seek(range_.begin);
    SkipHidden();
  }

  bool Valid() const { return iterator_->Valid(); }
  std::string_view rest() const { return iterator_->key().substr(range_.begin.size()); }
  std::string_view value() const { return iterator_->value(); }
  void Next() {
    iterator_->Next();
    SkipHidden();
  }
  Status status() const { return iterator_->status(); }

 private:
  void SkipHidden() {
    while (table_ == Table::kXattr && iterator_->Valid() && IsHiddenXattr(rest()))
      iterator_->Next();
  }

  const Table table_;
  const KeyRange range_;
  const std::unique_ptr<KvIterator> iterator_;
};

Result<bool> HaveSameKeys(const InodeInState& before, const InodeInState& after, Table table) {
  InodeKeys old_keys(before, table);
  InodeKeys new_keys(after, table);
  bool same = true;
  for (; same && old_keys.Valid() && new_keys.Valid(); old_keys.Next(), new_keys.Next())
    same = old_keys.rest() == new_keys.rest() && old_keys.value() == new_keys.value();
  SILTFS_RETURN_IF_ERROR(old_keys.status());
  SILTFS_RETURN_IF_ERROR(new_keys.status());
  return same && old_keys.Valid() == new_keys.Valid();
}

Result<bool> HaveSameContent(const InodeInState& before, const InodeInState& after) {
  const InodeRecord& a = before.record;
  const InodeRecord& b = after.record;
  if (a.size != b.size || a.recipe_limit != b.recipe_limit || a.recipe != b.recipe) return false;
  if (!a.has_overlay && !b.has_overlay) return true;
  return HaveSameKeys(before, after, Table::kOverlay);
}

Result<bool> HaveSameMetadata(const InodeInState& before, const InodeInState& after) {
  const InodeRecord& a = before.record;
  const InodeRecord& b = after.record;
  if (a.mode != b.mode || a.uid != b.uid || a.gid != b.gid || a.device != b.device) return false;
  if (!a.IsDirectory() && (a.mtime != b.mtime || a.target != b.target)) return false;
  if (a.xattrs == 0 && b.xattrs == 0) return true;
  return HaveSameKeys(before, after, Table::kXattr);
}

}  // namespace

Result<InodeDifference> CompareInodes(const InodeInState& before, const InodeInState& after,
                                      int64_t since) {
  InodeDifference difference;
  // A change by a program sets the ctime; a fold does not.
  const int64_t ctime = before.record.ctime;
  if (before.number == after.number && ctime == after.record.ctime && ctime < since)
    return difference;
  if (before.record.IsRegular()) {
    SILTFS_ASSIGN_OR_RETURN(const bool same, HaveSameContent(before, after));
    difference.content = !same;
  }
  SILTFS_ASSIGN_OR_RETURN(const bool same, HaveSameMetadata(before, after));
  difference.metadata = !same;
  return difference;
}

}  // namespace siltfs
