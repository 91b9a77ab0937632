// Every standalone record of a store is decoded from arbitrary bytes, and an accepted one is
// unchanged by encoding and decoding.
//
// The input: the kind of record, then its bytes.
#include <array>
#include <functional>
#include <string>
#include <utility>

#include "fs/control/protocol.h"
#include "fs/control/stats_check.h"
#include "fs/control/survey_session.h"
#include "fs/interface/posix_acl.h"
#include "fs/recipe/recipe_node.h"
#include "fs/records/damage_record.h"
#include "fs/records/directory_entry.h"
#include "fs/records/garbage_record.h"
#include "fs/records/hidden_range.h"
#include "fs/records/inode_record.h"
#include "fs/records/last_scrub_record.h"
#include "fs/records/lineage.h"
#include "fs/records/overlay_extent.h"
#include "fs/records/quota_record.h"
#include "fs/records/savings_history.h"
#include "fs/records/schema.h"
#include "fs/records/scrub_history.h"
#include "fs/records/scrub_record.h"
#include "fs/records/segment_record.h"
#include "fs/records/snapshot_record.h"
#include "fs/records/source_record.h"
#include "fs/rocksdb/sync_ledger.h"
#include "index/key_value/item.h"
#include "index/key_value/value_log_manifest.h"
#include "index/map/map_snapshot.h"
#include "index/silt/manifest_edit.h"
#include "index/silt/store_manifest.h"
#include "store/segment/segment_format.h"
#include "store/superblock/superblock.h"
#include "tests/fuzz/fuzz_input.h"

namespace siltfs::testing {
namespace {

std::string Text(const Bytes& bytes) { return std::string(AsText(bytes)); }

// A record that is decoded again must encode the same bytes.
template <typename Decode, typename Encode>
bool GoRound(ByteView bytes, const Decode& decode, const Encode& encode) {
  return DecodesAsEncoded(bytes, decode, encode, [&](const auto& first, const auto& second) {
    return encode(first) == encode(second);
  });
}

template <typename Record>
bool GoRoundText(ByteView bytes) {
  return GoRound(
      bytes, [](ByteView in) { return Record::Decode(AsText(in)); },
      [](const Record& record) { return record.Encode(); });
}

bool GoRoundRecipe(ByteView bytes) {
  return GoRound(
      bytes, [](ByteView in) { return Recipe::Decode(in); },
      [](const Recipe& recipe) { return Text(recipe.Encode()); });
}

bool GoRoundNode(ByteView bytes) {
  return GoRound(
      bytes, [](ByteView in) { return RecipeNode::Decode(in); },
      [](const RecipeNode& node) {
        return Text(node.level == 0 ? EncodeNode(node.entries, node.totals)
                                    : EncodeNode(node.level, node.children, node.totals));
      });
}

bool GoRoundItem(ByteView bytes) {
  ItemSizeOf(bytes).status().IgnoreError("any bytes may be refused");
  return GoRound(
      bytes, [](ByteView in) { return DecodeItem(in); },
      [](const Item& item) { return Text(EncodeItem(item)); });
}

bool GoRoundDamage(ByteView bytes) {
  return GoRound(
      bytes, [](ByteView in) { return DamagedBlock::DecodeChunks(AsText(in)); },
      [](const std::vector<DamagedChunk>& chunks) {
        return DamagedBlock{1, 0, chunks}.EncodeChunks();
      });
}

bool ParseKeys(ByteView bytes) {
  const std::string_view key = AsText(bytes);
  for (const Table table : {Table::kDirectoryCookie, Table::kOverlay}) {
    const auto parsed = ParseNumberedKey(table, key);
    if (!parsed) continue;
    MustHold((table == Table::kOverlay ? OverlayKey(parsed->inode, parsed->number)
                                       : DirectoryCookieKey(parsed->inode, parsed->number)) == key,
             "a key is that of what it says");
  }
  if (const auto inode = ParseInodeKey(Table::kInode, key))
    MustHold(InodeKey(*inode) == key, "an inode's key");
  if (const auto inode = ParseInodeKey(Table::kOrphan, key))
    MustHold(OrphanKey(*inode) == key, "an orphan's key");
  if (const auto first = ParseInodeKey(Table::kHidden, key))
    MustHold(HiddenRangeKey(*first) == key, "a hidden range's key");
  if (const auto id = ParseSegmentKey(key)) MustHold(SegmentKey(*id) == key, "a segment's key");
  if (const auto id = ParseReplacementKey(key))
    MustHold(ReplacementKey(*id) == key, "a replacement's key");
  if (const auto id = ParseRemovedSegmentKey(key))
    MustHold(RemovedSegmentKey(*id) == key, "a removed segment's key");
  if (const auto number = ParseFormerSegmentsKey(key))
    MustHold(FormerSegmentsKey(*number) == key, "the key of former segments");
  if (const auto id = ParseSecondaryKey(key))
    MustHold(SecondaryKey(*id) == key, "a noted segment's key");
  if (const auto place = ParseDamageKey(key))
    MustHold(DamageKey(place->first, place->second) == key, "a damaged block's key");
  ParseXattrName(key);
  if (const auto part = ParseQuotaKey(key))
    MustHold(QuotaKey(part->quota, part->part) == key, "a quota's key");
  if (const auto number = ParseSnapshotKey(key))
    MustHold(SnapshotKey(*number) == key, "a snapshot's key");
  return true;
}

bool GoRoundUsage(ByteView bytes) {
  return GoRound(
      bytes, [](ByteView in) { return DecodeUsage(AsText(in)); }, EncodeUsage);
}

// The messages on the control socket.
bool TakeMessage(ByteView bytes) {
  const std::string_view line = AsText(bytes);
  const char* unread = "any bytes may be refused";
  control::DecodeRequest(line).status().IgnoreError(unread);
  const auto response = control::DecodeResponse(line);
  response.status().IgnoreError(unread);
  if (response.ok()) CheckStats(*response).status().IgnoreError(unread);
  DecodeSurveyProgress(line).status().IgnoreError(unread);
  return true;
}

bool GoRoundSuperblock(ByteView bytes) {
  return GoRound(bytes, DecodeSuperblock, EncodeSuperblock);
}
bool GoRoundSegmentHeader(ByteView bytes) {
  return GoRound(bytes, DecodeSegmentHeader, EncodeSegmentHeader);
}
bool GoRoundLedger(ByteView bytes) {
  return GoRound(bytes, DecodeSyncLedgerSlot, EncodeSyncLedgerSlot);
}
bool GoRoundManifest(ByteView bytes) {
  return GoRound(bytes, DecodeStoreManifest, EncodeStoreManifest);
}
bool GoRoundManifestEdit(ByteView bytes) {
  return GoRound(bytes, DecodeManifestEdit, EncodeManifestEdit);
}
bool GoRoundValueLogManifest(ByteView bytes) {
  return GoRound(bytes, DecodeValueLogManifest, EncodeValueLogManifest);
}
bool GoRoundMap(ByteView bytes) {
  return GoRound(bytes, DecodeMapSnapshot, [](const MapSnapshot& snapshot) {
    return EncodeMapSnapshot(snapshot.entries, snapshot.sequence);
  });
}

constexpr std::array<bool (*)(ByteView), 30> kRecords = {
    GoRoundSuperblock,
    GoRoundSegmentHeader,
    GoRoundText<NameEntry>,
    GoRoundText<CookieEntry>,
    GoRoundText<SegmentRecord>,
    GoRoundText<IdRanges>,
    GoRoundText<GarbageRecord>,
    GoRoundText<OverlayExtent>,
    GoRoundText<InodeRecord>,
    GoRoundText<PosixAcl>,
    GoRoundRecipe,
    GoRoundNode,
    GoRoundLedger,
    GoRoundManifest,
    GoRoundValueLogManifest,
    GoRoundMap,
    GoRoundItem,
    ParseKeys,
    GoRoundDamage,
    GoRoundText<ScrubRecord>,
    GoRoundManifestEdit,
    GoRoundText<LastScrubRecord>,
    GoRoundText<SavingsHistory>,
    GoRoundText<ScrubHistory>,
    TakeMessage,
    GoRoundText<QuotaRecord>,
    GoRoundUsage,
    GoRoundText<SnapshotRecord>,
    GoRoundText<LineageRecord>,
    GoRoundText<SourceRecord>,
};

ChunkName Name(uint8_t byte) {
  ChunkName name;
  name.bytes.fill(byte);
  return name;
}

Recipe SomeRecipe(bool tall) {
  Recipe recipe;
  if (tall) {
    recipe.height = 1;
    recipe.children = {{Name(1), 32 + 24 * 64, 64 * 8192, 64, 0}, {Name(2), 41, 5000, 0, 5000}};
  } else {
    recipe.entries = {RecipeEntry::Chunk(Name(1), 8192), RecipeEntry::Hole(1 << 20)};
  }
  return recipe;
}

std::string SomeInode(uint32_t mode, bool tall) {
  InodeRecord record;
  record.mode = mode;
  record.links = 1;
  record.mtime = 1'600'000'000'000'000'000;
  record.xattrs = 2;
  if (record.IsDirectory()) {
    record.parent = 1;
    record.next_cookie = 5;
    record.entries = 2;
  }
  if (record.IsSymlink()) record.target = "to/somewhere";
  if (record.IsRegular()) {
    record.recipe = SomeRecipe(tall);
    record.size = record.recipe_limit = record.recipe.size();
    record.has_overlay = tall;
    record.overlay_chunks = tall ? 3 : 0;
  }
  return record.Encode();
}

Bytes SomeNode(uint8_t level) {
  RecipeTotals totals;
  if (level > 0) {
    const std::vector<RecipeChild> children(40, {Name(3), 32 + 24 * 64, 64 * 8192, 64, 0});
    for (const RecipeChild& child : children) MustHold(totals.Add(child), "a child");
    return EncodeNode(level, children, totals);
  }
  const std::vector<RecipeEntry> entries(70, RecipeEntry::Chunk(Name(4), 8192));
  for (const RecipeEntry& entry : entries) MustHold(totals.Add(entry), "an entry");
  return EncodeNode(entries, totals);
}

std::string SomeExtent(OverlayExtent::Kind kind) {
  OverlayExtent extent;
  extent.kind = kind;
  extent.length = 100;
  if (kind == OverlayExtent::Kind::kPlain) extent.plain = std::string(100, 'p');
  if (kind == OverlayExtent::Kind::kChunks)
    extent.slices = {{Name(5), 80, 10, 70}, {Name(6), 30, 0, 30}};
  return extent.Encode();
}

}  // namespace

std::vector<Bytes> FuzzSeeds() {
  std::vector<std::pair<bool (*)(ByteView), std::string>> seeds;
  const auto add = [&](bool (*record)(ByteView), std::string bytes) {
    seeds.emplace_back(record, std::move(bytes));
  };
  StoreUuid uuid;
  uuid.bytes.fill(7);
  Superblock superblock;
  superblock.uuid = uuid;
  superblock.rabin_polynomial = 0x3DA3358B4DC173;
  add(GoRoundSuperblock, EncodeSuperblock(superblock));
  superblock.SetIdentity("label", uuid);
  uuid.bytes.fill(8);
  superblock.SetIdentity("label", uuid);
  add(GoRoundSuperblock, EncodeSuperblock(superblock));
  superblock.incompat_features = kIncompatEngines;
  superblock.metadata_engine = "log";
  superblock.index_parameters = {{"partition_bits", 3}, {"bucket_bits", 9}};
  add(GoRoundSuperblock, EncodeSuperblock(superblock));
  add(GoRoundSegmentHeader, EncodeSegmentHeader({SegmentKind::kData, {uuid, 7}, 3}));
  add(GoRoundText<NameEntry>, NameEntry{12, 0100000, 4}.Encode());
  add(GoRoundText<CookieEntry>, CookieEntry{12, 0100000, "name"}.Encode());
  add(GoRoundText<SegmentRecord>, SegmentRecord{0, true, 9999, 100, 50'000, 3, 9, true}.Encode());
  add(GoRoundText<IdRanges>, IdRanges{3, 1000, 50, false}.Encode());
  add(GoRoundText<GarbageRecord>, GarbageRecord{1, 2, 3, 4}.Encode());
  for (const auto kind :
       {OverlayExtent::Kind::kPlain, OverlayExtent::Kind::kHole, OverlayExtent::Kind::kChunks})
    add(GoRoundText<OverlayExtent>, SomeExtent(kind));
  for (const uint32_t mode : {0040755u, 0120777u, 0100644u, 0020600u})
    add(GoRoundText<InodeRecord>, SomeInode(mode, false));
  add(GoRoundText<InodeRecord>, SomeInode(0100600, true));
  std::string acl("\2\0\0\0", 4);
  for (const char tag : {1, 2, 4, 16, 32}) {
    acl += std::string({tag, 0, 6, 0});
    acl += tag == 2 ? std::string("\x21\0\0\0", 4) : std::string(4, '\xff');
  }
  add(GoRoundText<PosixAcl>, acl);
  for (const bool tall : {false, true}) {
    add(GoRoundRecipe, Text(SomeRecipe(tall).Encode()));
    add(GoRoundNode, Text(SomeNode(tall ? 1 : 0)));
  }
  add(GoRoundLedger,
      EncodeSyncLedgerSlot({5, {{"000012.log", 4096, 0}, {"MANIFEST-000004", 9, 0}}}));
  StoreManifest manifest;
  manifest.bucket_bits = 4;
  manifest.partition_bits = 1;
  manifest.generation = 3;
  manifest.next_id = 20;
  manifest.partitions = {{5, 2, 4, 9, {3, 4}, 2}, {7, 0, 0, 8, {}, 0}};
  add(GoRoundManifest, EncodeStoreManifest(manifest));
  add(GoRoundManifestEdit,
      EncodeManifestEdit(
          {9, 24, false, {{0, 6, 3, 5, 9, 21, 2, {22}}, {1, 7, 0, 0, 9, 0, 0, {}}}}));
  add(GoRoundValueLogManifest, EncodeValueLogManifest({uuid, 9, {3, 8}}));
  add(GoRoundMap, EncodeMapSnapshot({{Name(1), {1, 2, 3}}, {Name(2), {4, 5, 6}}}, 77));
  const std::string key = "key", value(300, 'v');
  add(GoRoundItem, Text(EncodeItem({AsBytes(key), AsBytes(value)})));
  for (const std::string& some :
       {InodeKey(5), DirectoryCookieKey(5, 6), OverlayKey(5, 7), SegmentKey(9),
        XattrKey(5, "user.a"), ReplacementKey(3), DamageKey(9, 100)})
    add(ParseKeys, some);
  add(GoRoundDamage, DamagedBlock{3, 50, {{1, 2}, {0, 0}, {5, 6}}}.EncodeChunks());
  add(GoRoundText<ScrubRecord>, ScrubRecord{9, 8, 7, 6, 5, 4, 3, 2}.Encode());
  add(GoRoundText<LastScrubRecord>, LastScrubRecord{9, 8, 7, 6}.Encode());
  SavingsHistory sizes;
  sizes.Add({.taken_ns = 5, .logical_bytes = 9});
  sizes.Add({.taken_ns = 6, .damaged_chunks = 2});
  add(GoRoundText<SavingsHistory>, sizes.Encode());
  ScrubHistory scrubs;
  scrubs.Add({.found = {9, 8, 7, 6}, .chunks = 5, .bytes = 4});
  add(GoRoundText<ScrubHistory>, scrubs.Encode());
  SnapshotRecord snapshot{.name = "monday", .created = 5, .commit = 6, .inode_limit = 70};
  add(GoRoundText<SnapshotRecord>, snapshot.Encode());
  add(GoRoundText<LineageRecord>,
      LineageRecord{.incoming = IncomingSnapshot{{}, std::nullopt, "monday", 70, "here"}}.Encode());
  add(GoRoundText<SourceRecord>, SourceRecord{.inode = 9, .size = 8, .own_ctime = 7}.Encode());
  add(TakeMessage, control::EncodeRequest({"stat"}));
  add(GoRoundText<QuotaRecord>, QuotaRecord{7, {1 << 20, 30}}.Encode());
  add(GoRoundUsage, EncodeUsage({-5, 30}));
  for (const std::string& some : {QuotaKey(7, QuotaPart::kUsage), SnapshotKey(3)})
    add(ParseKeys, some);

  std::vector<Bytes> inputs;
  for (const auto& [record, text] : seeds) {
    MustHold(record(AsBytes(text)), "a seed is accepted");
    const auto place = std::find(kRecords.begin(), kRecords.end(), record);
    inputs.push_back(JoinInput({static_cast<uint8_t>(place - kRecords.begin())}, AsBytes(text)));
  }
  return inputs;
}

void RunRecord(FuzzInput input) {
  const uint64_t which = input.Number(1) % kRecords.size();
  kRecords[which](input.Take(input.remaining()));
}

}  // namespace siltfs::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  siltfs::testing::RunRecord(siltfs::testing::FuzzInput(data, size));
  return 0;
}
