#include "fs/inodes/change.h"

#include "fs/records/schema.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

InodePtr LoadedInode(InodeNumber number) {
  auto inode = std::make_shared<Inode>(number);
  inode->record.mode = 0100644;
  inode->record.links = 1;
  inode->loaded = inode->overlay_loaded = true;
  return inode;
}

TEST_CASE("the inodes of a change that was not applied are loaded again, except dirty ones") {
  const InodePtr clean = LoadedInode(2);
  const InodePtr dirty = LoadedInode(3);
  const InodePtr saved = LoadedInode(4);
  const InodePtr other = LoadedInode(5);
  dirty->deferred = {.commit = 1, .before = ContentTally(dirty->record)};
  const bool applied = GENERATE(false, true);
  {
    Change change;
    change.Include({clean.get(), dirty.get()});
    change.Save(*saved);
    if (applied) change.SetApplied();
  }
  CHECK(clean->loaded == applied);
  CHECK(saved->loaded == applied);
  CHECK(dirty->loaded);
  CHECK(other->loaded);
}

TEST_CASE("SaveContent counts the differences since the file was last saved") {
  const InodePtr inode = LoadedInode(2);
  const ContentTally empty(inode->record);
  inode->overlay.PutRaw(0, Bytes(100, 1));
  inode->record.size = 100;
  Change first;
  first.SaveContent(*inode, empty);
  const auto logical = static_cast<size_t>(Counter::kLogicalBytes);
  CHECK(first.differences()[logical] == 100);
  CHECK(first.mutations().size() == 2);  // an extent and the record
  first.SetApplied();

  // The deferred change below began when the file was empty. So SaveContent counts from the tally
  // in `deferred`, and not from the tally that the caller passes.
  const ContentTally full(inode->record);
  inode->deferred = {.commit = 1, .before = empty};
  Change second(1);
  second.SaveContent(*inode, full);
  CHECK(second.differences()[logical] == 100);
  CHECK(second.commit() == 1);
  second.SetApplied();
}

}  // namespace
}  // namespace siltfs::testing
