// Each test makes a single fault in metadata and requires the check's finding.
#include <fmt/format.h>

#include <filesystem>

#include "fs/meta/metadata_store.h"
#include "fs/open/store_layout.h"
#include "fs/records/directory_entry.h"
#include "fs/records/overlay_extent.h"
#include "fs/records/position_record.h"
#include "fs/records/schema.h"
#include "fs/records/segment_record.h"
#include "fs/rocksdb/rocksdb_store.h"
#include "store/base/coding.h"
#include "store/superblock/superblock.h"
#include "tests/fs/check/checked_store.h"
#include "tests/fs/core/directory_tree.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

// Requires exactly one finding, of this code, about this inode.
void RequireOne(const CheckOutcome& outcome, const std::string& code,
                std::optional<uint64_t> inode = std::nullopt) {
  INFO(outcome.ToString());
  REQUIRE(outcome.findings.size() == 1);
  REQUIRE(outcome.findings[0].code == code);
  if (inode) REQUIRE(outcome.findings[0].inode == inode);
}

NameEntry NameOf(CheckedStore& store, InodeNumber directory, const std::string& name) {
  NameEntry entry;
  store.EditMetadata([&](KvStore& kv) {
    auto value = kv.Get(DirectoryEntryKey(directory, name));
    REQUIRE_OK(value);
    REQUIRE(*value);
    auto decoded = NameEntry::Decode(**value);
    REQUIRE_OK(decoded);
    entry = *decoded;
  });
  return entry;
}

// Sets a name and its cookie to these values.
void PutName(CheckedStore& store, InodeNumber directory, const std::string& name,
             const NameEntry& entry) {
  store.Put(DirectoryEntryKey(directory, name), entry.Encode());
  store.Put(DirectoryCookieKey(directory, entry.cookie),
            CookieEntry{entry.inode, entry.type, name}.Encode());
}

}  // namespace

TEST_CASE("a segment's replacement is legal only in a store that was not unmounted") {
  CheckedStore store;
  store.FillAndClose();
  SegmentRecord intent;
  store.EditMetadata([&](KvStore& kv) {
    auto value = kv.Get(SegmentKey(1));
    REQUIRE_OK(value);
    REQUIRE(*value);
    auto record = SegmentRecord::Decode(**value);
    REQUIRE_OK(record);
    intent = *record;
    intent.length -= 1000;
    intent.recompressed = true;
  });
  // The segment's old file is in place.
  store.Put(ReplacementKey(1), intent.Encode());
  RequireOne(store.Check(), "segment-replacement");
  store.Remove(ReplacementKey(1));
  RequireCodes(store.Check(), {});
  store.Put(ReplacementKey(1), "what?");
  RequireOne(store.Check(), "metadata-records");
  store.Remove(ReplacementKey(1));
  store.Put(ReplacementKey(4'000'000), intent.Encode());
  RequireOne(store.Check(), "metadata-records");
}

TEST_CASE("a segment to be removed is ignored, unless metadata also has its record") {
  CheckedStore store;
  store.FillAndClose();
  store.Put(RemovedSegmentKey(1), "");
  RequireOne(store.Check(), "metadata-records");
  store.Remove(RemovedSegmentKey(1));
  store.Put(RemovedSegmentKey(4'000'000), "");
  RequireCodes(store.Check(), {});
  store.Remove(RemovedSegmentKey(4'000'000));
  store.Put("gone", "");
  RequireOne(store.Check(), "metadata-records");
}

TEST_CASE("malformed records of former segments are found") {
  CheckedStore store;
  store.FillAndClose();
  store.Put(FormerSegmentsKey(0), "\2");
  RequireCodes(store.Check(), {});
  const std::string key = GENERATE(std::string("F"), FormerSegmentsKey(1) + "x");
  store.Put(key, "\1");
  RequireOne(store.Check(), "metadata-records");
  store.Remove(key);
  const std::string value = GENERATE(std::string(), std::string("\1\0", 2), std::string(513, '\1'));
  store.Put(FormerSegmentsKey(1), value);
  RequireOne(store.Check(), "metadata-records");
}

TEST_CASE("metadata that is written again without a change has no findings") {
  CheckedStore store;
  store.FillAndClose();
  store.EditInode(store.small, [](InodeRecord&) {});
  RequireCodes(store.Check(), {});
}

TEST_CASE("an inode that disagrees with its names is found") {
  CheckedStore store;
  store.FillAndClose();
  SECTION("a file has another number of links") {
    store.EditInode(store.linked, [](InodeRecord& record) { record.links = 3; });
    RequireOne(store.Check(), "link-count", store.linked);
  }
  SECTION("a directory has another number of links") {
    store.EditInode(store.directory, [](InodeRecord& record) { ++record.links; });
    RequireOne(store.Check(), "link-count", store.directory);
  }
  SECTION("a directory has another number of entries") {
    store.EditInode(store.directory, [](InodeRecord& record) { ++record.entries; });
    RequireOne(store.Check(), "entry-count", store.directory);
  }
  SECTION("a directory has another parent") {
    store.EditInode(store.inner, [](InodeRecord& record) { record.parent = kRootInode; });
    RequireOne(store.Check(), "parent", store.inner);
  }
  SECTION("a directory's next cookie is in use") {
    store.EditInode(store.directory,
                    [](InodeRecord& record) { record.next_cookie = kFirstCookie; });
    RequireOne(store.Check(), "next-cookie", store.directory);
  }
  SECTION("a file's number was never allocated") {
    store.EditMetadata([](KvStore& kv) {
      auto ids = IdRanges::Decode(**kv.Get(kIdRangesKey));
      REQUIRE_OK(ids);
      --ids->inode_limit;
      REQUIRE_OK(kv.Write({{std::string(kIdRangesKey), ids->Encode()}}));
    });
    // Lower the limit once more: no inode has the last number, because Fill removed that inode, but
    // an inode has the number before it.
    store.EditMetadata([](KvStore& kv) {
      auto ids = IdRanges::Decode(**kv.Get(kIdRangesKey));
      REQUIRE_OK(ids);
      --ids->inode_limit;
      REQUIRE_OK(kv.Write({{std::string(kIdRangesKey), ids->Encode()}}));
    });
    RequireOne(store.Check(), "inode-number");
  }
}

TEST_CASE("names without an inode or a cookie are found") {
  CheckedStore store;
  store.FillAndClose();
  const NameEntry link = NameOf(store, store.directory, "link");
  SECTION("a name without its cookie") {
    store.Remove(DirectoryCookieKey(store.directory, link.cookie));
    RequireOne(store.Check(), "name-without-cookie", store.directory);
  }
  SECTION("a cookie of another inode") {
    store.Put(DirectoryCookieKey(store.directory, link.cookie),
              CookieEntry{store.small, link.type, "link"}.Encode());
    RequireOne(store.Check(), "name-without-cookie", store.directory);
  }
  SECTION("a cookie without its name") {
    store.Put(DirectoryCookieKey(store.directory, link.cookie + 10),
              CookieEntry{link.inode, link.type, "gone"}.Encode());
    store.EditInode(store.directory, [](InodeRecord& record) { record.next_cookie += 20; });
    RequireOne(store.Check(), "cookie-without-name", store.directory);
  }
  SECTION("a name of an inode that is missing") {
    PutName(store, store.directory, "link", {1000, link.type, link.cookie});
    store.EditInode(store.linked, [](InodeRecord& record) { record.links = 1; });
    RequireOne(store.Check(), "dangling-name", store.directory);
  }
  SECTION("a name with another type") {
    PutName(store, store.directory, "link", {link.inode, 0010000, link.cookie});
    RequireOne(store.Check(), "name-type", store.linked);
  }
  SECTION("an impossible name") {
    store.Remove(DirectoryEntryKey(store.directory, "link"));
    PutName(store, store.directory, "li/nk", link);
    RequireOne(store.Check(), "name-record", store.directory);
  }
  SECTION("a name that is malformed") {
    store.Put(DirectoryEntryKey(store.directory, "link"), "short");
    RequireCodes(store.Check(), {"name-record", "cookie-without-name", "link-count"});
  }
  SECTION("an inode without a name") {
    store.Remove(DirectoryEntryKey(store.directory, "link"));
    store.Remove(DirectoryCookieKey(store.directory, link.cookie));
    store.EditInode(store.directory, [](InodeRecord& record) { --record.entries; });
    const NameEntry other = NameOf(store, kRootInode, "linked");
    store.Remove(DirectoryEntryKey(kRootInode, "linked"));
    store.Remove(DirectoryCookieKey(kRootInode, other.cookie));
    store.EditInode(kRootInode, [](InodeRecord& record) { --record.entries; });
    RequireOne(store.Check(), "unreachable", store.linked);
  }
  SECTION("names in an inode that is not a directory") {
    PutName(store, store.small, "name", {store.linked, 0100000, 3});
    store.EditInode(store.linked, [](InodeRecord& record) { ++record.links; });
    RequireOne(store.Check(), "not-a-directory", store.small);
  }
}

TEST_CASE("cycles of directories are found") {
  CheckedStore store;
  store.FillAndClose();
  // "inner" becomes the parent of its own parent.
  const NameEntry entry = NameOf(store, kRootInode, "directory");
  store.Remove(DirectoryEntryKey(kRootInode, "directory"));
  store.Remove(DirectoryCookieKey(kRootInode, entry.cookie));
  store.EditInode(kRootInode, [](InodeRecord& record) {
    --record.entries;
    --record.links;
  });
  NameEntry moved = entry;
  store.EditInode(store.inner, [&moved](InodeRecord& record) {
    moved.cookie = record.next_cookie++;
    ++record.entries;
    ++record.links;
  });
  PutName(store, store.inner, "directory", moved);
  store.EditInode(store.directory, [&store](InodeRecord& record) { record.parent = store.inner; });
  RequireOne(store.Check(), "directory-cycle", store.inner);
}

TEST_CASE("marks and counts of an inode are compared") {
  CheckedStore store;
  store.FillAndClose();
  SECTION("an orphan that has a name") {
    store.Put(OrphanKey(store.small), "");
    RequireOne(store.Check(), "orphan", store.small);
  }
  SECTION("an inode without links and without an orphan mark") {
    store.EditInode(store.small, [](InodeRecord& record) { record.links = 0; });
    RequireCodes(store.Check(), {"orphan", "link-count"});
  }
  SECTION("another number of attributes") {
    store.EditInode(store.linked, [](InodeRecord& record) { record.xattrs = 1; });
    RequireOne(store.Check(), "xattr-count", store.linked);
  }
  SECTION("an attribute of no inode") {
    store.Put(XattrKey(1000, "user.x"), "");
    RequireOne(store.Check(), "inode-missing", 1000);
  }
  SECTION("an inode that is malformed") {
    store.Put(InodeKey(store.small), "short");
    RequireOne(store.Check(), "inode-record", store.small);
  }
  SECTION("an inode of an unknown type") {
    store.EditInode(store.inner, [](InodeRecord& record) { record.mode = 0030000; });
    INFO(store.Check().ToString());
    REQUIRE(store.Check().codes().contains("inode-record"));
  }
  SECTION("the root is gone") {
    store.Remove(InodeKey(kRootInode));
    RequireCodes(store.Check(), {"root", "inode-missing", "counter"});
  }
}

TEST_CASE("overlays are compared with their inodes") {
  CheckedStore store;
  store.FillAndClose();
  OverlayExtent extent;
  extent.kind = OverlayExtent::Kind::kPlain;
  extent.plain = std::string(60, 'x');
  extent.length = 60;
  const auto claim = [&store](uint64_t bytes) {
    store.EditInode(store.small, [bytes](InodeRecord& record) {
      record.has_overlay = true;
      record.overlay_bytes = bytes;
    });
  };
  SECTION("one that the inode does not record") {
    store.Put(OverlayKey(store.small, 0), extent.Encode());
    RequireOne(store.Check(), "overlay-totals", store.small);
  }
  SECTION("one that is missing") {
    claim(0);
    RequireOne(store.Check(), "overlay-totals", store.small);
  }
  SECTION("one that overlaps itself") {
    store.Put(OverlayKey(store.small, 0), extent.Encode());
    store.Put(OverlayKey(store.small, 40), extent.Encode());
    claim(120);
    RequireOne(store.Check(), "overlay-overlap", store.small);
  }
  SECTION("one that reaches beyond the file's end") {
    store.Put(OverlayKey(store.small, 70), extent.Encode());
    claim(60);
    RequireOne(store.Check(), "overlay-end", store.small);
  }
  SECTION("one that is malformed") {
    store.Put(OverlayKey(store.small, 0), "?");
    RequireOne(store.Check(), "overlay-record", store.small);
  }
  SECTION("one of a directory") {
    store.Put(OverlayKey(store.inner, 0), extent.Encode());
    RequireOne(store.Check(), "not-a-file", store.inner);
  }
  SECTION("one with a missing chunk") {
    extent.kind = OverlayExtent::Kind::kChunks;
    extent.slices = {{.name = ChunkName{}, .chunk_length = 60, .skip = 0, .length = 60}};
    store.Put(OverlayKey(store.small, 0), extent.Encode());
    store.EditInode(store.small, [](InodeRecord& record) {
      record.has_overlay = true;
      record.overlay_bytes = 60;
      record.overlay_chunks = 1;
    });
    const CheckOutcome outcome = store.Check();
    RequireCodes(outcome, {"chunk-missing", "counter"});
    REQUIRE(outcome.findings.back().path == "/small");
    REQUIRE(outcome.findings.back().offset == 0);
  }
}

TEST_CASE("the store's own records are compared") {
  CheckedStore store;
  store.FillAndClose();
  SECTION("each counter") {
    const size_t at = GENERATE(0u, 1u, 2u, 3u);
    store.EditMetadata([at](KvStore& kv) {
      std::string value = **kv.Get(kCountersKey);
      value[at * 8] = static_cast<char>(value[at * 8] ^ 1);
      REQUIRE_OK(kv.Write({{std::string(kCountersKey), value}}));
    });
    RequireOne(store.Check(), "counter");
  }
  SECTION("a key of no table") {
    store.Put("Quagga", "");
    RequireOne(store.Check(), "metadata-key");
  }
  SECTION("the position of a bucket") {
    store.Put("B", PositionRecord{7, 1}.Encode());
    CHECK(store.Check().findings.empty());
    store.Put("B", "short");
    RequireOne(store.Check(), "metadata-records");
  }
  SECTION("a second key in a table of a single key") {
    store.Put("cc", "");
    RequireOne(store.Check(), "metadata-key");
  }
  SECTION("the id ranges are missing") {
    store.Remove(std::string(kIdRangesKey));
    RequireOne(store.Check(), "metadata-records");
  }
  SECTION("a segment's record differs from the segment") {
    store.EditMetadata([](KvStore& kv) {
      auto record = SegmentRecord::Decode(**kv.Get(SegmentKey(1)));
      REQUIRE_OK(record);
      ++record->chunks;
      REQUIRE_OK(kv.Write({{SegmentKey(1), record->Encode()}}));
    });
    RequireOne(store.Check(), "segment-record");
  }
  SECTION("a segment has no record") {
    store.Remove(SegmentKey(1));
    RequireOne(store.Check(), "segment-unknown");
  }
  SECTION("a record has no segment") {
    SegmentRecord record;
    record.sealed = true;
    record.chunks = 1;
    store.Put(SegmentKey(1000), record.Encode());
    RequireOne(store.Check(), "segment-missing");
  }
  SECTION("a segment's record is malformed") {
    store.Put(SegmentKey(1), "?");
    RequireOne(store.Check(), "metadata-records");
  }
}

TEST_CASE("metadata older than the store is found") {
  // With large segments no segment begins after the first unmount. So only blocks record the later
  // commit, and no segment header does.
  CheckedStore store(IndexEngine::kSilt, GENERATE(256u << 10, 32u << 20));
  store.FillAndClose();
  store.fixture().Open();
  WriteLargeFile(store.fs(), "later", RandomBytes(12, 300'000));  // its blocks record a commit
  store.fixture().Close();
  if (GENERATE(false, true)) {
    // Make the superblocks as old as the metadata.
    auto state = ReadSuperblock(store.fixture().env(), store.path());
    REQUIRE_OK(state);
    state->superblock.last_commit = 0;
    REQUIRE_OK(WriteSuperblock(store.fixture().env(), store.path(), state->superblock));
  }
  store.EditMetadata([](KvStore& kv) {
    REQUIRE_OK(kv.Write({{std::string(kCommitNumberKey), Encoder().U64(0).Take()}}));
  });
  const CheckOutcome outcome = store.Check();
  RequireCodes(outcome, {"metadata-lost"});
}

TEST_CASE("the rest is checked even if metadata cannot be opened") {
  CheckedStore store;
  store.FillAndClose();
  SECTION("it is gone") { std::filesystem::remove_all(MetadataPath(store.path())); }
  SECTION("it is damaged") {
    WriteText(JoinPath(MetadataPath(store.path()), "CURRENT"), "nonsense");
  }
  const CheckOutcome outcome = store.Check(true);
  RequireOne(outcome, "metadata-open");
  REQUIRE(outcome.report.segments > 4);
  REQUIRE(outcome.report.data_bytes > 1'000'000);
  REQUIRE(outcome.report.index_entries > 0);
}

TEST_CASE("damage in metadata's files is found, with --data also in unused places") {
  CheckedStore store;
  store.FillAndClose();
  std::string largest;
  for (const auto& file : std::filesystem::directory_iterator(MetadataPath(store.path()))) {
    if (file.path().extension() != ".sst") continue;
    if (largest.empty() || file.file_size() > std::filesystem::file_size(largest))
      largest = file.path().string();
  }
  REQUIRE_FALSE(largest.empty());
  store.Flip(largest, 100);
  const CheckOutcome outcome = store.Check(true);
  INFO(outcome.ToString());
  REQUIRE(outcome.codes().contains("metadata-checksum"));
}

TEST_CASE("a flipped byte in any slot of the sync ledger is found until the next mount") {
  CheckedStore store;
  store.FillAndClose();
  const uint64_t offset = GENERATE(0u, 20u, 4095, 4096, 8191, 8192, 12287, 12288, 16383);
  CAPTURE(offset);
  const std::string path = LedgerPath(store.path());
  store.Flip(path, offset);
  const CheckOutcome outcome = store.Check();
  RequireOne(outcome, "metadata-ledger");
  CHECK(outcome.findings[0].path == path);
  CHECK(outcome.findings[0].offset == offset / 4096 * 4096);
  // The next mount rewrites the slot.
  store.fixture().Open();
  store.fixture().Close();
  RequireCodes(store.Check(), {});
}

TEST_CASE("a sync ledger that is cut short is found") {
  CheckedStore store;
  store.FillAndClose();
  std::filesystem::resize_file(LedgerPath(store.path()), GENERATE(4096u, 10000u, 16383u));
  RequireCodes(store.Check(), {"metadata-ledger"});
}

TEST_CASE("a slot that is not whole after a crash is not a finding: a power cut may have torn it") {
  CheckedStore store;
  store.Fill();
  store.fixture().Crash();
  store.Flip(LedgerPath(store.path()), GENERATE(20, 4096 + 20, 8192 + 20, 12288 + 20));
  RequireCodes(store.Check(), {});
}

TEST_CASE("a sync ledger without any whole slot is found") {
  CheckedStore store;
  store.FillAndClose();
  SECTION("it is gone") { REQUIRE_OK(store.fixture().env().RemoveFile(LedgerPath(store.path()))); }
  SECTION("no slot is whole") {
    for (uint64_t slot = 0; slot < 4; ++slot)
      store.Flip(LedgerPath(store.path()), slot * 4096 + 20);
  }
  RequireOne(store.Check(), "metadata-ledger");
}

TEST_CASE("a log that an unmount should have emptied is found") {
  CheckedStore store;
  store.FillAndClose();
  DirectoryTree logged;
  {
    auto kv = OpenRocksDbStore(store.fixture().env(), {.path = MetadataPath(store.path())});
    REQUIRE_OK(kv);
    auto value = (*kv)->Get(InodeKey(store.small));
    REQUIRE_OK(value);
    REQUIRE_OK((*kv)->Write({{InodeKey(store.small), **value}}));
    logged = ReadTree(MetadataPath(store.path()));
  }
  WriteTree(MetadataPath(store.path()), logged);
  RequireOne(store.Check(), "metadata-log");
}

}  // namespace siltfs::testing
