// Compares every key and value of the metadata, byte for byte, with docs/format.md ("Metadata").
// The constants were made from that page, not from the code. A change that breaks one of them makes
// a new format.
#include <algorithm>
#include <functional>

#include "fs/meta/metadata_store.h"
#include "fs/records/directory_entry.h"
#include "fs/records/garbage_record.h"
#include "fs/records/hidden_range.h"
#include "fs/records/inode_record.h"
#include "fs/records/overlay_extent.h"
#include "fs/records/quota_record.h"
#include "fs/records/schema.h"
#include "fs/records/segment_record.h"
#include "fs/records/snapshot_record.h"
#include "fs/versions/version_key.h"
#include "tests/fs/meta/memory_kv_store.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

std::string FromHex(std::string_view hex) {
  std::string bytes;
  std::string digits;
  for (char c : hex) {
    if (c == ' ') continue;
    digits.push_back(c);
    if (digits.size() < 2) continue;
    bytes.push_back(static_cast<char>(std::stoi(digits, nullptr, 16)));
    digits.clear();
  }
  return bytes;
}

std::string ToHex(std::string_view bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (char c : bytes) {
    hex.push_back(kDigits[static_cast<uint8_t>(c) >> 4]);
    hex.push_back(kDigits[static_cast<uint8_t>(c) & 15]);
  }
  return hex;
}

ChunkName NameOf(uint8_t first) {
  ChunkName name;
  for (size_t i = 0; i < ChunkName::kSize; ++i) name.bytes[i] = static_cast<uint8_t>(first + i);
  return name;
}

InodeRecord Inode(uint32_t mode) {
  InodeRecord record;
  record.mode = mode;
  record.links = 2;
  record.uid = 1000;
  record.gid = 0x01020304;
  record.atime = 1700000000000000001;
  record.mtime = -1;
  record.ctime = 3;
  record.btime = 4;
  record.xattrs = 5;
  return record;
}

InodeRecord Directory() {
  InodeRecord record = Inode(040755);
  record.parent = 1;
  record.next_cookie = 7;
  record.entries = 4;
  return record;
}

InodeRecord Symlink() {
  InodeRecord record = Inode(0120777);
  record.size = 5;
  record.target = "../up";
  return record;
}

InodeRecord Device() {
  InodeRecord record = Inode(020600);
  record.device = 0x0103;
  return record;
}

InodeRecord ShortFile() {
  InodeRecord record = Inode(0100644);
  record.size = 20000;
  record.recipe.entries = {RecipeEntry::Chunk(NameOf(0x10), 8192), RecipeEntry::Hole(4096)};
  record.recipe_limit = 12000;
  record.overlay_chunks = 1;
  record.overlay_bytes = 8000;
  record.has_overlay = true;
  return record;
}

InodeRecord LongFile() {
  InodeRecord record = Inode(0100600);
  record.size = 1000000;
  record.recipe.height = 1;
  record.recipe.children = {{NameOf(0x20), 2000, 1000000, 120, 4096}};
  record.recipe_limit = 1000000;
  return record;
}

OverlayExtent Plain() {
  OverlayExtent extent;
  extent.kind = OverlayExtent::Kind::kPlain;
  extent.plain = "hello";
  extent.length = 5;
  return extent;
}

OverlayExtent Hole() {
  OverlayExtent extent;
  extent.length = 0x0102030405;
  return extent;
}

OverlayExtent Chunks() {
  OverlayExtent extent;
  extent.kind = OverlayExtent::Kind::kChunks;
  extent.slices = {{NameOf(0x30), 8192, 100, 8092}, {NameOf(0x50), 4096, 0, 4096}};
  extent.length = 8092 + 4096;
  return extent;
}

template <typename T>
std::function<Result<std::string>(std::string_view)> Reencode() {
  return [](std::string_view value) -> Result<std::string> {
    SILTFS_ASSIGN_OR_RETURN(T record, T::Decode(value));
    return record.Encode();
  };
}

constexpr std::string_view kAttributes =  // the fields of Inode() from links to xattrs
    "02000000 e8030000 04030201";
constexpr std::string_view kTimes =
    "01002a36fe9c9717 ffffffffffffffff 0300000000000000 0400000000000000 05000000";

struct Format {
  std::string what;
  std::string encoded;
  std::string golden;
  std::function<Result<std::string>(std::string_view)> reencode;
  // A value that is truncated to fewer than `fixed_bytes` bytes is refused. If a value ends in a
  // string or in a list of slices, it may still be valid when it is truncated to more bytes.
  size_t fixed_bytes = SIZE_MAX;
};

std::vector<Format> Formats() {
  const auto join = [](std::initializer_list<std::string_view> parts) {
    std::string hex;
    for (std::string_view part : parts) hex += part;
    return FromHex(hex);
  };
  const auto inode = Reencode<InodeRecord>();
  const auto extent = Reencode<OverlayExtent>();
  return {
      {"directory", Directory().Encode(),
       join({"01 00 ed410000", kAttributes, "0000000000000000 0000000000000000", kTimes,
             "0100000000000000 0700000000000000 0400000000000000"}),
       inode},
      {"symbolic link", Symlink().Encode(),
       join({"01 00 ffa10000", kAttributes, "0000000000000000 0500000000000000", kTimes,
             "0500 2e2e2f7570"}),
       inode},
      {"device", Device().Encode(),
       join({"01 00 80210000", kAttributes, "0301000000000000 0000000000000000", kTimes}), inode},
      {"file with a short recipe", ShortFile().Encode(),
       join({"01 01 a4810000", kAttributes, "0000000000000000 204e000000000000", kTimes,
             "e02e000000000000 0100000000000000 401f000000000000", "01 00 02",
             "00 002000 101112131415161718191a1b1c1d1e1f20212223", "01 0010000000000000"}),
       inode},
      {"file with a tree", LongFile().Encode(),
       join({"01 00 80810000", kAttributes, "0000000000000000 40420f0000000000", kTimes,
             "40420f0000000000 0000000000000000 0000000000000000", "01 01 01",
             "202122232425262728292a2b2c2d2e2f30313233 d0070000",
             "40420f0000000000 7800000000000000 0010000000000000"}),
       inode},
      {"name entry", NameEntry{0x0102030405060708, 040000, 9}.Encode(),
       FromHex("0807060504030201 04 0900000000000000"), Reencode<NameEntry>()},
      {"cookie entry", CookieEntry{0x1122, 0100000, "na\xc3\xafve"}.Encode(),
       FromHex("2211000000000000 08 6e61c3af7665"), Reencode<CookieEntry>(), 9},
      {"overlay of raw bytes", Plain().Encode(), FromHex("01 68656c6c6f"), extent, 2},
      {"overlay of a hole", Hole().Encode(), FromHex("02 0504030201000000"), extent},
      {"overlay of chunk slices", Chunks().Encode(),
       FromHex("03 303132333435363738393a3b3c3d3e3f40414243 002000 640000 9c1f00"
               "   505152535455565758595a5b5c5d5e5f60616263 001000 000000 001000"),
       extent, 1 + 29},
      {"segment record",
       SegmentRecord{1, true, 0x01fedcba, 4096, 33554432, (uint64_t{3} << 40) + 1,
                     (uint64_t{3} << 40) + 256}
           .Encode(),
       FromHex("01 01 badcfe0100000000 0010000000000000 0000000200000000"
               "0100000000030000 0001000000030000"),
       Reencode<SegmentRecord>()},
      {"record of a recompressed segment",
       SegmentRecord{0, true, 0x01fedcba, 4096, 33554432, 7, 9, true}.Encode(),
       FromHex("00 03 badcfe0100000000 0010000000000000 0000000200000000"
               "0700000000000000 0900000000000000"),
       Reencode<SegmentRecord>()},
      {"id ranges", IdRanges{3, 65538, 4097, false}.Encode(),
       FromHex("0300000000000000 0200010000000000 01100000 00"), Reencode<IdRanges>()},
      {"hidden link", HiddenLink{.copy = 1, .names = 0x0203, .links = 4}.Encode(),
       FromHex("0100000000000000 03020000 04000000"), Reencode<HiddenLink>()},
      {"garbage", GarbageRecord{1, 0x0203, 4, 5}.Encode(),
       FromHex("0100000000000000 0302000000000000 0400000000000000 0500000000000000"),
       Reencode<GarbageRecord>()},
  };
}

}  // namespace

TEST_CASE("every metadata value is encoded as in docs/format.md, and read back") {
  for (const Format& format : Formats()) {
    INFO(format.what);
    CHECK(ToHex(format.encoded) == ToHex(format.golden));
    auto again = format.reencode(format.golden);
    REQUIRE_OK(again);
    CHECK(ToHex(*again) == ToHex(format.golden));
  }
}

TEST_CASE("the fields of golden values are read correctly") {
  auto inode = [](const InodeRecord& record) {
    auto decoded = InodeRecord::Decode(record.Encode());
    REQUIRE_OK(decoded);
    return *decoded;
  };
  const InodeRecord file = inode(ShortFile());
  CHECK(file.IsRegular());
  CHECK(file.links == 2);
  CHECK(file.uid == 1000);
  CHECK(file.gid == 0x01020304);
  CHECK(file.size == 20000);
  CHECK(file.atime == 1700000000000000001);
  CHECK(file.mtime == -1);
  CHECK(file.ctime == 3);
  CHECK(file.btime == 4);
  CHECK(file.xattrs == 5);
  CHECK(file.recipe == ShortFile().recipe);
  CHECK(file.recipe_limit == 12000);
  CHECK(file.overlay_chunks == 1);
  CHECK(file.overlay_bytes == 8000);
  CHECK(file.has_overlay);
  CHECK(inode(LongFile()).recipe == LongFile().recipe);
  CHECK_FALSE(inode(LongFile()).has_overlay);
  CHECK(inode(Directory()).parent == 1);
  CHECK(inode(Directory()).next_cookie == 7);
  CHECK(inode(Directory()).entries == 4);
  CHECK(inode(Symlink()).target == "../up");
  CHECK(inode(Device()).device == 0x0103);
  for (const OverlayExtent& extent : {Plain(), Hole(), Chunks()}) {
    auto decoded = OverlayExtent::Decode(extent.Encode());
    REQUIRE_OK(decoded);
    CHECK(*decoded == extent);
  }
}

TEST_CASE("a segment record with unknown flags is refused") {
  SegmentRecord record{0, true, 0x01fedcba, 4096, 33554432, 7, 9, true};
  std::string value = record.Encode();
  for (const char flags : {8, 9, 64, 2 /* recompressed, but not sealed */, 4, 6 /* deltas */}) {
    value[1] = flags;
    REQUIRE_CODE(SegmentRecord::Decode(value), kCorruption);
  }
  // Sealed and recompressed, with deltas.
  value[1] = 7;
  record.recompressed = true;
  record.deltas = true;
  REQUIRE_OK(SegmentRecord::Decode(value));
  CHECK(*SegmentRecord::Decode(value) == record);
  CHECK(record.Encode() == value);
}

TEST_CASE("a metadata value that is cut short or has bytes after its end is refused") {
  for (const Format& format : Formats()) {
    INFO(format.what);
    for (size_t size = 0; size < std::min(format.fixed_bytes, format.golden.size()); ++size) {
      auto cut = format.reencode(std::string_view(format.golden).substr(0, size));
      INFO("cut to " << size << " bytes");
      CHECK_FALSE(cut.ok());
      if (!cut.ok()) CHECK(cut.status().Is(StatusCode::kCorruption));
    }
    auto longer = format.reencode(format.golden + '\1');
    if (format.fixed_bytes == SIZE_MAX || format.what == "overlay of chunk slices") {
      CHECK_FALSE(longer.ok());
    } else {
      CHECK(longer.ok());
    }
  }
}

TEST_CASE("a metadata value with a byte changed is refused or is some other whole value") {
  size_t refused = 0;
  for (const Format& format : Formats()) {
    for (size_t at = 0; at < format.golden.size(); ++at) {
      for (unsigned change = 1; change < 256; ++change) {
        std::string value = format.golden;
        value[at] = static_cast<char>(static_cast<uint8_t>(value[at]) ^ change);
        auto first = format.reencode(value);
        if (!first.ok()) {
          if (!first.status().Is(StatusCode::kCorruption)) {
            FAIL(format.what << ", byte " << at << ": " << first.status().ToString());
          }
          ++refused;
          continue;
        }
        // The decoded record can be encoded and decoded again without a difference.
        auto second = format.reencode(*first);
        if (!second.ok() || *second != *first) FAIL(format.what << ", byte " << at);
      }
    }
  }
  CHECK(refused > 1000);
}

TEST_CASE("every metadata key is encoded as in docs/format.md, and parsed again") {
  constexpr uint64_t kInode = 0x0102030405060708;
  CHECK(ToHex(InodeKey(kInode)) == "690102030405060708");
  CHECK(ToHex(DirectoryEntryKey(kInode, "ab")) == "6401020304050607086162");
  CHECK(ToHex(DirectoryCookieKey(kInode, 0x1112131415161718)) ==
        "6b01020304050607081112131415161718");
  CHECK(ToHex(OverlayKey(kInode, 0x1112131415161718)) == "6f01020304050607081112131415161718");
  CHECK(ToHex(OrphanKey(kInode)) == "750102030405060708");
  CHECK(ToHex(HiddenRangeKey(kInode)) == "6e0102030405060708");
  CHECK(ToHex(HiddenLinkKey(kInode, 0x1112131415161718)) == "6e01020304050607081112131415161718");
  CHECK(ToHex(HiddenRange{.first = 1, .end = 0x0102}.EncodeEnd()) == "0201000000000000");
  CHECK(ToHex(XattrKey(kInode, "user.x")) == "780102030405060708757365722e78");
  CHECK(ToHex(SegmentKey(0x01020304)) == "7301020304");
  CHECK(ToHex(ReplacementKey(0x01020304)) == "7001020304");
  CHECK(ToHex(RemovedSegmentKey(0x01020304)) == "6701020304");
  CHECK(ToHex(FormerSegmentsKey(0x01020304)) == "4601020304");
  CHECK(ToHex(SecondaryKey(0x01020304)) == "6501020304");
  CHECK(kCollisionsKey == "h");
  CHECK(kGarbageKey == "w");
  CHECK(kScrubKey == "v");
  CHECK(kLastScrubKey == "f");
  CHECK(kSavingsHistoryKey == "a");
  CHECK(kScrubHistoryKey == "j");
  CHECK(kIdRangesKey == "r");
  CHECK(kCommitNumberKey == "c");
  CHECK(kCountersKey == "t");

  CHECK(ParseInodeKey(Table::kInode, InodeKey(kInode)) == kInode);
  CHECK(ParseInodeKey(Table::kOrphan, OrphanKey(kInode)) == kInode);
  CHECK(ParseInodeKey(Table::kHidden, HiddenRangeKey(kInode)) == kInode);
  CHECK_FALSE(ParseInodeKey(Table::kHidden, HiddenLinkKey(kInode, 1)));
  CHECK(ParseSegmentKey(SegmentKey(7)) == SegmentId{7});
  CHECK(ParseReplacementKey(ReplacementKey(7)) == SegmentId{7});
  CHECK_FALSE(ParseReplacementKey(SegmentKey(7)));
  CHECK(ParseRemovedSegmentKey(RemovedSegmentKey(7)) == SegmentId{7});
  CHECK_FALSE(ParseRemovedSegmentKey(SegmentKey(7)));
  CHECK(ParseFormerSegmentsKey(FormerSegmentsKey(7)) == uint32_t{7});
  CHECK_FALSE(ParseFormerSegmentsKey(RemovedSegmentKey(7)));
  CHECK(ParseSecondaryKey(SecondaryKey(7)) == SegmentId{7});
  CHECK_FALSE(ParseSecondaryKey(SegmentKey(7)));
  CHECK(ParseXattrName(XattrKey(kInode, "user.x")) == "user.x");
  CHECK(ParseXattrName(XattrKey(kInode, "")) == "");
  const auto overlay = ParseNumberedKey(Table::kOverlay, OverlayKey(kInode, 4096));
  REQUIRE(overlay);
  CHECK(overlay->inode == kInode);
  CHECK(overlay->number == 4096);
  const auto cookie = ParseNumberedKey(Table::kDirectoryCookie, DirectoryCookieKey(2, 3));
  REQUIRE(cookie);
  CHECK(cookie->inode == 2);
  CHECK(cookie->number == 3);
}

TEST_CASE("a key that is cut short, too long, or of another table is not parsed") {
  for (const std::string& key : {OverlayKey(1, 2), DirectoryCookieKey(1, 2)}) {
    const auto table = static_cast<Table>(key[0]);
    for (size_t size = 0; size < key.size(); ++size) {
      CHECK_FALSE(ParseNumberedKey(table, std::string_view(key).substr(0, size)));
    }
    CHECK_FALSE(ParseNumberedKey(table, key + "x"));
    CHECK_FALSE(ParseNumberedKey(Table::kInode, key));
  }
  for (size_t size = 0; size < 9; ++size) {
    CHECK_FALSE(ParseInodeKey(Table::kInode, InodeKey(5).substr(0, size)));
    CHECK_FALSE(ParseXattrName(XattrKey(5, "").substr(0, size)));
  }
  CHECK_FALSE(ParseInodeKey(Table::kInode, InodeKey(5) + "x"));
  CHECK_FALSE(ParseInodeKey(Table::kOrphan, InodeKey(5)));
  for (size_t size = 0; size < 5; ++size)
    CHECK_FALSE(ParseSegmentKey(SegmentKey(5).substr(0, size)));
  CHECK_FALSE(ParseSegmentKey(SegmentKey(5) + "x"));
  CHECK_FALSE(ParseSegmentKey(InodeKey(5)));
}

TEST_CASE("keys sort by number, and a range has all of its inode's keys and no others") {
  const uint64_t numbers[] = {1, 2, 255, 256, 65535, 65536, uint64_t{1} << 40};
  for (size_t i = 1; i < std::size(numbers); ++i) {
    CHECK(InodeKey(numbers[i - 1]) < InodeKey(numbers[i]));
    CHECK(OverlayKey(9, numbers[i - 1]) < OverlayKey(9, numbers[i]));
    CHECK(DirectoryCookieKey(numbers[i - 1], 5) < DirectoryCookieKey(numbers[i], 1));
  }
  for (uint64_t inode : numbers) {
    const KeyRange range = RangeOf(Table::kOverlay, inode);
    CHECK(range.begin <= OverlayKey(inode, 0));
    CHECK(OverlayKey(inode, UINT64_MAX) < range.end);
    CHECK(OverlayKey(inode + 1, 0) >= range.end);
    CHECK(OverlayKey(inode - 1, UINT64_MAX) < range.begin);
  }
  const KeyRange table = RangeOf(Table::kOverlay);
  CHECK(table.begin <= OverlayKey(0, 0));
  CHECK(OverlayKey(UINT64_MAX, UINT64_MAX) < table.end);
  CHECK(OrphanKey(0) >= table.end);
  const KeyRange last = RangeOf(Table::kXattr, 7);
  CHECK(XattrKey(7, std::string(255, '\xff')) < last.end);
}

TEST_CASE("a commit writes its number and the counters as in docs/format.md") {
  MemoryDisk disk;
  MetadataOptions options;
  options.group_bytes = 4u << 20;
  options.commit_interval = std::chrono::seconds(5);
  auto store = MetadataStore::Open(OpenMemoryKvStore(disk), options);
  REQUIRE_OK(store);
  Counters differences{};
  differences[static_cast<size_t>(Counter::kLogicalBytes)] = 0x0102030405;
  differences[static_cast<size_t>(Counter::kFiles)] = 2;
  differences[static_cast<size_t>(Counter::kDirectories)] = 3;
  differences[static_cast<size_t>(Counter::kChunkReferences)] = -1;
  REQUIRE_OK((*store)->Apply({{"key", "value"}}, differences));
  REQUIRE_OK((*store)->CommitAll());
  const auto contents = disk.contents();
  CHECK(ToHex(contents.at("c")) == "0100000000000000");
  CHECK(ToHex(contents.at("t")) == ToHex(FromHex("0504030201000000 0200000000000000"
                                                 "0300000000000000 ffffffffffffffff"
                                                 "0000000000000000 0000000000000000"
                                                 "0000000000000000 0000000000000000")));
  REQUIRE_OK((*store)->Close());
}

TEST_CASE("quotas have their bytes") {
  const QuotaRecord record{.directory = 0x0102, .limits = {.bytes = 0x0304, .files = 5}};
  CHECK(ToHex(record.Encode()) ==
        ToHex(FromHex("01 0201000000000000 0403000000000000 0500000000000000")));
  CHECK(*QuotaRecord::Decode(record.Encode()) == record);
  const QuotaUsage usage{.bytes = 0x0102, .files = -1};
  CHECK(ToHex(EncodeUsage(usage)) == ToHex(FromHex("01 0201000000000000 ffffffffffffffff")));
  CHECK(*DecodeUsage(EncodeUsage(usage)) == usage);
  CHECK(ToHex(QuotaKey(0x0102, QuotaPart::kLimits)) == ToHex(FromHex("71 0000000000000102 6c")));
  CHECK(ToHex(QuotaKey(0x0102, QuotaPart::kUsage)) == ToHex(FromHex("71 0000000000000102 75")));
  for (const std::string& wrong : {record.Encode() + "x", record.Encode().substr(1),
                                   std::string(25, '\0'), QuotaRecord{}.Encode(), std::string()}) {
    REQUIRE_CODE(QuotaRecord::Decode(wrong), kCorruption);
  }
  for (const std::string& wrong : {EncodeUsage(usage) + "x", std::string(17, '\0'), std::string()})
    REQUIRE_CODE(DecodeUsage(wrong), kCorruption);
  for (const std::string& wrong :
       {FromHex("71 0000000000000102"), FromHex("71 0000000000000102 6d"),
        FromHex("71 0000000000000000 6c"), FromHex("71 0000000000000102 6c 00"), InodeKey(5)}) {
    CHECK_FALSE(ParseQuotaKey(wrong));
  }
}

TEST_CASE("the number of a quota follows the head of an inode") {
  InodeRecord record = Inode(0010644);
  const std::string without = record.Encode();
  record.quota = 0x0102;
  std::string with = record.Encode();
  std::string expected = without;
  expected[1] = 2;
  expected.insert(70, FromHex("0201000000000000"));
  CHECK(ToHex(with) == ToHex(expected));
  CHECK(InodeRecord::Decode(with)->quota == 0x0102);
  CHECK(InodeRecord::Decode(without)->quota == 0);
  RemoveQuotaNumber(with);
  CHECK(ToHex(with) == ToHex(without));
  expected.replace(70, 8, std::string(8, '\0'));
  REQUIRE_CODE(InodeRecord::Decode(expected), kCorruption);
}

TEST_CASE("a commit writes the usage of quotas, with what groups add late") {
  MemoryDisk disk;
  MetadataOptions options;
  options.group_bytes = 4u << 20;
  options.commit_interval = std::chrono::seconds(5);
  auto opened = MetadataStore::Open(OpenMemoryKvStore(disk), options);
  REQUIRE_OK(opened);
  MetadataStore& store = **opened;
  const auto usage = [&disk](QuotaNumber quota) -> std::optional<QuotaUsage> {
    const auto contents = disk.contents();
    const auto found = contents.find(QuotaKey(quota, QuotaPart::kUsage));
    if (found == contents.end()) return std::nullopt;
    return *DecodeUsage(found->second);
  };
  // A quota that does not exist has no usage.
  REQUIRE_OK(store.Apply({}, {}, {{7, {.bytes = 1, .files = 1}}}));
  REQUIRE_OK(store.CommitAll());
  CHECK_FALSE(usage(7));
  // In the group that makes the quota.
  const std::string key = QuotaKey(7, QuotaPart::kUsage);
  REQUIRE_OK(store.Apply({{key, EncodeUsage({.bytes = 100, .files = 10})}}, {}, {}));
  REQUIRE_OK(store.Apply({}, {}, {{7, {.bytes = 5, .files = -1}}}));
  REQUIRE_OK(store.CommitAll());
  CHECK(usage(7) == QuotaUsage{.bytes = 105, .files = 9});
  // In later groups, several times.
  REQUIRE_OK(store.Apply({}, {}, {{7, {.bytes = 1}}, {7, {.bytes = 2}}, {8, {.bytes = 2}}}));
  REQUIRE_OK(store.Apply({}, {}, {{7, {.files = 3}}}));
  REQUIRE_OK(store.CommitAll());
  CHECK(usage(7) == QuotaUsage{.bytes = 108, .files = 12});
  CHECK_FALSE(usage(8));
  // A removed quota, before and after the removal.
  REQUIRE_OK(store.Apply({}, {}, {{7, {.bytes = 1}}}));
  REQUIRE_OK(store.Apply({{key, std::nullopt}}, {}, {}));
  REQUIRE_OK(store.Apply({}, {}, {{7, {.bytes = 1}}}));
  REQUIRE_OK(store.CommitAll());
  CHECK_FALSE(usage(7));
  REQUIRE_OK(store.Close());
}

TEST_CASE("snapshots, versions and their list have their bytes") {
  SnapshotRecord record;
  record.name = "monday";
  record.created = 1700000000000000001;
  record.commit = 2;
  record.inode_limit = 3;
  record.logical_bytes = 4;
  record.files = 5;
  record.directories = 6;
  record.chunk_references = 7;
  const std::string kept =
      "00 01002a36fe9c9717 0200000000000000 0300000000000000 0400000000000000 0500000000000000 "
      "0600000000000000 0700000000000000 6d6f6e646179";
  CHECK(ToHex(record.Encode()) == ToHex(FromHex(kept)));
  record.removing = true;
  CHECK(ToHex(record.Encode().substr(0, 1)) == "01");
  CHECK(ToHex(SnapshotKey(0x0102)) == "6d0000000000000102");
  CHECK(ToHex(kNextSnapshotKey) == "6d");
  CHECK(ToHex(EncodeNextSnapshot(3)) == "0300000000000000");
  const std::string key = DirectoryEntryKey(0x0102, "a");
  CHECK(ToHex(VersionKey(key, 2)) ==
        ToHex(FromHex("79 64 00ff00ff00ff00ff00ff00ff 0102 61 0001 fffffffffffffffd")));
  CHECK(ToHex(EncodeVersion(std::nullopt)) == "00");
  CHECK(ToHex(EncodeVersion("a")) == "0161");
  CHECK(ToHex(VersionListKey(2, 1, key)) ==
        ToHex(FromHex("7a 0000000000000002 0000000000000001 64 0000000000000102 61")));
}

}  // namespace siltfs::testing
