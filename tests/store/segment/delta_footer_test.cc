// The footer of a segment with deltas: version 2, with a table of bases.
#include <algorithm>

#include "store/base/checksum.h"
#include "store/segment/segment_footer.h"
#include "tests/store/segment/delta_test_support.h"

using namespace siltfs;
using namespace siltfs::testing;

namespace {

const SegmentIdentity kIdentity{TestUuid(), 0x01020304};
constexpr uint64_t kDataEnd = 3064;

// Six chunks in two blocks; `bases` bases, which are added out of order and repeatedly.
SegmentFooter MakeFooter(size_t bases) {
  SegmentFooter footer;
  std::vector<ChunkRecord> records;
  for (const TestChunk& chunk : MakeChunks(1, {10, 20, 65536})) records.push_back(chunk.record);
  footer.Add({64, 0}, records, 5, 64 + 1000);
  footer.Add({1064, 3}, records, 9, kDataEnd);
  std::vector<DeltaBase> deltas;
  for (size_t i = 0; i < bases; ++i)
    deltas.push_back({static_cast<uint32_t>(i), RefOf(MakeChunk(50 + i, 100))});
  footer.AddBases(deltas);
  std::reverse(deltas.begin(), deltas.end());
  footer.AddBases(deltas);
  return footer;
}

Result<SegmentFooter> Decode(const std::string& bytes) {
  SILTFS_ASSIGN_OR_RETURN(const SegmentTrailer trailer,
                          DecodeSegmentTrailer(AsBytes(bytes).last(kSegmentTrailerSize), kIdentity,
                                               kDataEnd + bytes.size()));
  return DecodeSegmentFooter(trailer, AsBytes(bytes).first(bytes.size() - kSegmentTrailerSize),
                             kIdentity);
}

// The footer after a change of its bytes, with valid checksums.
std::string Forge(std::string bytes, const std::vector<BaseRef>& bases) {
  SegmentFooter footer = MakeFooter(0);
  const std::string plain = EncodeSegmentFooter(footer, kIdentity);
  const size_t tables = plain.size() - kSegmentTrailerSize;
  Encoder table;
  for (const BaseRef& base : bases) EncodeBaseRef(base, table);
  Encoder out;
  out.Raw(std::string_view(plain).substr(0, tables))
      .Raw(table.view())
      .U64(Checksum(table.view(), kIdentity.ChecksumSeed()));
  const uint64_t tables_checksum = Checksum(out.view(), kIdentity.ChecksumSeed());
  Encoder trailer;
  trailer.Raw(std::string_view(bytes).substr(bytes.size() - kSegmentTrailerSize, 48))
      .U64(tables_checksum);
  trailer.U64(Checksum(trailer.view(), kIdentity.ChecksumSeed()));
  return out.Take() + trailer.Take();
}

}  // namespace

TEST_CASE("A footer with bases is decoded as it was encoded") {
  for (const size_t count : {1u, 2u, 6u}) {
    SegmentFooter footer = MakeFooter(count);
    const std::string bytes = EncodeSegmentFooter(footer, kIdentity);
    CHECK(footer.bases.size() == count);
    CHECK(std::is_sorted(footer.bases.begin(), footer.bases.end()));
    CHECK(bytes.size() == 6 * kFooterChunkSize + 2 * kFooterBlockSize + count * kBaseRefSize +
                              kBaseTableChecksumSize + kSegmentTrailerSize);
    CHECK(bytes[bytes.size() - kSegmentTrailerSize + 8] == 2);
    const SegmentFooter back = Must(Decode(bytes));
    CHECK(back.trailer == footer.trailer);
    CHECK(back.trailer.base_count == count);
    CHECK(back.trailer.file_size() == kDataEnd + bytes.size());
    CHECK(back.chunks == footer.chunks);
    CHECK(back.blocks == footer.blocks);
    CHECK(back.bases == footer.bases);
  }
}

TEST_CASE("A footer without bases has version 1 and no other bytes") {
  SegmentFooter footer = MakeFooter(0);
  const std::string bytes = EncodeSegmentFooter(footer, kIdentity);
  CHECK(bytes.size() == 6 * kFooterChunkSize + 2 * kFooterBlockSize + kSegmentTrailerSize);
  CHECK(bytes[bytes.size() - kSegmentTrailerSize + 8] == 1);
  CHECK(Must(Decode(bytes)).bases.empty());
}

TEST_CASE("Every byte of a footer with bases is covered by a checksum") {
  SegmentFooter footer = MakeFooter(3);
  const std::string bytes = EncodeSegmentFooter(footer, kIdentity);
  for (size_t i = 0; i < bytes.size(); ++i) {
    CAPTURE(i);
    std::string flipped = bytes;
    flipped[i] = static_cast<char>(flipped[i] ^ 1);
    REQUIRE_CODE(Decode(flipped), kCorruption);
  }
}

TEST_CASE("The base table is verified without the other tables") {
  SegmentFooter footer = MakeFooter(3);
  const std::string bytes = EncodeSegmentFooter(footer, kIdentity);
  const SegmentTrailer& trailer = footer.trailer;
  Bytes table(bytes.begin() + static_cast<std::ptrdiff_t>(trailer.base_table_offset() - kDataEnd),
              bytes.end() - kSegmentTrailerSize);
  REQUIRE(table.size() == trailer.base_table_bytes());
  CHECK(Must(DecodeBaseTable(trailer, table, kIdentity)) == footer.bases);
  REQUIRE_CODE(DecodeBaseTable(trailer, table, {TestUuid(2), kIdentity.id}), kCorruption);
  REQUIRE_CODE(DecodeBaseTable(trailer, ByteView(table).first(table.size() - 1), kIdentity),
               kCorruption);
  for (size_t i = 0; i < table.size(); ++i) {
    table[i] ^= 4;
    REQUIRE_CODE(DecodeBaseTable(trailer, table, kIdentity), kCorruption);
    table[i] ^= 4;
  }
}

TEST_CASE("A base table of an impossible size is refused") {
  SegmentFooter footer = MakeFooter(2);
  const std::string bytes = EncodeSegmentFooter(footer, kIdentity);
  const ByteView trailer = AsBytes(bytes).last(kSegmentTrailerSize);
  const uint64_t size = kDataEnd + bytes.size();
  CHECK(Must(DecodeSegmentTrailer(trailer, kIdentity, size)).base_count == 2);
  // A file with another whole number of bases fits the trailer. Its tables do not have the
  // checksum.
  CHECK(Must(DecodeSegmentTrailer(trailer, kIdentity, size - kBaseRefSize)).base_count == 1);
  CHECK(Must(DecodeSegmentTrailer(trailer, kIdentity, size + 4 * kBaseRefSize)).base_count == 6);
  REQUIRE_CODE(DecodeSegmentTrailer(trailer, kIdentity, size - 2 * kBaseRefSize), kCorruption);
  REQUIRE_CODE(
      DecodeSegmentTrailer(trailer, kIdentity, size - 2 * kBaseRefSize - kBaseTableChecksumSize),
      kCorruption);
  REQUIRE_CODE(DecodeSegmentTrailer(trailer, kIdentity, size + 1), kCorruption);
  REQUIRE_CODE(DecodeSegmentTrailer(trailer, kIdentity, size - 1), kCorruption);
  REQUIRE_CODE(DecodeSegmentTrailer(trailer, kIdentity, 0), kCorruption);
  REQUIRE_CODE(DecodeSegmentTrailer(trailer, kIdentity, UINT64_MAX), kCorruption);
  // More bases than chunks.
  REQUIRE_CODE(DecodeSegmentTrailer(trailer, kIdentity, size + 5 * kBaseRefSize), kCorruption);
}

TEST_CASE("A base table that no writer produces is refused even with valid checksums") {
  SegmentFooter footer = MakeFooter(3);
  const std::string bytes = EncodeSegmentFooter(footer, kIdentity);
  const std::vector<BaseRef>& bases = footer.bases;
  CHECK(Must(Decode(Forge(bytes, bases))).bases == bases);
  REQUIRE_CODE(Decode(Forge(bytes, {bases[1], bases[0]})), kCorruption);
  REQUIRE_CODE(Decode(Forge(bytes, {bases[0], bases[0]})), kCorruption);
  for (const uint32_t length : {0u, kMaxBlockPlainBytes + 1, UINT32_MAX}) {
    BaseRef base = bases[0];
    base.length = length;
    REQUIRE_CODE(Decode(Forge(bytes, {base})), kCorruption);
  }
  REQUIRE_CODE(Decode(Forge(bytes, {})), kCorruption);
}

TEST_CASE("The bound of a lost footer's blocks holds with a base table") {
  SegmentFooter footer = MakeFooter(6);
  const std::string bytes = EncodeSegmentFooter(footer, kIdentity);
  CHECK(LastDataEnd(kDataEnd + bytes.size(), 6) >= kDataEnd);
}
