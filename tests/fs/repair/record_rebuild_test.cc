// Rebuilding store-wide records from segments and salvaged metadata.
#include "fs/repair/record_rebuild.h"

#include <map>

#include "fs/meta/id_allocator.h"
#include "fs/meta/metadata_store.h"
#include "fs/open/store_layout.h"
#include "fs/open/store_records.h"
#include "fs/records/directory_entry.h"
#include "fs/records/last_scrub_record.h"
#include "fs/records/savings_history.h"
#include "fs/records/schema.h"
#include "fs/records/scrub_history.h"
#include "fs/rocksdb/rocksdb_store.h"
#include "store/base/coding.h"
#include "store/env/sim_env.h"
#include "store/segment/directory_segment_store.h"
#include "tests/fs/core/recompression_store.h"
#include "tests/fs/core/store_fixture.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

const std::string kPath = "/store";

struct Filled {
  explicit Filled(bool crashes) : store(env, kPath) {
    for (int mount = 0; mount < 3; ++mount) {
      auto fs = store.Open(env);
      REQUIRE_OK(fs);
      store.WriteFiles(**fs, 1 + 10 * static_cast<uint64_t>(mount), 4);
      REQUIRE_OK((*fs)->SyncAll());
      if (!crashes || mount < 2) {
        REQUIRE_OK((*fs)->Close());
        continue;
      }
      env.CutAtCall(1);  // so that RocksDB's threads write nothing either
      fs->reset();
      env.Reboot();
    }
    KvStoreOptions options;
    options.path = MetadataPath(kPath);
    options.ledger_path = LedgerPath(kPath);
    options.mode = KvStoreOptions::Mode::kReadOnly;
    const auto kv = OpenRocksDbStore(env, options);
    REQUIRE_OK(kv);
    auto read = ReadStoreRecords(**kv);
    REQUIRE_OK(read);
    records = std::move(*read);
  }

  std::map<std::string, std::string> Rebuild(RecordRebuild& rebuild) {
    const auto state = ReadSuperblock(env, kPath);
    REQUIRE_OK(state);
    DirectorySegmentStore segments(env, kPath);
    const auto made = rebuild.Finish(env, kPath, segments, *state);
    REQUIRE_OK(made);
    std::map<std::string, std::string> entries;
    for (const Mutation& entry : *made) entries[entry.key] = *entry.value;
    return entries;
  }

  SimEnv env;
  RecompressionStore store;
  StoreRecords records;
};

IdRanges IdsIn(const std::map<std::string, std::string>& made) {
  const auto ids = IdRanges::Decode(made.at(std::string(kIdRangesKey)));
  REQUIRE_OK(ids);
  return *ids;
}

}  // namespace

TEST_CASE("segment records, and the ids in use, are rebuilt from the segments") {
  const bool crashes = GENERATE(false, true);
  Filled filled(crashes);
  RecordRebuild rebuild;
  const auto made = filled.Rebuild(rebuild);
  REQUIRE(filled.records.segments.size() > 3);
  uint64_t sequence = 0;
  for (const auto& [id, record] : filled.records.segments) {
    INFO("segment " << id);
    REQUIRE(made.contains(SegmentKey(id)));
    auto remade = SegmentRecord::Decode(made.at(SegmentKey(id)));
    REQUIRE_OK(remade);
    SegmentRecord expected = record;
    expected.recompressed = false;  // not stored in the file
    // The segment was sealed, but not yet committed as sealed.
    if (remade->sealed && !record.sealed) {
      REQUIRE(crashes);
      REQUIRE(remade->chunks >= record.chunks);
      expected = *remade;
    }
    REQUIRE(*remade == expected);
    sequence = std::max(sequence, record.last_sequence);
  }
  const IdRanges ids = IdsIn(made);
  CHECK_FALSE(ids.clean);
  CHECK(ids.segment_limit >= filled.records.segments.back().first + 1 + IdAllocator::kSegmentRange);
  CHECK(ids.epoch >= sequence >> IdAllocator::kSequenceBits);
  CHECK(ids.epoch > 0);
  Decoder commit(AsBytes(made.at(std::string(kCommitNumberKey))));
  CHECK(commit.U64() > filled.records.last_commit + (uint64_t{1} << 39));
  CHECK(made.contains(std::string(kCountersKey)));
}

TEST_CASE("numbers that occur anywhere in metadata are in use") {
  Filled filled(false);
  constexpr uint64_t kHigh = 5'000'000'000;
  RecordRebuild rebuild;
  CHECK(rebuild.Keep(InodeKey(kHigh), "?"));
  uint64_t highest = kHigh;
  SECTION("an inode") {}
  SECTION("a name's") {
    CHECK(rebuild.Keep(DirectoryEntryKey(1, "name"), NameEntry{highest *= 2, 0100000, 3}.Encode()));
  }
  SECTION("a cookie's") {
    CHECK(rebuild.Keep(DirectoryCookieKey(1, 3), CookieEntry{highest *= 2, 0100000, "n"}.Encode()));
  }
  SECTION("an attribute's") { CHECK(rebuild.Keep(XattrKey(highest *= 2, "user.x"), "")); }
  SECTION("an extent's") { CHECK(rebuild.Keep(OverlayKey(highest *= 2, 0), "")); }
  SECTION("claimed ranges") {
    IdRanges ids;
    ids.inode_limit = highest + 10;
    ids.epoch = 1000;
    ids.segment_limit = 9'000'000;
    CHECK_FALSE(rebuild.Keep(std::string(kIdRangesKey), ids.Encode()));
    const IdRanges made = IdsIn(filled.Rebuild(rebuild));
    CHECK(made.epoch == 1000);
    CHECK(made.segment_limit > 9'000'000);
    CHECK(made.inode_limit >= highest + 10);
    return;
  }
  CHECK(IdsIn(filled.Rebuild(rebuild)).inode_limit > highest);
}

TEST_CASE("former segments are kept if no id can be used again") {
  Filled filled(false);
  RecordRebuild rebuild;
  const bool has_ids = GENERATE(false, true);
  IdRanges ids;
  ids.segment_limit = 5000;
  if (has_ids) CHECK_FALSE(rebuild.Keep(std::string(kIdRangesKey), ids.Encode()));
  CHECK_FALSE(rebuild.Keep(FormerSegmentsKey(0), "\x06"));
  CHECK_FALSE(rebuild.Keep(FormerSegmentsKey(1), std::string(512, '\xff')));
  CHECK_FALSE(rebuild.Keep(FormerSegmentsKey(2), "\x01"));
  CHECK_FALSE(rebuild.Keep(FormerSegmentsKey(3), ""));
  const auto entries = filled.Rebuild(rebuild);
  CHECK(entries.contains(FormerSegmentsKey(0)) == has_ids);
  CHECK_FALSE(entries.contains(FormerSegmentsKey(2)));
  if (!has_ids) return;
  CHECK(entries.at(FormerSegmentsKey(0)) == "\x06");
  CHECK(entries.at(FormerSegmentsKey(1)) == std::string(113, '\xff'));  // up to 4999
}

TEST_CASE("malformed records and intents are not kept") {
  RecordRebuild rebuild;
  CHECK_FALSE(rebuild.Keep("", "value"));
  CHECK_FALSE(rebuild.Keep(SegmentKey(1), "?"));
  CHECK_FALSE(rebuild.Keep(ReplacementKey(1), SegmentRecord().Encode()));
  CHECK_FALSE(rebuild.Keep(RemovedSegmentKey(1), ""));
  CHECK_FALSE(rebuild.Keep(DamageKey(1, 1), "?"));
  CHECK_FALSE(rebuild.Keep(std::string(kScrubKey), "?"));
  CHECK_FALSE(rebuild.Keep(std::string(kLastScrubKey), "?"));
  CHECK(rebuild.Keep(std::string(kLastScrubKey), LastScrubRecord{.ended_ns = 1}.Encode()));
  CHECK_FALSE(rebuild.Keep(std::string(kSavingsHistoryKey), "?"));
  CHECK(rebuild.Keep(std::string(kSavingsHistoryKey), SavingsHistory().Encode()));
  CHECK_FALSE(rebuild.Keep(std::string(kScrubHistoryKey), "?"));
  CHECK(rebuild.Keep(std::string(kScrubHistoryKey), ScrubHistory().Encode()));
  CHECK_FALSE(rebuild.Keep(std::string(kGarbageKey), "?"));
  CHECK_FALSE(rebuild.Keep(std::string(kCollisionsKey), "?"));
  CHECK_FALSE(rebuild.Keep(std::string(kCountersKey), "?"));
  CHECK(rebuild.Keep(std::string(kCollisionsKey), Encoder().U64(3).Take()));
}

}  // namespace siltfs::testing
