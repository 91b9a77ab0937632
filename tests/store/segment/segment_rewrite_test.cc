// Recompressing a sealed segment: a new file with larger blocks replaces the old one.
#include "store/segment/segment_rewrite.h"

#include <algorithm>

#include "store/segment/segment_scan.h"
#include "tests/store/segment/segment_test_support.h"

using namespace siltfs;
using namespace siltfs::testing;

namespace {

constexpr SegmentId kId = 5;
using Layout = std::vector<std::vector<uint32_t>>;

struct Sealed : TestStore {
  explicit Sealed(const Layout& layout_in, const Compression& compression = kPlain,
                  bool compressible = true, SegmentKind kind = SegmentKind::kData)
      : layout(layout_in) {
    auto writer = Create(kId, kind);
    for (size_t i = 0; i < layout.size(); ++i) {
      std::vector<TestChunk> chunks = MakeChunks(1000 * (i + 1), layout[i], compressible);
      // Sequences with gaps, and increasing commits.
      REQUIRE_OK(writer->Append(Encode(codec, chunks, compression), 1000 + 3 * i, 8 + i / 2));
      all.insert(all.end(), chunks.begin(), chunks.end());
    }
    REQUIRE_OK(writer->Seal());
    bytes = FileBytes(kId);
  }

  Result<PreparedRewrite> Prepare(const RewriteOptions& options) {
    return PrepareRewrite(env, path, segments, Identity(kId), codec, options);
  }
  Result<PreparedRewrite> Prepare(uint32_t block_plain_bytes) {
    return Prepare(RewriteOptions{.compression = kZstd3, .block_plain_bytes = block_plain_bytes});
  }
  bool HasTemporary() { return !Must(ListSegments(env, path)).temporaries.empty(); }
  // The segment holds every chunk at its ordinal, and footer and blocks agree.
  void RequireAll(size_t blocks) {
    auto reader = Open(kId);
    const SegmentFooter footer = Must(reader->ReadFooter());
    REQUIRE(footer.blocks.size() == blocks);
    REQUIRE(footer.chunks.size() == all.size());
    size_t ordinal = 0;
    for (const BlockPlace& place : footer.blocks) {
      REQUIRE(place.first_ordinal == ordinal);
      auto block = Must(reader->ReadBlock(place.block_offset));
      for (size_t i = 0; i < block->chunk_count(); ++i, ++ordinal) {
        CHECK(block->records()[i] == all[ordinal].record);
        CHECK(AsText(block->chunk(i)) == AsText(all[ordinal].bytes));
        CHECK(footer.chunks[ordinal] ==
              FooterChunk{all[ordinal].record.name.Prefix64(), all[ordinal].record.tag});
      }
    }
    REQUIRE(ordinal == all.size());
    const ScanResult scanned =
        Must(ScanBlocks(reader->file(), Identity(kId),
                        {.committed_length = footer.trailer.data_end,
                         .end = footer.trailer.data_end,
                         .verify_payloads = true},
                        [](const BlockHead&, uint32_t) { return Status::Ok(); }));
    CHECK(scanned.blocks == blocks);
    CHECK(scanned.first_sequence == footer.trailer.first_sequence);
    CHECK(scanned.last_sequence == footer.trailer.last_sequence);
    CHECK(scanned.plain_bytes == footer.trailer.plain_bytes);
  }

  const Layout layout;
  std::vector<TestChunk> all;  // by ordinal
  std::string bytes;
};

const Layout kSevenBlocks = {{900, 200}, {1000}, {800, 300, 1}, {1200}, {700, 700}, {1024}, {50}};

}  // namespace

TEST_CASE("A rewritten segment has the same chunks at the same ordinals in fewer blocks") {
  Sealed store(kSevenBlocks);
  const SegmentHeader header = Must(store.Open(kId)->ReadHeader());
  const SegmentTrailer before = Must(store.Open(kId)->ReadTrailer());
  const auto prepared = Must(store.Prepare(2500));
  REQUIRE(prepared.worthwhile);
  CHECK(prepared.before == before);
  // The segment is unchanged, and the prepared file survives the power cut.
  CHECK(store.FileBytes(kId) == store.bytes);
  REQUIRE_OK(store.Install(kId));
  store.env.PowerCut();
  store.RequireAll(3);
  auto reader = store.Open(kId);
  CHECK(Must(reader->ReadHeader()) == header);
  CHECK(Must(reader->ReadTrailer()) == prepared.after);
  CHECK(prepared.after.file_size() == store.FileBytes(kId).size());
  CHECK(prepared.after.chunk_count == before.chunk_count);
  CHECK(prepared.after.last_sequence == before.last_sequence);
  CHECK_FALSE(store.HasTemporary());
}

TEST_CASE("A merged block has the highest sequence and commit of its source blocks") {
  Sealed store(kSevenBlocks);
  REQUIRE(Must(store.Prepare(2500)).worthwhile);
  REQUIRE_OK(store.Install(kId));
  auto reader = store.Open(kId);
  std::vector<std::pair<uint64_t, uint64_t>> found;
  for (const BlockPlace& place : Must(reader->ReadFooter()).blocks) {
    const BlockHead head = Must(reader->ReadBlockHead(place.block_offset));
    found.emplace_back(head.sequence, head.last_commit);
  }
  CHECK(found == std::vector<std::pair<uint64_t, uint64_t>>{{1006, 9}, {1012, 10}, {1018, 11}});
}

TEST_CASE("A reader with the old file open continues to read it") {
  Sealed store(kSevenBlocks);
  auto old = store.Open(kId);
  const auto places = Must(old->ReadFooter()).blocks;
  REQUIRE(Must(store.Prepare(2500)).worthwhile);
  REQUIRE_OK(store.Install(kId));
  RequireSame(*Must(old->ReadBlock(places[6].block_offset)), MakeChunks(1000 * 7, store.layout[6]));
}

TEST_CASE("Blocks are merged within the limits of the format") {
  SECTION("bytes of a block") {
    // Two neighboring blocks together would be too large.
    const uint32_t large = kMaxBlockPlainBytes - 1000;
    Sealed store({{large}, {1001}, {kMaxBlockPlainBytes}});
    REQUIRE(Must(store.Prepare(kMaxBlockPlainBytes)).worthwhile);
    REQUIRE_OK(store.Install(kId));
    store.RequireAll(3);
  }
  SECTION("a block filled to the byte") {
    Sealed store({{kMaxBlockPlainBytes - 1000}, {1000}});
    REQUIRE(Must(store.Prepare(kMaxBlockPlainBytes)).worthwhile);
    REQUIRE_OK(store.Install(kId));
    store.RequireAll(1);
  }
  SECTION("chunks of a block") {
    const std::vector<uint32_t> some(kMaxBlockChunks - 1, 100);
    Sealed store({some, {200}, {300}, some});
    REQUIRE(Must(store.Prepare(kMaxBlockPlainBytes)).worthwhile);
    REQUIRE_OK(store.Install(kId));
    store.RequireAll(2);
    CHECK(Must(store.Open(kId)->ReadFooter()).blocks[1].first_ordinal == kMaxBlockChunks);
  }
}

TEST_CASE("A segment that would not shrink is left unchanged") {
  Sealed store(kSevenBlocks, kPlain, /*compressible=*/false);
  CHECK_FALSE(Must(store.Prepare(100)).worthwhile);
  CHECK(store.FileBytes(kId) == store.bytes);
  CHECK_FALSE(store.HasTemporary());
}

TEST_CASE("A segment with damage anywhere is not rewritten") {
  Sealed store(kSevenBlocks, kZstd3);
  const size_t step = store.bytes.size() / 211 + 1;
  // The header's checksum covers its reserved bytes, too.
  for (size_t offset = 0; offset < store.bytes.size(); offset += step) {
    store.FlipByte(kId, offset);
    const std::string damaged = store.FileBytes(kId);
    const auto prepared = store.Prepare(2500);
    INFO("byte " << offset);
    REQUIRE_FALSE(prepared.ok());
    const bool refused = prepared.status().Is(StatusCode::kCorruption) ||
                         prepared.status().Is(StatusCode::kInvalidArgument) ||
                         prepared.status().Is(StatusCode::kNeedsNewer);
    REQUIRE(refused);
    REQUIRE(store.FileBytes(kId) == damaged);
    REQUIRE_FALSE(store.HasTemporary());
    store.SetFileBytes(kId, store.bytes);
  }
}

TEST_CASE("A segment with a footer that differs from its blocks is left unchanged") {
  Sealed store(kSevenBlocks);
  SegmentFooter footer = Must(store.Open(kId)->ReadFooter());
  const uint32_t data_end = footer.trailer.data_end;
  SECTION("another chunk") { footer.chunks[4].tag ^= 1; }
  SECTION("a chunk that was lost") { footer.chunks[2] = {}; }
  SECTION("another sequence at the end") { ++footer.trailer.last_sequence; }
  SECTION("other uncompressed bytes") { ++footer.trailer.plain_bytes; }
  SECTION("a block too few") { footer.blocks.erase(footer.blocks.begin() + 2); }
  SECTION("no block at the beginning") { footer.blocks.erase(footer.blocks.begin()); }
  SECTION("a chunk too many") { footer.chunks.emplace_back(FooterChunk{1, 2}); }
  const std::string changed =
      store.bytes.substr(0, data_end) + EncodeSegmentFooter(footer, store.Identity(kId));
  store.SetFileBytes(kId, changed);
  REQUIRE_OK(store.Open(kId)->ReadFooter());
  REQUIRE_CODE(store.Prepare(2500), kCorruption);
  CHECK(store.FileBytes(kId) == changed);
  CHECK_FALSE(store.HasTemporary());
}

TEST_CASE("Only sealed segments of data are rewritten") {
  SECTION("one that holds recipe nodes") {
    Sealed store(kSevenBlocks, kPlain, true, SegmentKind::kRecipeNodes);
    REQUIRE_CODE(store.Prepare(2500), kInvalidArgument);
    CHECK(store.FileBytes(kId) == store.bytes);
  }
  SECTION("one that is not sealed") {
    TestStore store;
    auto writer = store.Create(kId);
    AppendAll(*writer, store.codec, kSmallSegment, kPlain);
    REQUIRE_OK(writer->Sync());
    REQUIRE_CODE(PrepareRewrite(store.env, store.path, store.segments, store.Identity(kId),
                                store.codec, {.compression = kZstd3}),
                 kInvalidArgument);
  }
  SECTION("one that does not exist") {
    TestStore store;
    REQUIRE_CODE(PrepareRewrite(store.env, store.path, store.segments, store.Identity(kId),
                                store.codec, {.compression = kZstd3}),
                 kNotFound);
  }
}

TEST_CASE("A rewrite stopped at any step leaves no new file") {
  Sealed store(kSevenBlocks);
  int steps = 0;
  for (int stop_at = 0;; ++stop_at) {
    steps = 0;
    RewriteOptions options{.compression = kZstd3, .block_plain_bytes = 2500};
    options.pace = [&](uint64_t) {
      return steps++ == stop_at ? Status(StatusCode::kInterrupted, "stop") : Status::Ok();
    };
    const auto prepared = store.Prepare(options);
    if (prepared.ok()) break;
    REQUIRE_CODE(prepared, kInterrupted);
    REQUIRE_FALSE(store.HasTemporary());
    REQUIRE(store.FileBytes(kId) == store.bytes);
  }
  CHECK(steps == 1 + 7 + 3);  // one call with 0, one for each old block, one for each new block
}

TEST_CASE("A rewrite reports the bytes read from the old file and from the new one") {
  Sealed store(kSevenBlocks);
  std::vector<uint64_t> told;
  const auto prepared =
      store.Prepare({.compression = kZstd3, .block_plain_bytes = 2500, .pace = [&](uint64_t bytes) {
                       told.push_back(bytes);
                       return Status::Ok();
                     }});
  REQUIRE_OK(prepared);
  CHECK(told == std::vector<uint64_t>{0, 1100, 1000, 1101, 1200, 1400, 1024, 50,  // old
                                      3201, 2600, 1074});                         // new
}

TEST_CASE("A prepared rewrite can be discarded, and a leftover file is no obstacle") {
  Sealed store(kSevenBlocks);
  REQUIRE(Must(store.Prepare(2500)).worthwhile);
  REQUIRE(store.HasTemporary());
  SECTION("discarded") {
    REQUIRE_OK(DiscardRewrite(store.env, store.path, kId));
    store.env.PowerCut();
    CHECK_FALSE(store.HasTemporary());
    REQUIRE_OK(DiscardRewrite(store.env, store.path, kId));
  }
  SECTION("left") { store.env.PowerCut(); }
  CHECK(store.FileBytes(kId) == store.bytes);
  REQUIRE(Must(store.Prepare(2500)).worthwhile);
  REQUIRE_OK(store.Install(kId));
  store.RequireAll(3);
}
