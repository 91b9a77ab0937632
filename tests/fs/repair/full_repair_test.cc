// `fsck -y`: repairs that lose data or need a choice.
#include <algorithm>
#include <filesystem>

#include "fs/interface/store_maintenance.h"
#include "fs/open/store_layout.h"
#include "fs/records/damage_record.h"
#include "fs/records/directory_entry.h"
#include "fs/records/last_scrub_record.h"
#include "fs/records/overlay_extent.h"
#include "fs/records/savings_history.h"
#include "fs/records/schema.h"
#include "fs/records/scrub_history.h"
#include "fs/records/scrub_record.h"
#include "fs/records/segment_record.h"
#include "fs/segments/sealed_record.h"
#include "store/segment/segment_files.h"
#include "store/segment/segment_reader.h"
#include "store/segment/segment_scan.h"
#include "store/segment/segment_writer.h"
#include "store/superblock/superblock.h"
#include "tests/fs/core/directory_tree.h"
#include "tests/fs/repair/repaired_store.h"

namespace siltfs::testing {
namespace {

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

void PutName(CheckedStore& store, InodeNumber directory, const std::string& name,
             const NameEntry& entry) {
  store.Put(DirectoryEntryKey(directory, name), entry.Encode());
  store.Put(DirectoryCookieKey(directory, entry.cookie),
            CookieEntry{entry.inode, entry.type, name}.Encode());
}

void RemoveName(CheckedStore& store, InodeNumber directory, const std::string& name) {
  const NameEntry entry = NameOf(store, directory, name);
  store.Remove(DirectoryEntryKey(directory, name));
  store.Remove(DirectoryCookieKey(directory, entry.cookie));
  store.EditInode(directory, [&entry](InodeRecord& record) {
    --record.entries;
    if (entry.type == 0040000) --record.links;
  });
}

Bytes ReadPath(CheckedStore& store, const std::string& path) {
  FileSystem& fs = store.fixture().Open(/*read_only=*/true);
  const auto inode = Resolve(fs, path);
  INFO(path);
  REQUIRE_OK(inode);
  auto content = ReadFile(fs, *inode);
  REQUIRE_OK(content);
  store.fixture().Close();
  return std::move(content).value();
}

// Compares without printing the bytes.
void RequireSame(const Bytes& a, const Bytes& b) {
  const bool same = a == b;
  REQUIRE(same);
}

bool HasPath(CheckedStore& store, const std::string& path) {
  FileSystem& fs = store.fixture().Open(/*read_only=*/true);
  const bool there = Resolve(fs, path).ok();
  store.fixture().Close();
  return there;
}

// Requires the old content with zeros in the lost ranges.
void RequireOnlyLost(const RepairReport& report, const std::string& path, const Bytes& before,
                     const Bytes& after) {
  Bytes expected = before;
  for (const LostContent& lost : report.lost) {
    if (lost.path != path) continue;
    REQUIRE(lost.range.offset + lost.range.length <= expected.size());
    std::fill_n(expected.begin() + static_cast<ptrdiff_t>(lost.range.offset), lost.range.length,
                uint8_t{0});
  }
  const bool same = after == expected;
  REQUIRE(same);
}

uint64_t LostOf(const RepairReport& report, const std::string& path) {
  uint64_t lost = 0;
  for (const LostContent& content : report.lost) {
    if (content.path == path) lost += content.range.length;
  }
  return lost;
}

struct Block {
  uint32_t offset = 0;
  BlockHead head;
};

std::vector<Block> BlocksOf(CheckedStore& store, SegmentId id) {
  auto state = ReadSuperblock(store.fixture().env(), store.path());
  REQUIRE_OK(state);
  auto file = store.fixture().env().OpenFile(SegmentPath(store.path(), id), {});
  REQUIRE_OK(file);
  std::vector<Block> blocks;
  REQUIRE_OK(ScanBlocks(**file, {state->superblock.uuid, id}, {},
                        [&blocks](const BlockHead& head, uint32_t offset) {
                          blocks.push_back({offset, head});
                          return Status::Ok();
                        }));
  return blocks;
}

}  // namespace

TEST_CASE("names and their cookies are completed from each other") {
  CheckedStore store;
  store.FillAndClose();
  const NameEntry link = NameOf(store, store.directory, "link");
  SECTION("a name without its cookie") {
    store.Remove(DirectoryCookieKey(store.directory, link.cookie));
    RequireRepaired(store, RepairMode::kAll, {"name-without-cookie"});
  }
  SECTION("a name with another name's cookie") {
    const NameEntry empty = NameOf(store, store.directory, "empty");
    store.Put(DirectoryEntryKey(store.directory, "link"),
              NameEntry{link.inode, link.type, empty.cookie}.Encode());
    RequireRepaired(store, RepairMode::kAll, {"name-without-cookie", "cookie-without-name"});
  }
  SECTION("a cookie of another inode") {
    store.Put(DirectoryCookieKey(store.directory, link.cookie),
              CookieEntry{store.small, link.type, "link"}.Encode());
    RequireRepaired(store, RepairMode::kAll, {"name-without-cookie"});
  }
  SECTION("a cookie without its name") {
    store.Remove(DirectoryEntryKey(store.directory, "link"));
    RequireRepaired(store, RepairMode::kAll, {"cookie-without-name", "link-count", "entry-count"});
  }
  SECTION("a name that is malformed") {
    store.Put(DirectoryEntryKey(store.directory, "link"), "short");
    RequireRepaired(store, RepairMode::kAll, {"name-record", "cookie-without-name", "link-count"});
  }
  SECTION("a cookie that is malformed") {
    store.Put(DirectoryCookieKey(store.directory, link.cookie), "short");
    RequireRepaired(store, RepairMode::kAll, {"cookie-record", "name-without-cookie"});
  }
  CHECK(HasPath(store, "directory/link"));
  CHECK(HasPath(store, "directory/empty"));
}

TEST_CASE("names without an inode are removed, and inodes without a name are moved to lost+found") {
  CheckedStore store;
  store.FillAndClose();
  const Bytes content = ReadPath(store, "linked");
  const NameEntry link = NameOf(store, store.directory, "link");
  const std::string number = std::to_string(store.linked);
  SECTION("a name of an inode that is missing") {
    PutName(store, store.directory, "link", {1000, link.type, link.cookie});
    store.EditInode(store.linked, [](InodeRecord& record) { record.links = 1; });
    RequireRepaired(store, RepairMode::kAll, {"dangling-name"});
    CHECK_FALSE(HasPath(store, "directory/link"));
    RequireSame(ReadPath(store, "linked"), content);
  }
  SECTION("an impossible name") {
    store.Remove(DirectoryEntryKey(store.directory, "link"));
    PutName(store, store.directory, "li/nk", link);
    RequireRepaired(store, RepairMode::kAll, {"name-record"});
    RequireSame(ReadPath(store, "linked"), content);
  }
  SECTION("a file without a name") {
    RemoveName(store, store.directory, "link");
    RemoveName(store, kRootInode, "linked");
    RequireRepaired(store, RepairMode::kAll, {"unreachable"});
    RequireSame(ReadPath(store, "lost+found/#" + number), content);
    FileSystem& fs = store.fixture().Open();
    const auto directory = fs.Lookup(kRootInode, "lost+found");
    REQUIRE_OK(directory);
    CHECK(directory->mode == 0040700);
    fs.Forget(directory->inode, 1);
    store.fixture().Close();
  }
  SECTION("a second file, when lost+found exists") {
    RemoveName(store, store.directory, "link");
    RemoveName(store, kRootInode, "linked");
    RequireRepaired(store, RepairMode::kAll, {"unreachable"});
    RemoveName(store, kRootInode, "small");
    RequireRepaired(store, RepairMode::kAll, {"unreachable"});
    CHECK(HasPath(store, "lost+found/#" + number));
    CHECK(HasPath(store, "lost+found/#" + std::to_string(store.small)));
  }
  SECTION("a file named lost+found exists") {
    store.fixture().Open();
    WriteFile(store.fs(), "lost+found", RandomBytes(1, 10));
    store.fixture().Close();
    RemoveName(store, kRootInode, "small");
    RequireRepaired(store, RepairMode::kAll, {"unreachable"});
    CHECK(HasPath(store, "lost+found.1/#" + std::to_string(store.small)));
  }
  SECTION("a directory without a name, with its content") {
    RemoveName(store, store.directory, "inner");
    RequireRepaired(store, RepairMode::kAll, {"unreachable"});
    CHECK(HasPath(store, "lost+found/#" + std::to_string(store.inner) + "/symlink"));
  }
  SECTION("not with a safe repair") {
    RemoveName(store, kRootInode, "small");
    const RepairReport report = Repair(store, RepairMode::kSafe);
    CHECK(report.left == 1);
    CHECK_FALSE(HasPath(store, "lost+found"));
  }
}

TEST_CASE("unreadable inodes are removed, but directories with names are recreated") {
  CheckedStore store;
  store.FillAndClose();
  SECTION("a file") {
    store.Put(InodeKey(store.small), "short");
    const RepairReport report = RequireRepaired(store, RepairMode::kAll, {"inode-record"});
    REQUIRE(report.lost.size() == 1);
    CHECK(report.lost[0].range.inode == store.small);
    CHECK(report.lost[0].range.length == 0);
    CHECK_FALSE(HasPath(store, "small"));
  }
  SECTION("a directory") {
    store.Put(InodeKey(store.directory), "short");
    RequireRepaired(store, RepairMode::kAll, {"inode-record"});
    CHECK(HasPath(store, "directory/inner/symlink"));
    CHECK(HasPath(store, "directory/link"));
  }
  SECTION("a directory that is missing") {
    store.Remove(InodeKey(store.directory));
    const RepairReport report = Repair(store, RepairMode::kAll);
    INFO(Describe(report));
    CHECK(report.left == 0);
    RequireCodes(store.Check(true), {});
    CHECK(HasPath(store, "directory/inner/symlink"));
  }
  SECTION("the root") {
    store.Remove(InodeKey(kRootInode));
    RequireRepaired(store, RepairMode::kAll, {"root", "inode-missing", "counter"});
    store.EditInode(kRootInode, [](InodeRecord& root) {
      CHECK(FileOwner{.uid = root.uid, .gid = root.gid} == kRepairOwner);
      CHECK(root.mode == 0040755);
    });
    CHECK(HasPath(store, "directory/inner/symlink"));
    CHECK(HasPath(store, "small"));
  }
  SECTION("the remains of an inode") {
    store.Put(XattrKey(1000, "user.x"), "");
    store.Put(OrphanKey(1001), "");
    RequireRepaired(store, RepairMode::kAll, {"inode-missing"});
  }
  SECTION("keys of no table") {
    store.Put("Quagga", "");
    store.Put("cc", "");
    // Damage and scrub records are kept.
    const std::string damage =
        DamagedBlock{.segment = 1, .first_ordinal = 0, .chunks = {{}}}.EncodeChunks();
    store.Put(DamageKey(1, 0), damage);
    store.Put(std::string(kScrubKey), ScrubRecord{.reached = 1}.Encode());
    store.Put(std::string(kLastScrubKey), LastScrubRecord{.ended_ns = 1}.Encode());
    SavingsHistory sizes;
    sizes.Add({.taken_ns = 1, .logical_bytes = 2});
    store.Put(std::string(kSavingsHistoryKey), sizes.Encode());
    store.Put(std::string(kScrubHistoryKey), ScrubHistory().Encode());
    Repair(store, RepairMode::kAll);
    store.EditMetadata([&](KvStore& kv) {
      CHECK(**kv.Get(DamageKey(1, 0)) == damage);
      const auto kept = SavingsHistory::Decode(kv.Get(kSavingsHistoryKey)->value_or(""));
      REQUIRE_OK(kept);
      CHECK(kept->samples().front() == sizes.samples().front());
      CHECK(kv.Get(kScrubHistoryKey)->has_value());
      CHECK(kv.Get(kScrubKey)->has_value());
      CHECK(kv.Get(kLastScrubKey)->has_value());
      CHECK_FALSE(kv.Get("zebra")->has_value());
    });
  }
  SECTION("store-wide records") {
    const std::string what = GENERATE("ids", "segment", "commit", "removed", "replacement", "scrub",
                                      "sizes", "scrubs", "former");
    if (what == "ids") store.Remove(std::string(kIdRangesKey));
    if (what == "segment") store.Put(SegmentKey(1), "?");
    if (what == "commit") store.Put("c", "?");
    if (what == "removed") store.Put(RemovedSegmentKey(1), "");
    if (what == "replacement") store.Put(ReplacementKey(1000), SegmentRecord().Encode());
    if (what == "scrub") store.Put(std::string(kLastScrubKey), "?");
    if (what == "sizes") store.Put(std::string(kSavingsHistoryKey), "?");
    if (what == "former") store.Put(FormerSegmentsKey(0), "");
    if (what == "scrubs") store.Put(std::string(kScrubHistoryKey), "?");
    const RepairReport report = Repair(store, RepairMode::kAll);
    INFO(Describe(report));
    CHECK(report.left == 0);
    CHECK(report.lost.empty());
    RequireCodes(store.Check(true), {});
    RequireSame(ReadPath(store, "large"), RandomBytes(2, 1'000'000));
  }
  SECTION("names in an inode that is not a directory") {
    PutName(store, store.small, "name", {store.linked, 0100000, 3});
    store.EditInode(store.linked, [](InodeRecord& record) { ++record.links; });
    RequireRepaired(store, RepairMode::kAll, {"not-a-directory"});
    CHECK(HasPath(store, "small"));
  }
}

TEST_CASE("directories that contain themselves are moved to lost+found") {
  CheckedStore store;
  store.FillAndClose();
  const NameEntry entry = NameOf(store, kRootInode, "directory");
  RemoveName(store, kRootInode, "directory");
  NameEntry moved = entry;
  store.EditInode(store.inner, [&moved](InodeRecord& record) {
    moved.cookie = record.next_cookie++;
    ++record.entries;
    ++record.links;
  });
  PutName(store, store.inner, "directory", moved);
  store.EditInode(store.directory, [&store](InodeRecord& record) { record.parent = store.inner; });
  RequireRepaired(store, RepairMode::kAll, {"directory-cycle"});
  CHECK(HasPath(store, "lost+found/#" + std::to_string(store.inner) + "/directory/link"));
}

TEST_CASE("a directory with two names keeps the one in its recorded parent") {
  CheckedStore store;
  store.FillAndClose();
  const NameEntry inner = NameOf(store, store.directory, "inner");
  uint64_t cookie = 0;
  store.EditInode(kRootInode, [&cookie](InodeRecord& record) {
    cookie = record.next_cookie++;
    ++record.entries;
    ++record.links;
  });
  PutName(store, kRootInode, "inner too", {inner.inode, inner.type, cookie});
  RequireRepaired(store, RepairMode::kAll, {"link-count"});
  CHECK(HasPath(store, "directory/inner/symlink"));
  CHECK_FALSE(HasPath(store, "inner too"));
}

TEST_CASE("invalid overlays are cut or removed") {
  CheckedStore store;
  store.FillAndClose();
  const auto claim = [&store](uint64_t bytes) {
    store.EditInode(store.small, [bytes](InodeRecord& record) {
      record.has_overlay = true;
      record.overlay_bytes = bytes;
    });
  };
  const auto plain = [&store](uint64_t offset, char letter) {
    OverlayExtent extent;
    extent.kind = OverlayExtent::Kind::kPlain;
    extent.plain = std::string(60, letter);
    extent.length = 60;
    store.Put(OverlayKey(store.small, offset), extent.Encode());
  };
  SECTION("one that overlaps") {
    plain(0, 'a');
    plain(30, 'b');
    claim(120);
    RequireRepaired(store, RepairMode::kAll, {"overlay-overlap"});
    const Bytes content = ReadPath(store, "small");
    CHECK(content[59] == 'a');
    CHECK(content[60] == 'b');
    CHECK(content[89] == 'b');
  }
  SECTION("one that reaches beyond the file's end") {
    plain(70, 'a');
    claim(60);
    RequireRepaired(store, RepairMode::kAll, {"overlay-end"});
    CHECK(ReadPath(store, "small").size() == 100);
    CHECK(ReadPath(store, "small")[99] == 'a');
  }
  SECTION("one that is malformed") {
    store.Put(OverlayKey(store.small, 0), "?");
    RequireRepaired(store, RepairMode::kAll, {"overlay-record"});
  }
  SECTION("one of a directory") {
    OverlayExtent extent;
    extent.kind = OverlayExtent::Kind::kHole;
    extent.length = 60;
    store.Put(OverlayKey(store.inner, 0), extent.Encode());
    RequireRepaired(store, RepairMode::kAll, {"not-a-file"});
  }
  SECTION("one with a missing chunk among others") {
    OverlayExtent extent;
    extent.kind = OverlayExtent::Kind::kChunks;
    extent.slices = {{.name = ChunkName{}, .chunk_length = 60, .skip = 0, .length = 40}};
    extent.length = 40;
    store.Put(OverlayKey(store.small, 10), extent.Encode());
    const Bytes before = ReadPath(store, "small");
    store.EditInode(store.small, [](InodeRecord& record) {
      record.has_overlay = true;
      record.overlay_bytes = 40;
      record.overlay_chunks = 1;
    });
    const RepairReport report =
        RequireRepaired(store, RepairMode::kAll, {"chunk-missing", "counter"});
    CHECK(LostOf(report, "/small") == 40);
    RequireOnlyLost(report, "/small", before, ReadPath(store, "small"));
  }
}

TEST_CASE("files keep their readable content, and lost ranges become holes that are reported") {
  CheckedStore store(GENERATE(IndexEngine::kSilt, IndexEngine::kMap));
  store.FillAndClose();
  const Bytes large = ReadPath(store, "large");
  const Bytes small = ReadPath(store, "small");
  const std::string path = SegmentPath(store.path(), 1);
  const Block block = BlocksOf(store, 1)[1];
  SECTION("a block's payload") {
    store.Flip(path, block.offset + block.head.head_bytes() + 100);
    const RepairReport report =
        RequireRepaired(store, RepairMode::kAll, {"block-payload", "chunk-damaged"}, true);
    CHECK(LostOf(report, "/large") == block.head.plain_bytes);
    RequireOnlyLost(report, "/large", large, ReadPath(store, "large"));
    RequireOnlyLost(report, "/copy", large, ReadPath(store, "copy"));
    RequireSame(ReadPath(store, "small"), small);
  }
  SECTION("a block's head") {
    store.Flip(path, block.offset + 60);
    const RepairReport report =
        RequireRepaired(store, RepairMode::kAll, {"block-head", "chunk-damaged"});
    CHECK(LostOf(report, "/copy") == block.head.plain_bytes);
    RequireOnlyLost(report, "/large", large, ReadPath(store, "large"));
    RequireOnlyLost(report, "/copy", large, ReadPath(store, "copy"));
  }
  SECTION("truncated last blocks") {
    std::filesystem::resize_file(path, BlocksOf(store, 1).back().offset + 100);
    const RepairReport report =
        RequireRepaired(store, RepairMode::kAll, {"segment-truncated", "chunk-damaged"}, true);
    RequireOnlyLost(report, "/large", large, ReadPath(store, "large"));
  }
  SECTION("a whole segment") {
    std::filesystem::remove(path);
    const RepairReport report =
        RequireRepaired(store, RepairMode::kAll, {"segment-missing", "chunk-missing"});
    CHECK(LostOf(report, "/small") == small.size());
    RequireOnlyLost(report, "/large", large, ReadPath(store, "large"));
    RequireOnlyLost(report, "/small", small, ReadPath(store, "small"));
  }
  SECTION("a directory in a segment's place, which may be user data") {
    std::filesystem::remove(path);
    std::filesystem::create_directories(path + "/theirs");
    std::filesystem::create_directories(path + ".stray/theirs, too");
    RequireRepaired(store, RepairMode::kAll, {"segment-missing", "chunk-damaged"});
    CHECK(std::filesystem::exists(path + ".stray/theirs, too"));
    CHECK(std::filesystem::exists(path + ".stray+/theirs"));
  }
  // The store can still be used.
  store.fixture().Open();
  WriteLargeFile(store.fs(), "large", large);
  store.fixture().Close();
  RequireSame(ReadPath(store, "large"), large);
  RequireCodes(store.Check(true), {});
}

TEST_CASE("a chunk that is damaged in one place and whole in another is not lost") {
  CheckedStore store;
  store.FillAndClose();
  const Bytes large = ReadPath(store, "large");
  const Block block = BlocksOf(store, 1)[1];
  // A second copy of the block in a segment of its own, as if it had been written again.
  auto state = ReadSuperblock(store.fixture().env(), store.path());
  REQUIRE_OK(state);
  EncodedBlock copy;
  {
    const BlockCodec codec;
    auto reader = SegmentReader::Open(store.fixture().env(), store.path(),
                                      {state->superblock.uuid, 1}, codec);
    REQUIRE_OK(reader);
    auto read = (*reader)->ReadEncodedBlock(block.offset);
    REQUIRE_OK(read);
    copy = std::move(read).value();
  }
  store.EditMetadata([&](KvStore& kv) {
    auto ids = IdRanges::Decode(**kv.Get(kIdRangesKey));
    REQUIRE_OK(ids);
    const SegmentId id = ids->segment_limit++;
    auto writer = SegmentWriter::Create(store.fixture().env(), store.path(),
                                        {state->superblock.uuid, id}, SegmentKind::kData, 0);
    REQUIRE_OK(writer);
    REQUIRE_OK((*writer)->Append(copy, uint64_t{1} << 50, 0));
    REQUIRE_OK((*writer)->Seal());
    REQUIRE_OK(kv.Write({{SegmentKey(id), SealedRecord((*writer)->totals()).Encode()},
                         {std::string(kIdRangesKey), ids->Encode()}}));
  });
  RequireCodes(store.Check(true), {});
  store.Flip(SegmentPath(store.path(), 1), block.offset + block.head.head_bytes() + 100);
  const RepairReport report = RequireRepaired(store, RepairMode::kAll, {"block-payload"}, true);
  CHECK(report.lost.empty());
  RequireSame(ReadPath(store, "large"), large);
  RequireSame(ReadPath(store, "copy"), large);
}

TEST_CASE("chunks removed from a segment are no longer on the list of damage") {
  CheckedStore store;
  store.FillAndClose();
  const Block block = BlocksOf(store, 1)[1];
  store.Flip(SegmentPath(store.path(), 1), block.offset + block.head.head_bytes() + 100);
  const auto listed = [&store] {
    store.fixture().Open();
    const auto stats = store.fs().maintenance().GetStats();
    REQUIRE_OK(stats);
    return stats->damaged_blocks;
  };
  REQUIRE(listed() == 0);
  Bytes content(1'000'000);
  REQUIRE_CODE(store.fs().Read(store.large, 0, content), kCorruption);
  store.fixture().Close();
  REQUIRE(listed() == 1);
  store.fixture().Close();
  RequireRepaired(store, RepairMode::kAll, {"block-payload", "chunk-damaged"}, true);
  CHECK(listed() == 0);
  store.fixture().Close();
}

TEST_CASE("files keep their length even if all segments are gone") {
  CheckedStore store;
  store.FillAndClose();
  for (const auto& directory :
       std::filesystem::directory_iterator(SegmentsDirectory(store.path()))) {
    for (const auto& file : std::filesystem::directory_iterator(directory))
      std::filesystem::remove(file);
  }
  const RepairReport report = Repair(store, RepairMode::kAll, true);
  INFO(Describe(report));
  CHECK(report.left == 0);
  RequireCodes(store.Check(true), {});
  const Bytes large = ReadPath(store, "large");
  RequireSame(large, Bytes(1'000'000));
  CHECK(LostOf(report, "/large") == large.size());
}

TEST_CASE("a lost recipe node becomes a hole in its range") {
  CheckedStore store;
  store.FillAndClose();
  const Bytes large = ReadPath(store, "large");
  SegmentId nodes = kNoSegment;
  auto listing = ListSegments(store.fixture().env(), store.path());
  REQUIRE_OK(listing);
  for (const SegmentId id : listing->ids) {
    const auto header = DecodeSegmentHeader(AsBytes(
        std::string_view(ReadText(SegmentPath(store.path(), id))).substr(0, kSegmentHeaderSize)));
    if (header.ok() && header->kind == SegmentKind::kRecipeNodes) nodes = id;
  }
  REQUIRE(nodes != kNoSegment);
  store.Flip(SegmentPath(store.path(), nodes), 1000);
  const RepairReport report = Repair(store, RepairMode::kAll, true);
  INFO(Describe(report));
  CHECK(report.left == 0);
  RequireCodes(store.Check(true), {});
  CHECK(LostOf(report, "/large") > 0);
  RequireOnlyLost(report, "/large", large, ReadPath(store, "large"));
  RequireOnlyLost(report, "/copy", large, ReadPath(store, "copy"));
}

TEST_CASE("damage that only --data detects is neither found nor changed without it") {
  CheckedStore store;
  store.FillAndClose();
  const Block block = BlocksOf(store, 1)[1];
  store.Flip(SegmentPath(store.path(), 1), block.offset + block.head.head_bytes() + 100);
  const DirectoryTree before = ReadTree(store.path());
  CHECK(Repair(store, RepairMode::kAll).found == 0);
  const bool same = ReadTree(store.path()) == before;
  CHECK(same);
}

}  // namespace siltfs::testing
