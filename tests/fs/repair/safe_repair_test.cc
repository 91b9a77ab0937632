// `fsck -p`: all repairs that lose nothing.
#include <filesystem>

#include "fs/meta/metadata_store.h"
#include "fs/open/store_layout.h"
#include "fs/records/directory_entry.h"
#include "fs/records/schema.h"
#include "fs/records/segment_record.h"
#include "store/segment/segment_files.h"
#include "store/superblock/superblock.h"
#include "tests/fs/core/directory_tree.h"
#include "tests/fs/repair/repaired_store.h"

namespace siltfs::testing {
namespace {

// The content of all files that Fill has made, by path.
std::map<std::string, Bytes> Contents(CheckedStore& store) {
  std::map<std::string, Bytes> contents;
  FileSystem& fs = store.fixture().Open(/*read_only=*/true);
  for (const std::string path :
       {"small", "large", "copy", "linked", "directory/link", "directory/empty", "collision 1",
        "collision 2", "sparse", "cut"}) {
    const auto inode = Resolve(fs, path);
    REQUIRE_OK(inode);
    auto content = ReadFile(fs, *inode);
    REQUIRE_OK(content);
    contents[path] = std::move(content).value();
  }
  store.fixture().Close();
  return contents;
}

// Compares without printing long contents.
void RequireContents(CheckedStore& store, const std::map<std::string, Bytes>& expected) {
  const bool same = Contents(store) == expected;
  REQUIRE(same);
}
void RequireText(const std::string& path, size_t from, const std::string& expected) {
  const bool same = ReadText(path).substr(from) == expected.substr(from);
  REQUIRE(same);
}

uint64_t SizeOf(const CheckedStore& store, SegmentId id) {
  return std::filesystem::file_size(SegmentPath(store.path(), id));
}

}  // namespace

TEST_CASE("a repair of a sound store changes nothing") {
  CheckedStore store;
  store.FillAndClose();
  const auto mode = GENERATE(RepairMode::kSafe, RepairMode::kAll);
  const DirectoryTree before = ReadTree(store.path());
  const RepairReport report = Repair(store, mode, true);
  CHECK(report.found == 0);
  const bool same = ReadTree(store.path()) == before;
  CHECK(same);
}

TEST_CASE("results of a crash are recovered and are not findings") {
  CheckedStore store;
  store.Fill();
  store.fixture().Crash();
  const RepairReport report = Repair(store, GENERATE(RepairMode::kSafe, RepairMode::kAll));
  CHECK(report.found == 0);
  CHECK(report.checked.clean_shutdown == std::optional(true));
  RequireCodes(store.Check(true), {});
}

TEST_CASE("a copy of the superblock is rewritten from the other") {
  CheckedStore store;
  store.FillAndClose();
  const auto contents = Contents(store);
  store.fixture().Open();
  store.fixture().Close();
  const int copy = GENERATE(0, 1);
  const std::string path = SuperblockPath(store.path(), copy);
  SECTION("damaged") { store.Flip(path, 2000); }
  SECTION("missing") { std::filesystem::remove(path); }
  SECTION("too long") { WriteText(path, ReadText(path) + "x"); }
  SECTION("a directory") {
    std::filesystem::remove(path);
    std::filesystem::create_directory(path);
  }
  RequireRepaired(store, RepairMode::kSafe, {"superblock-copy"});
  // The rewritten copy is enough, so the store is not lost if the other copy is damaged now.
  store.Flip(SuperblockPath(store.path(), 1 - copy), 100);
  RequireContents(store, contents);
}

TEST_CASE("the segments decide which of two superblocks is the store's") {
  CheckedStore store;
  store.FillAndClose();
  const auto contents = Contents(store);
  CheckedStore other;
  const int copy = GENERATE(0, 1);
  auto foreign = ReadSuperblockCopy(other.fixture().env(), other.path(), 0);
  REQUIRE_OK(foreign);
  foreign->generation += GENERATE(0u, 1000u);
  WriteText(SuperblockPath(store.path(), copy), EncodeSuperblock(*foreign));
  const RepairReport report = Repair(store, RepairMode::kSafe);
  INFO(Describe(report));
  CHECK(report.found > 0);
  CHECK(report.left == 0);
  RequireCodes(store.Check(true), {});
  RequireContents(store, contents);
}

TEST_CASE("a segment's header and footer are rewritten, and its blocks do not move") {
  CheckedStore store;
  store.FillAndClose();
  const auto contents = Contents(store);
  const SegmentId id = 1;
  const std::string path = SegmentPath(store.path(), id);
  const std::string before = ReadText(path);
  SECTION("the header") {
    store.Flip(path, 40);
    RequireRepaired(store, RepairMode::kSafe, {"segment-header"}, true);
    // Everything after the header is unchanged. In the header, the number of the commit after which
    // the segment was begun may differ.
    RequireText(path, 64, before);
  }
  SECTION("a place in the footer") {
    store.Flip(path, SizeOf(store, id) - GENERATE(10u, 60u, 70u, 200u));
    RequireRepaired(store, RepairMode::kSafe, {"segment-footer"}, true);
    RequireText(path, 0, before);
  }
  SECTION("truncated within the footer") {
    std::filesystem::resize_file(path, SizeOf(store, id) - GENERATE(1u, 100u));
    RequireRepaired(store, RepairMode::kSafe, {"segment-truncated"}, true);
    RequireText(path, 0, before);
  }
  SECTION("bytes after the footer") {
    WriteText(path, before + "x");
    RequireRepaired(store, RepairMode::kSafe, {"segment-record", "segment-footer"}, true);
    RequireText(path, 0, before);
  }
  SECTION("header and footer") {
    store.Flip(path, 40);
    store.Flip(path, SizeOf(store, id) - 10);
    RequireRepaired(store, RepairMode::kSafe, {"segment-header", "segment-footer"}, true);
    RequireText(path, 64, before);
  }
  RequireContents(store, contents);
}

TEST_CASE("a footer is rewritten, and a damaged block is left unchanged") {
  CheckedStore store;
  store.FillAndClose();
  const std::string path = SegmentPath(store.path(), 1);
  store.Flip(path, SizeOf(store, 1) - 10);
  store.Flip(path, 64 + 60);  // the first block's head
  const RepairReport report = Repair(store, RepairMode::kSafe, true);
  INFO(Describe(report));
  CHECK(report.left > 0);
  const CheckOutcome left = store.Check(true);
  RequireCodes(left, {"block-head", "chunk-damaged"});
}

TEST_CASE("damage that a safe repair cannot fix leaves the segments unchanged") {
  CheckedStore store;
  store.FillAndClose();
  store.Flip(SegmentPath(store.path(), 1), 64 + 60);
  const DirectoryTree before = ReadTree(SegmentsDirectory(store.path()));
  const RepairReport report = Repair(store, RepairMode::kSafe, true);
  CHECK(report.left == report.found);
  CHECK(report.lost.empty());
  const bool same = ReadTree(SegmentsDirectory(store.path())) == before;
  CHECK(same);
}

TEST_CASE("the index is rebuilt after any damage") {
  CheckedStore store(GENERATE(IndexEngine::kSilt, IndexEngine::kMap));
  store.FillAndClose();
  const auto contents = Contents(store);
  const std::string index = IndexPath(store.path());
  SECTION("missing") { std::filesystem::remove_all(index); }
  SECTION("empty") {
    std::filesystem::remove_all(index);
    std::filesystem::create_directory(index);
  }
  SECTION("a byte in each of its files") {
    for (const auto& file : std::filesystem::directory_iterator(index)) {
      if (file.file_size() > 0) store.Flip(file.path(), file.file_size() / 2);
    }
  }
  const RepairReport report = Repair(store, RepairMode::kSafe);
  INFO(Describe(report));
  CHECK(report.found > 0);
  CHECK(report.left == 0);
  RequireCodes(store.Check(true), {});
  RequireContents(store, contents);
}

TEST_CASE("counts that follow from other metadata are recomputed") {
  CheckedStore store;
  store.FillAndClose();
  SECTION("links of a file") {
    store.EditInode(store.linked, [](InodeRecord& record) { record.links = 3; });
    RequireRepaired(store, RepairMode::kSafe, {"link-count"});
  }
  SECTION("links of a directory") {
    store.EditInode(store.directory, [](InodeRecord& record) { ++record.links; });
    RequireRepaired(store, RepairMode::kSafe, {"link-count"});
  }
  SECTION("no links, but names") {
    store.EditInode(store.small, [](InodeRecord& record) { record.links = 0; });
    RequireRepaired(store, RepairMode::kSafe, {"orphan", "link-count"});
  }
  SECTION("the mark of an orphan that has a name") {
    store.Put(OrphanKey(store.small), "");
    RequireRepaired(store, RepairMode::kSafe, {"orphan"});
  }
  SECTION("entries") {
    store.EditInode(store.directory, [](InodeRecord& record) { ++record.entries; });
    RequireRepaired(store, RepairMode::kSafe, {"entry-count"});
  }
  SECTION("a parent") {
    store.EditInode(store.inner, [](InodeRecord& record) { record.parent = kRootInode; });
    RequireRepaired(store, RepairMode::kSafe, {"parent"});
  }
  SECTION("the next cookie") {
    store.EditInode(store.directory,
                    [](InodeRecord& record) { record.next_cookie = kFirstCookie; });
    RequireRepaired(store, RepairMode::kSafe, {"next-cookie"});
  }
  SECTION("attributes") {
    store.EditInode(store.linked, [](InodeRecord& record) { record.xattrs = 1; });
    RequireRepaired(store, RepairMode::kSafe, {"xattr-count"});
  }
  SECTION("a missing overlay") {
    store.EditInode(store.small, [](InodeRecord& record) { record.has_overlay = true; });
    RequireRepaired(store, RepairMode::kSafe, {"overlay-totals"});
  }
  SECTION("a counter") {
    const size_t at = GENERATE(0u, 1u, 2u, 3u);
    store.EditMetadata([at](KvStore& kv) {
      std::string value = **kv.Get(kCountersKey);
      value[at * 8] = static_cast<char>(value[at * 8] ^ 1);
      REQUIRE_OK(kv.Write({{std::string(kCountersKey), value}}));
    });
    RequireRepaired(store, RepairMode::kSafe, {"counter"});
  }
  SECTION("a number that was never allocated") {
    store.EditMetadata([](KvStore& kv) {
      auto ids = IdRanges::Decode(**kv.Get(kIdRangesKey));
      REQUIRE_OK(ids);
      ids->inode_limit -= 2;
      REQUIRE_OK(kv.Write({{std::string(kIdRangesKey), ids->Encode()}}));
    });
    RequireRepaired(store, RepairMode::kSafe, {"inode-number"});
  }
  SECTION("a segment's record") {
    store.EditMetadata([](KvStore& kv) {
      auto record = SegmentRecord::Decode(**kv.Get(SegmentKey(1)));
      REQUIRE_OK(record);
      ++record->chunks;
      REQUIRE_OK(kv.Write({{SegmentKey(1), record->Encode()}}));
    });
    RequireRepaired(store, RepairMode::kSafe, {"segment-record"});
  }
  SECTION("a segment without a record") {
    store.Remove(SegmentKey(1));
    RequireRepaired(store, RepairMode::kSafe, {"segment-unknown"});
  }
  SECTION("a name of another type") {
    store.EditMetadata([&store](KvStore& kv) {
      const std::string key = DirectoryEntryKey(store.directory, "link");
      auto entry = NameEntry::Decode(**kv.Get(key));
      REQUIRE_OK(entry);
      entry->type = 0010000;
      REQUIRE_OK(kv.Write({{key, entry->Encode()},
                           {DirectoryCookieKey(store.directory, entry->cookie),
                            CookieEntry{entry->inode, entry->type, "link"}.Encode()}}));
    });
    RequireRepaired(store, RepairMode::kSafe, {"name-type"});
  }
  SECTION("the sync ledger") {
    std::filesystem::remove(LedgerPath(store.path()));
    RequireRepaired(store, RepairMode::kSafe, {"metadata-ledger"});
  }
  SECTION("the older slot of the sync ledger") {
    store.Flip(LedgerPath(store.path()), GENERATE(100, 4096 + 100));
    RequireRepaired(store, RepairMode::kSafe, {"metadata-ledger"});
  }
  Contents(store);
}

TEST_CASE("nothing is repaired in a store whose metadata is older than the store") {
  CheckedStore store;
  store.FillAndClose();
  auto state = ReadSuperblock(store.fixture().env(), store.path());
  REQUIRE_OK(state);
  ++state->superblock.last_commit;
  REQUIRE_OK(WriteSuperblock(store.fixture().env(), store.path(), state->superblock));
  store.Flip(SegmentPath(store.path(), 1), 40);
  std::filesystem::remove_all(IndexPath(store.path()));
  const DirectoryTree before = ReadTree(store.path());
  const RepairReport report = Repair(store, GENERATE(RepairMode::kSafe, RepairMode::kAll), true);
  CHECK(report.left == report.found);
  CHECK(report.found >= 3);
  const bool same = ReadTree(store.path()) == before;
  CHECK(same);
}

TEST_CASE("a safe repair leaves metadata that cannot be opened, and a remark says so") {
  CheckedStore store;
  store.FillAndClose();
  WriteText(JoinPath(MetadataPath(store.path()), "CURRENT"), "nonsense");
  store.Flip(SuperblockPath(store.path(), 1), 100);
  const RepairReport report = Repair(store, RepairMode::kSafe);
  INFO(Describe(report));
  CHECK(report.found == 2);
  CHECK(report.left == 1);
  CHECK(report.remarks.size() == 1);
}

TEST_CASE("a store that is mounted, or none, is not repaired") {
  CheckedStore store;
  RepairOptions options;
  SECTION("mounted") {
    store.Fill();
    options.check.store = store.path();
    REQUIRE_CODE(RepairStore(store.fixture().env(), options), kInUse);
  }
  SECTION("none") {
    const TemporaryDirectory empty;
    options.check.store = empty.path();
    REQUIRE_CODE(RepairStore(store.fixture().env(), options), kNotFound);
    CHECK(std::filesystem::is_empty(empty.path()));
  }
}

}  // namespace siltfs::testing
