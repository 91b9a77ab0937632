// A store with content of every kind, which tests damage and check.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "fs/check/check_store.h"
#include "fs/kv/kv_store.h"
#include "fs/records/inode_record.h"
#include "tests/fs/core/store_fixture.h"

namespace siltfs::testing {

using Codes = std::set<std::string>;  // codes of findings

struct CheckOutcome {
  CheckReport report;
  std::vector<Finding> findings;

  Codes codes() const;
  // The outcome as text, for INFO.
  std::string ToString() const;
};

// Requires that findings of exactly these codes exist.
void RequireCodes(const CheckOutcome& outcome, const Codes& expected);

class CheckedStore {
 public:
  // Segments are small, so that a few files fill several segments.
  explicit CheckedStore(IndexEngine engine = IndexEngine::kSilt,
                        uint32_t segment_bytes = 256u << 10);

  StoreFixture& fixture() { return fixture_; }
  FileSystem& fs() { return fixture_.fs(); }
  const std::string& path() const { return fixture_.path(); }

  // Opens the store and creates short, long, sparse, shared and colliding files, directories, links
  // of both kinds, attributes, moved and removed names. Commits, and leaves the store open.
  void Fill();
  // Fills the store and unmounts it. The result may be a copy of an earlier store, with its UUID.
  void FillAndClose();

  // Checks the store, and requires that the check changed no byte.
  CheckOutcome Check(bool data = false);
  CheckOutcome Check(CheckOptions options);

  // Changes metadata directly, without the file system.
  void EditMetadata(const std::function<void(KvStore& kv)>& edit);
  void Put(const std::string& key, const std::string& value);
  void Remove(const std::string& key);
  void EditInode(InodeNumber inode, const std::function<void(InodeRecord& record)>& edit);

  // Flips one byte.
  void Flip(const std::string& file, uint64_t offset);

  // Inodes that Fill makes.
  InodeNumber directory = 0;  // "directory", with three entries
  InodeNumber inner = 0;      // "directory/inner", a directory
  InodeNumber small = 0;      // "small", some bytes
  InodeNumber large = 0;      // "large", 1 MB, with a recipe that has nodes
  InodeNumber linked = 0;     // "linked", also "directory/link", with two attributes

 private:
  const IndexEngine engine_;
  const uint32_t segment_bytes_;
  StoreFixture fixture_;
};

}  // namespace siltfs::testing
