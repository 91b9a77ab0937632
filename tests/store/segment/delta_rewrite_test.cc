// Rewriting a segment with a chooser of bases, and reading the result.
#include <algorithm>
#include <set>

#include "store/segment/segment_rewrite.h"
#include "tests/store/segment/delta_test_support.h"

using namespace siltfs;
using namespace siltfs::testing;

namespace {

constexpr SegmentId kId = 5;
constexpr uint32_t kLength = 6000;

// A sealed segment of 4 blocks with 5 chunks each, stored uncompressed. Every second chunk
// resembles a base outside of the segment; the other chunks are noise, too.
struct Sealed : TestStore {
  explicit Sealed(const Compression& compression = kPlain) {
    auto writer = Create(kId);
    for (uint64_t i = 0; i < 4; ++i) {
      std::vector<TestChunk> chunks;
      for (uint64_t k = 0; k < 5; ++k) {
        const uint64_t n = 5 * i + k;
        const TestChunk base = MakeChunk(500 + n / 3, kLength, false);  // some bases serve twice
        if (n % 2 == 1) outside.push_back(base);
        chunks.push_back(n % 2 == 1 ? MakeSimilar(base, 700 + n) : MakeChunk(n + 1, 3000, false));
      }
      REQUIRE_OK(writer->Append(Encode(codec, chunks, compression), 1000 + i, 8));
      all.insert(all.end(), chunks.begin(), chunks.end());
    }
    REQUIRE_OK(writer->Seal());
    bytes = FileBytes(kId);
  }
  // Lets the chooser offer the base of each resembling chunk.
  void OfferAll() {
    for (size_t n = 1; n < all.size(); n += 2) chooser.Offer(all[n], outside[n / 2]);
  }

  Result<PreparedRewrite> Prepare(uint32_t block_plain_bytes = 50000) {
    return Prepare(RewriteOptions{.compression = kZstd3,
                                  .block_plain_bytes = block_plain_bytes,
                                  .bases = &bases,
                                  .chooser = &chooser});
  }
  Result<PreparedRewrite> Prepare(const RewriteOptions& options) {
    return PrepareRewrite(env, path, segments, Identity(kId), codec, options);
  }
  bool HasTemporary() { return !Must(ListSegments(env, path)).temporaries.empty(); }

  // The segment has every chunk at its ordinal. Returns the ordinals of the deltas.
  std::set<size_t> RequireAll() {
    std::set<size_t> deltas;
    auto reader = Open(kId);
    const SegmentFooter footer = Must(reader->ReadFooter());
    REQUIRE(footer.chunks.size() == all.size());
    std::set<BaseRef> used;
    size_t ordinal = 0;
    for (const BlockPlace& place : footer.blocks) {
      REQUIRE(place.first_ordinal == ordinal);
      const auto block = Must(reader->ReadBlock(place.block_offset, kUsualBlockBytes, &bases));
      for (const DeltaBase& delta : block->bases()) {
        deltas.insert(ordinal + delta.position);
        used.insert(delta.base);
      }
      CHECK(Must(reader->ReadDeltaBases(place.block_offset)) == block->bases());
      for (size_t i = 0; i < block->chunk_count(); ++i, ++ordinal) {
        CHECK(block->records()[i] == all[ordinal].record);
        CHECK(AsText(block->chunk(i)) == AsText(all[ordinal].bytes));
      }
    }
    REQUIRE(ordinal == all.size());
    CHECK(footer.bases == std::vector<BaseRef>(used.begin(), used.end()));
    CHECK(Must(reader->ReadBaseTable()) == footer.bases);
    return deltas;
  }

  std::vector<TestChunk> all;      // by ordinal
  std::vector<TestChunk> outside;  // the bases of the chunks 1, 3, 5, ...
  std::string bytes;
  MemoryBases bases;
  ListedBases chooser{bases};
};

const std::set<size_t> kOddOrdinals = {1, 3, 5, 7, 9, 11, 13, 15, 17, 19};

}  // namespace

TEST_CASE("Chunks become deltas against the offered bases") {
  Sealed store;
  store.OfferAll();
  const PreparedRewrite prepared = Must(store.Prepare());
  REQUIRE(prepared.worthwhile);
  CHECK(prepared.deltas == 10);
  CHECK(prepared.delta_saved_bytes > 10 * (kLength - 200));
  CHECK(prepared.delta_saved_bytes < 10 * kLength);
  CHECK(prepared.after.base_count == 7);
  CHECK(prepared.after.file_size() < store.bytes.size() - 10 * (kLength - 300));
  CHECK(store.FileBytes(kId) == store.bytes);
  REQUIRE_OK(store.Install(kId));
  store.env.PowerCut();
  CHECK(store.RequireAll() == kOddOrdinals);
  CHECK(Must(store.Open(kId)->ReadTrailer()) == prepared.after);
  CHECK(store.FileBytes(kId).size() == prepared.after.file_size());
}

TEST_CASE("Without offers a segment has no delta and a footer of version 1") {
  Sealed store;
  const bool with_chooser = GENERATE(true, false);
  for (size_t i = 0; i < store.all.size(); ++i) store.bases.Add(store.all[i]);
  RewriteOptions options{.compression = kZstd3, .block_plain_bytes = 50000};
  if (with_chooser) {
    options.bases = &store.bases;
    options.chooser = &store.chooser;
  }
  const PreparedRewrite prepared = Must(store.Prepare(options));
  CHECK(prepared.deltas == 0);
  CHECK(prepared.after.base_count == 0);
}

TEST_CASE("A rewrite without compression makes no deltas") {
  Sealed store;
  store.OfferAll();
  const PreparedRewrite prepared = Must(store.Prepare(
      RewriteOptions{.compression = kPlain, .bases = &store.bases, .chooser = &store.chooser}));
  CHECK(prepared.deltas == 0);
  CHECK(prepared.after.base_count == 0);
}

TEST_CASE("A chunk becomes a delta only if that takes less than 7/8 of its old share") {
  // The second half of the chunk is new, and the share of the chunk in the old block is its length.
  // The frame takes some bytes more than the new part.
  for (const uint32_t fresh :
       {5000u, 5100u, 5150u, 5180u, 5190u, 5200u, 5210u, 5220u, 5250u, 5400u}) {
    TestStore store;
    const TestChunk base = MakeChunk(1, kLength, false);
    TestChunk chunk = MakeChunk(2, kLength, false);
    std::copy_n(base.bytes.begin(), kLength - fresh, chunk.bytes.begin());
    const TestChunk zeros = MakeChunk(3, 90000, false);
    auto writer = store.Create(kId);
    REQUIRE_OK(writer->Append(Encode(store.codec, {chunk}, kPlain), 1, 8));
    TestChunk compressible = zeros;
    std::fill(compressible.bytes.begin(), compressible.bytes.end(), uint8_t{0});
    REQUIRE_OK(writer->Append(Encode(store.codec, {compressible}, kPlain), 2, 8));
    REQUIRE_OK(writer->Seal());
    MemoryBases bases;
    ListedBases chooser(bases);
    chooser.Offer(chunk, base);
    const size_t frame = Must(store.codec.EncodeDelta(chunk.bytes, base.bytes, 3, kLength)).size();
    const PreparedRewrite prepared = Must(PrepareRewrite(
        store.env, store.path, store.segments, store.Identity(kId), store.codec,
        {.compression = kZstd3, .block_plain_bytes = 5000, .bases = &bases, .chooser = &chooser}));
    REQUIRE(prepared.worthwhile);
    CAPTURE(fresh, frame);
    CHECK((prepared.deltas == 1) == (8 * (frame + 40) < 7 * kLength));
    CHECK(prepared.delta_saved_bytes == (prepared.deltas == 1 ? kLength - frame - 40 : 0));
  }
}

TEST_CASE("A compressed chunk's share of the old block is its compressed size") {
  // The old block is compressed to about a quarter; the delta saves less than that.
  TestStore store;
  const TestChunk base = MakeChunk(1, 20000);
  TestChunk chunk = MakeSimilar(base, 2, 0);
  const TestChunk fresh = MakeChunk(3, 19000);
  std::copy(fresh.bytes.begin(), fresh.bytes.end(), chunk.bytes.begin());
  auto writer = store.Create(kId);
  REQUIRE_OK(writer->Append(Encode(store.codec, {chunk}), 1, 8));
  TestChunk zeros = MakeChunk(4, 90000);
  std::fill(zeros.bytes.begin(), zeros.bytes.end(), uint8_t{0});
  REQUIRE_OK(writer->Append(Encode(store.codec, {zeros}, kPlain), 2, 8));
  REQUIRE_OK(writer->Seal());
  MemoryBases bases;
  ListedBases chooser(bases);
  chooser.Offer(chunk, base);
  const PreparedRewrite prepared = Must(PrepareRewrite(
      store.env, store.path, store.segments, store.Identity(kId), store.codec,
      {.compression = kZstd3, .block_plain_bytes = 5000, .bases = &bases, .chooser = &chooser}));
  REQUIRE(prepared.worthwhile);
  CHECK(prepared.deltas == 0);
}

TEST_CASE("Of several offered bases the one with the smallest delta is used") {
  Sealed store;
  const TestChunk worse = MakeSimilar(store.outside[0], 900, 200);
  const TestChunk noise = MakeChunk(901, kLength, false);
  const bool best_first = GENERATE(true, false);
  if (best_first) store.chooser.Offer(store.all[1], store.outside[0]);
  store.chooser.Offer(store.all[1], worse);
  store.chooser.Offer(store.all[1], noise);
  if (!best_first) store.chooser.Offer(store.all[1], store.outside[0]);
  REQUIRE(Must(store.Prepare()).deltas == 1);
  REQUIRE_OK(store.Install(kId));
  CHECK(store.RequireAll() == std::set<size_t>{1});
  CHECK(Must(store.Open(kId)->ReadBaseTable()) == std::vector<BaseRef>{RefOf(store.outside[0])});
}

TEST_CASE("No chunk of a segment becomes both a base and a delta") {
  TestStore store;
  const TestChunk outside = MakeChunk(1, kLength, false);
  const TestChunk a = MakeSimilar(outside, 2);
  const TestChunk b = MakeSimilar(outside, 3);
  const TestChunk c = MakeSimilar(outside, 4);
  const bool one_block = GENERATE(true, false);
  auto writer = store.Create(kId);
  if (one_block) {
    REQUIRE_OK(writer->Append(Encode(store.codec, {a, b, c}, kPlain), 1, 8));
  } else {
    REQUIRE_OK(writer->Append(Encode(store.codec, {a}, kPlain), 1, 8));
    REQUIRE_OK(writer->Append(Encode(store.codec, {b}, kPlain), 2, 8));
    REQUIRE_OK(writer->Append(Encode(store.codec, {c}, kPlain), 3, 8));
  }
  REQUIRE_OK(writer->Seal());
  MemoryBases bases;
  ListedBases chooser(bases);
  uint32_t expected = 0;
  SECTION("a base inside of the segment stays whole") {
    chooser.Offer(a, b);
    chooser.Offer(b, outside);
    chooser.Offer(c, b);
    expected = 2;
  }
  SECTION("a delta is no base") {
    chooser.Offer(a, outside);
    chooser.Offer(b, a);
    chooser.Offer(c, b);
    expected = 2;  // b is whole after that, and c may depend on it
  }
  SECTION("a circle") {
    chooser.Offer(a, b);
    chooser.Offer(b, c);
    chooser.Offer(c, a);
    expected = 1;  // a; b is its base, and a is no base of c
  }
  SECTION("a chunk is not its own base") {
    chooser.Offer(a, a);
    chooser.Offer(b, outside);
    expected = 1;
  }
  const PreparedRewrite prepared =
      Must(PrepareRewrite(store.env, store.path, store.segments, store.Identity(kId), store.codec,
                          {.compression = kZstd3, .bases = &bases, .chooser = &chooser}));
  REQUIRE(prepared.worthwhile);
  CHECK(prepared.deltas == expected);
  REQUIRE_OK(store.Install(kId));
  auto reader = store.Open(kId);
  std::set<ChunkName> deltas;
  for (const BlockPlace& place : Must(reader->ReadFooter()).blocks) {
    const auto block = Must(reader->ReadBlock(place.block_offset));
    for (const DeltaBase& delta : block->bases())
      deltas.insert(block->records()[delta.position].name);
  }
  CHECK(deltas.size() == expected);
  for (const BaseRef& base : Must(reader->ReadBaseTable())) CHECK_FALSE(deltas.contains(base.name));
}

TEST_CASE("A segment with deltas is rewritten again and keeps them") {
  Sealed store;
  store.OfferAll();
  REQUIRE(Must(store.Prepare(10000)).deltas == 10);
  REQUIRE_OK(store.Install(kId));
  const size_t blocks = Must(store.Open(kId)->ReadFooter()).blocks.size();
  store.chooser.offers.clear();
  const bool with_chooser = GENERATE(true, false);
  const PreparedRewrite again =
      Must(store.Prepare(RewriteOptions{.compression = kZstd3,
                                        .block_plain_bytes = 1U << 20,
                                        .bases = &store.bases,
                                        .chooser = with_chooser ? &store.chooser : nullptr}));
  CHECK(again.after.base_count == 7);
  CHECK(blocks > 1);
  if (!again.worthwhile) return;
  CHECK(again.deltas == 10);
  REQUIRE_OK(store.Install(kId));
  CHECK(store.RequireAll() == kOddOrdinals);
}

TEST_CASE("A chunk that becomes a delta is no longer the base of an old delta") {
  // Chunk 0 is a base of chunk 1 in the old segment. Then chunk 0 gets a base of its own.
  TestStore store;
  const TestChunk outside = MakeChunk(1, 20000, false);
  const TestChunk a = MakeSimilar(outside, 2);
  const TestChunk b = MakeSimilar(a, 3);
  auto writer = store.Create(kId);
  REQUIRE_OK(writer->Append(Encode(store.codec, {a, b}, kPlain), 1, 8));
  const TestChunk zeros = MakeSimilar(outside, 4, 0);
  REQUIRE_OK(writer->Seal());
  MemoryBases bases;
  ListedBases chooser(bases);
  chooser.Offer(b, a);
  const RewriteOptions options{.compression = kZstd3, .bases = &bases, .chooser = &chooser};
  REQUIRE(Must(PrepareRewrite(store.env, store.path, store.segments, store.Identity(kId),
                              store.codec, options))
              .deltas == 1);
  REQUIRE_OK(store.Install(kId));
  chooser.offers.clear();
  chooser.Offer(a, outside);
  // The old delta comes first, so its base stays whole.
  const PreparedRewrite again = Must(PrepareRewrite(store.env, store.path, store.segments,
                                                    store.Identity(kId), store.codec, options));
  CHECK_FALSE(again.worthwhile);
  CHECK(again.after.base_count == 1);
}

TEST_CASE("A rewrite needs a source of bases for deltas") {
  Sealed store;
  store.OfferAll();
  REQUIRE_CODE(store.Prepare(RewriteOptions{.compression = kZstd3, .chooser = &store.chooser}),
               kInvalidArgument);
  REQUIRE(Must(store.Prepare()).worthwhile);
  REQUIRE_OK(store.Install(kId));
  REQUIRE_CODE(store.Prepare(RewriteOptions{.compression = kZstd3}), kInvalidArgument);
  CHECK_FALSE(store.HasTemporary());
}

TEST_CASE("A failing chooser ends the rewrite without a new file") {
  const auto code = GENERATE(StatusCode::kInterrupted, StatusCode::kNoSpace, StatusCode::kIoError);
  Sealed store;
  store.OfferAll();
  store.chooser.failure = Status(code, "stop");
  const auto prepared = store.Prepare();
  REQUIRE_FALSE(prepared.ok());
  CHECK(prepared.status().Is(code));
  CHECK_FALSE(store.HasTemporary());
  CHECK(store.FileBytes(kId) == store.bytes);
}

TEST_CASE("An offer that does not fit its chunk or its name is a bug of the chooser") {
  Sealed store;
  struct Wrong : BaseChooser {
    Status Choose(const DecodedBlock& block, const BaseChooser::Offer& offer) override {
      return offer(position == SIZE_MAX ? block.chunk_count() : position, base, bytes);
    }
    size_t position = 1;
    BaseRef base;
    Bytes bytes;
  } chooser;
  chooser.base = RefOf(store.outside[0]);
  chooser.bytes = store.outside[0].bytes;
  SECTION("no such chunk") { chooser.position = SIZE_MAX; }
  SECTION("another length") { chooser.bytes.pop_back(); }
  SECTION("no bytes") {
    chooser.base.length = 0;
    chooser.bytes.clear();
  }
  REQUIRE_CODE(store.Prepare(RewriteOptions{
                   .compression = kZstd3, .bases = &store.bases, .chooser = &chooser}),
               kInvalidArgument);
  CHECK_FALSE(store.HasTemporary());
}

TEST_CASE("A base that is gone or differs when the new file is read back stops the rewrite") {
  Sealed store;
  store.OfferAll();
  auto expected = StatusCode::kCorruption;
  const BaseRef base = RefOf(store.outside[4]);
  struct Changing : BaseChooser {
    Status Choose(const DecodedBlock& block, const BaseChooser::Offer& offer) override {
      SILTFS_RETURN_IF_ERROR(chooser->Choose(block, offer));
      change();
      return Status::Ok();
    }
    ListedBases* chooser = nullptr;
    std::function<void()> change;
  } chooser;
  chooser.chooser = &store.chooser;
  const TestChunk other = MakeChunk(1234, kLength, false);
  SECTION("gone") {
    expected = StatusCode::kNotFound;
    chooser.change = [&] { store.bases.failures[base] = StatusCode::kNotFound; };
  }
  SECTION("a failing device") {
    expected = StatusCode::kIoError;
    chooser.change = [&] { store.bases.failures[base] = StatusCode::kIoError; };
  }
  SECTION("other bytes") {
    // The chooser's offers come from the same map, so only the last call changes it.
    chooser.change = [&, calls = 0]() mutable {
      if (++calls == 4) store.bases.bases[base] = other.bytes;
    };
  }
  const auto prepared = store.Prepare(
      RewriteOptions{.compression = kZstd3, .bases = &store.bases, .chooser = &chooser});
  REQUIRE_FALSE(prepared.ok());
  CHECK(prepared.status().Is(expected));
  CHECK_FALSE(store.HasTemporary());
  CHECK(store.FileBytes(kId) == store.bytes);
}

TEST_CASE("A segment that lacks a base is not rewritten") {
  Sealed store;
  store.OfferAll();
  REQUIRE(Must(store.Prepare()).worthwhile);
  REQUIRE_OK(store.Install(kId));
  const auto code = GENERATE(StatusCode::kIoError, StatusCode::kNotFound);
  store.bases.failures[RefOf(store.outside[4])] = code;
  const auto prepared = store.Prepare();
  REQUIRE_FALSE(prepared.ok());
  CHECK(prepared.status().Is(code));
  CHECK_FALSE(store.HasTemporary());
}

TEST_CASE("A rewrite with deltas that is stopped at any step leaves no new file") {
  Sealed store;
  store.OfferAll();
  int steps = 0;
  for (int stop_at = 0;; ++stop_at) {
    steps = 0;
    RewriteOptions options{
        .compression = kZstd3,
        .block_plain_bytes = 50000,
        .pace =
            [&](uint64_t) {
              return steps++ == stop_at ? Status(StatusCode::kInterrupted, "stop") : Status::Ok();
            },
        .bases = &store.bases,
        .chooser = &store.chooser};
    const auto prepared = store.Prepare(options);
    if (prepared.ok()) break;
    REQUIRE_CODE(prepared, kInterrupted);
    REQUIRE_FALSE(store.HasTemporary());
  }
  CHECK(steps >= 1 + 4 + 1);
}

TEST_CASE("Every flipped byte of a segment with deltas is detected, and costs at most its block") {
  Sealed store;
  store.OfferAll();
  REQUIRE(Must(store.Prepare(20000)).worthwhile);
  REQUIRE_OK(store.Install(kId));
  const std::string whole = store.FileBytes(kId);
  const SegmentFooter footer = Must(store.Open(kId)->ReadFooter());
  const size_t step = whole.size() / 397 + 1;
  for (size_t offset = 0; offset < whole.size(); offset += step) {
    CAPTURE(offset);
    store.FlipByte(kId, offset);
    auto reader = store.Open(kId);
    const bool in_footer = offset >= footer.trailer.data_end;
    REQUIRE(reader->ReadFooter().ok() != in_footer);
    const uint64_t table = footer.trailer.base_table_offset();
    const bool in_base_table = offset >= table;  // or in the trailer
    const auto bases = reader->ReadBaseTable();
    REQUIRE(bases.ok() != in_base_table);
    // Without its magic number the trailer looks like no trailer.
    if (!bases.ok()) {
      CHECK((bases.status().Is(StatusCode::kCorruption) ||
             bases.status().Is(StatusCode::kInvalidArgument)));
    }
    size_t bad = 0;
    for (const BlockPlace& place : footer.blocks) {
      const auto block = reader->ReadBlock(place.block_offset, kUsualBlockBytes, &store.bases);
      bad += block.ok() ? 0 : 1;
    }
    REQUIRE(bad == (in_footer || offset < kSegmentHeaderSize ? 0 : 1));
    store.SetFileBytes(kId, whole);
  }
}

TEST_CASE("The base table costs one read once the trailer was read") {
  Sealed store;
  store.OfferAll();
  REQUIRE(Must(store.Prepare()).worthwhile);
  REQUIRE_OK(store.Install(kId));
  auto reader = store.Open(kId);
  REQUIRE_OK(reader->ReadTrailer());
  const uint64_t before = store.env.Calls(SimCall::kRead);
  REQUIRE_OK(reader->ReadBaseTable());
  CHECK(store.env.Calls(SimCall::kRead) == before + 1);
}

TEST_CASE("A block with deltas is copied only to a segment that is rewritten") {
  Sealed store;
  store.OfferAll();
  REQUIRE(Must(store.Prepare()).worthwhile);
  REQUIRE_OK(store.Install(kId));
  auto reader = store.Open(kId);
  const EncodedBlock block = Must(reader->ReadEncodedBlock(kSegmentHeaderSize));
  CHECK(block.codec == BlockCodecId::kZstdDelta);
  auto writer = store.Create(kId + 1);
  REQUIRE_CODE(writer->Append(block, 1, 1), kInvalidArgument);
  // An open segment with such a block is not resumed, because nothing wrote it so.
  const std::string whole = store.FileBytes(kId);
  const uint64_t data_end = Must(reader->ReadTrailer()).data_end;
  store.SetFileBytes(kId, whole.substr(0, data_end));
  REQUIRE_CODE(SegmentWriter::Resume(store.env, store.path, store.Identity(kId), data_end),
               kCorruption);
}
