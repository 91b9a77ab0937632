// Which chunks a collection copies, and when the index is updated.
#include "fs/gc/relocator.h"

#include <set>

#include "fs/chunks/footer_cache.h"
#include "store/segment/directory_segment_store.h"
#include "tests/fs/chunks/pipeline_under_test.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

constexpr uint32_t kBlocks = 3;
constexpr uint32_t kChunksPerBlock = 4;

// Twelve chunks in three blocks of one segment.
struct Relocation : PipelineUnderTest {
  Relocation() {
    uint8_t number = 0;
    for (uint32_t block = 0; block < kBlocks; ++block) {
      for (uint32_t i = 0; i < kChunksPerBlock; ++i) names.push_back(Add(number++));
      REQUIRE_OK(pipeline->Flush());
      source.footer.blocks.push_back({PlaceOf(names.back()).block_offset, block * kChunksPerBlock});
    }
    source.segment = PlaceOf(names[0]).segment;
    source.footer.trailer.chunk_count = kBlocks * kChunksPerBlock;
    source.is_live = [this](uint32_t ordinal) { return live.contains(ordinal); };
    options.block_plain_bytes = 5000;  // three chunks
    options.gone = [this](SegmentId segment) { return segment == source.segment; };
    options.is_damaged = [this](SegmentId segment, uint32_t ordinal) {
      return damage.Contains(segment, ordinal);
    };
    options.pace = [](uint64_t) { return Status::Ok(); };
    options.run = [](const std::function<void()>& work) { work(); };
    relocator = std::make_unique<Relocator>(*index, segments, reader, *pipeline, codec, options);
  }
  Location PlaceOf(const ChunkName& name) {
    const auto place = index->Get(name);
    REQUIRE_OK(place);
    REQUIRE(place->has_value());
    return **place;
  }
  // Whether the index leads to the chunk.
  bool LeadsToIt(const ChunkName& name) {
    const auto record = reader.RecordAt(PlaceOf(name));
    REQUIRE_OK(record);
    return *record && (*record)->name == name;
  }

  DirectorySegmentStore segment_store{env, kStore};
  SegmentCache segments{segment_store, StoreUuid{}, codec, log.get(), 8};
  FooterCache windows{1u << 20};
  DamageList damage{{}};
  ChunkReader reader{segments,
                     *index,
                     windows,
                     damage,
                     {.store = kStore, .unindexed = {}, .on_damage = {}, .is_right = {}}};
  Relocator::Options options;
  std::vector<ChunkName> names;
  std::set<uint32_t> live;
  Relocator::Source source;
  std::unique_ptr<Relocator> relocator;
};

}  // namespace

TEST_CASE("live chunks are copied, and the index leads to the copies after MoveEntries") {
  Relocation at;
  at.live = {0, 1, 4, 9, 10, 11};
  REQUIRE_OK(at.relocator->CopyLive(at.source));
  REQUIRE_OK(at.relocator->Flush());
  CHECK(at.relocator->moves() == at.live.size());
  CHECK(at.relocator->needs_commit());
  for (const ChunkName& name : at.names) REQUIRE(at.PlaceOf(name).segment == at.source.segment);
  REQUIRE_OK(at.relocator->MoveEntries());
  CHECK(at.relocator->moves() == 0);
  CHECK_FALSE(at.relocator->needs_commit());
  Location last{};
  for (uint32_t i = 0; i < at.names.size(); ++i) {
    const Location place = at.PlaceOf(at.names[i]);
    INFO(i);
    REQUIRE((place.segment != at.source.segment) == at.live.contains(i));
    REQUIRE(at.LeadsToIt(at.names[i]));
    if (!at.live.contains(i)) continue;
    if (i > 0) CHECK(place.ordinal > last.ordinal);  // in their old order
    last = place;
    ChunkReader::ReadCursor read_cursor;
    const Bytes expected = RandomChunk(i);
    const auto found =
        at.reader.Get(at.names[i], static_cast<uint32_t>(expected.size()), read_cursor);
    REQUIRE_OK(found);
    REQUIRE(Bytes(found->bytes.begin(), found->bytes.end()) == expected);
  }
}

TEST_CASE("nothing is copied if the footer does not match the blocks") {
  Relocation at;
  at.live = {5};
  SECTION("another first chunk") { at.source.footer.blocks[1].first_ordinal = 5; }
  SECTION("another end") { at.source.footer.blocks[2].first_ordinal = 7; }
  SECTION("another block's place") {
    at.source.footer.blocks[1].block_offset = at.source.footer.blocks[2].block_offset;
  }
  SECTION("no block's place") { at.source.footer.blocks[1].block_offset += 1; }
  REQUIRE_CODE(at.relocator->CopyLive(at.source), kCorruption);
  REQUIRE_OK(at.relocator->Flush());
  CHECK(at.relocator->moves() == 0);
  CHECK(at.relocator->bytes_copied() == 0);
}

TEST_CASE("a chunk with another copy is not copied, and its removal must wait for a commit") {
  Relocation at;
  at.live = {3};
  REQUIRE_OK(at.pipeline->Flush());
  at.pipeline->ForgetAppended();
  at.options.gone = {};
  // The same chunk in another segment, to which the index leads.
  EncodedBlock copy;
  {
    const auto opened = at.segments.Open(at.source.segment);
    REQUIRE_OK(opened);
    auto block = (*opened)->reader->ReadEncodedBlock(at.source.footer.blocks[0].block_offset);
    REQUIRE_OK(block);
    copy = std::move(*block);
  }
  const auto appended = at.pipeline->AppendMoved(SegmentKind::kData, copy);
  REQUIRE_OK(appended);
  const IndexEntry entry{
      at.names[3],
      {appended->segment, appended->place.first_ordinal + 3, appended->place.block_offset}};
  REQUIRE_OK(at.index->Put({&entry, 1}, at.log->TakeSequence()));
  REQUIRE_OK(at.relocator->CopyLive(at.source));
  REQUIRE_OK(at.relocator->Flush());
  CHECK(at.relocator->moves() == 0);
  CHECK(at.relocator->needs_commit());
  CHECK(at.PlaceOf(at.names[3]) == entry.location);
}

TEST_CASE("a chunk that is known to be damaged is not copied as if it were whole") {
  Relocation at;
  at.live = {0, 1, 4, 9};
  REQUIRE(at.damage.Add({at.source.segment, 4, {{at.names[4].Prefix64(), 7}}}));
  REQUIRE_CODE(at.relocator->CopyLive(at.source), kCorruption);
  at.live.erase(4);
  Relocator without(*at.index, at.segments, at.reader, *at.pipeline, at.codec, at.options);
  REQUIRE_OK(without.CopyLive(at.source));
  REQUIRE_OK(without.Flush());
  CHECK(without.moves() == at.live.size());
}

TEST_CASE("if a block of copies finds no room, no chunk counts as copied") {
  Relocation at;
  at.live = {0, 1, 2, 3, 4, 5, 6, 7, 8};
  at.env.SetCapacity(0);
  REQUIRE_CODE(at.relocator->CopyLive(at.source), kNoSpace);
  at.env.SetCapacity(SimEnv::kUnlimited);
  // There is room now, but the chunks of the lost block still have no copy.
  CHECK(at.relocator->is_full());
  REQUIRE_CODE(at.relocator->Flush(), kNoSpace);
  REQUIRE_CODE(at.relocator->MoveEntries(), kNoSpace);
  for (const ChunkName& name : at.names) CHECK(at.PlaceOf(name).segment == at.source.segment);
}

}  // namespace siltfs::testing
