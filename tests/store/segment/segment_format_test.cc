// The bytes of headers, heads and footers, and the refusals of their decoders.
#include "store/segment/segment_format.h"

#include "store/base/checksum.h"
#include "store/segment/block_head.h"
#include "store/segment/segment_footer.h"
#include "tests/store/segment/segment_test_support.h"

using namespace siltfs;
using namespace siltfs::testing;

namespace {

const SegmentIdentity kIdentity{TestUuid(), 0x01020304};

BlockHead MakeHead() {
  BlockHead head;
  head.codec = BlockCodecId::kZstd;
  head.first_ordinal = 17;
  head.segment = kIdentity.id;
  head.sequence = (uint64_t{3} << 40) + 5;
  head.last_commit = 99;
  head.payload_checksum = 0x1122334455667788;
  for (const TestChunk& chunk : MakeChunks(1, {10, 20, 65536})) {
    head.records.push_back(chunk.record);
    head.plain_bytes += chunk.record.length;
  }
  head.payload_bytes = 1234;
  return head;
}

SegmentFooter MakeFooter() {
  SegmentFooter footer;
  footer.trailer.kind = SegmentKind::kRecipeNodes;
  auto records = MakeHead().records;
  footer.Add({64, 0}, records, 5, 64 + 1000);
  footer.Add({1064, 3}, records, 9, 2064);
  return footer;
}

std::string Flip(std::string bytes, size_t i, uint8_t mask = 1) {
  bytes[i] = static_cast<char>(bytes[i] ^ mask);
  return bytes;
}

// A header in which one byte has a value that this code does not write, but with a valid checksum.
std::string WithByte(std::string header, size_t offset, uint8_t value) {
  header[offset] = static_cast<char>(value);
  uint64_t checksum = Checksum(AsBytes(header).first(56));
  for (size_t i = 0; i < 8; ++i) header[56 + i] = static_cast<char>(checksum >> (8 * i));
  return header;
}

Result<SegmentTrailer> DecodeTrailerOf(const std::string& footer, uint64_t data_end) {
  return DecodeSegmentTrailer(AsBytes(footer).last(kSegmentTrailerSize), kIdentity,
                              data_end + footer.size());
}

}  // namespace

TEST_CASE("A segment header is decoded as it was encoded") {
  SegmentHeader header{SegmentKind::kRecipeNodes, kIdentity, 0xabcdef};
  std::string bytes = EncodeSegmentHeader(header);
  REQUIRE(bytes.size() == kSegmentHeaderSize);
  CHECK(Must(DecodeSegmentHeader(AsBytes(bytes))) == header);
}

TEST_CASE("Every byte of a segment header is covered by its checksum") {
  std::string bytes = EncodeSegmentHeader({SegmentKind::kData, kIdentity, 1});
  for (size_t i = 0; i < bytes.size(); ++i) {
    CAPTURE(i);
    REQUIRE_CODE(DecodeSegmentHeader(AsBytes(Flip(bytes, i))), kCorruption);
  }
  for (size_t size = 0; size < bytes.size(); ++size) {
    REQUIRE_CODE(DecodeSegmentHeader(AsBytes(bytes).first(size)), kCorruption);
  }
}

TEST_CASE("A segment header of another version or kind needs another siltfs") {
  std::string bytes = EncodeSegmentHeader({SegmentKind::kData, kIdentity, 1});
  REQUIRE_CODE(DecodeSegmentHeader(AsBytes(WithByte(bytes, 8, 2))), kNeedsNewer);
  REQUIRE_CODE(DecodeSegmentHeader(AsBytes(WithByte(bytes, 12, 2))), kNeedsNewer);
}

TEST_CASE("A block head is decoded as it was encoded") {
  BlockHead head = MakeHead();
  std::string bytes = EncodeBlockHead(head, kIdentity);
  REQUIRE(bytes.size() == head.head_bytes());
  CHECK(Must(BlockHeadSize(AsBytes(bytes).first(kBlockHeaderSize))) == bytes.size());
  CHECK(Must(DecodeBlockHead(AsBytes(bytes), kIdentity)) == head);
}

TEST_CASE("Every byte of a block head is covered by its checksum") {
  std::string bytes = EncodeBlockHead(MakeHead(), kIdentity);
  for (size_t i = 0; i < bytes.size(); ++i) {
    CAPTURE(i);
    REQUIRE_CODE(DecodeBlockHead(AsBytes(Flip(bytes, i)), kIdentity), kCorruption);
  }
  for (size_t size = 0; size < bytes.size(); ++size) {
    REQUIRE_CODE(DecodeBlockHead(AsBytes(bytes).first(size), kIdentity), kCorruption);
  }
}

TEST_CASE("A block head of another store or segment is not accepted") {
  std::string bytes = EncodeBlockHead(MakeHead(), kIdentity);
  REQUIRE_CODE(DecodeBlockHead(AsBytes(bytes), {TestUuid(2), kIdentity.id}), kCorruption);
  REQUIRE_CODE(DecodeBlockHead(AsBytes(bytes), {TestUuid(), kIdentity.id + 1}), kCorruption);
}

TEST_CASE("A block head that no writer produces is refused even with a valid checksum") {
  auto refused = [](auto change) {
    BlockHead head = MakeHead();
    change(head);
    REQUIRE_CODE(DecodeBlockHead(AsBytes(EncodeBlockHead(head, kIdentity)), kIdentity),
                 kCorruption);
  };
  refused([](BlockHead& head) { head.plain_bytes += 1; });
  refused([](BlockHead& head) { head.payload_bytes = head.plain_bytes; });
  refused([](BlockHead& head) { head.payload_bytes = 0; });
  refused([](BlockHead& head) { head.codec = BlockCodecId::kNone; });
  refused([](BlockHead& head) { head.first_ordinal = kMaxSegmentChunks - 2; });
  refused([](BlockHead& head) {
    head.plain_bytes -= head.records[0].length;
    head.records[0].length = 0;
  });
  refused([](BlockHead& head) {
    head.plain_bytes += kMaxBlockPlainBytes;
    head.records[0].length += kMaxBlockPlainBytes;
  });
}

TEST_CASE("A block with an unknown codec needs another siltfs") {
  BlockHead head = MakeHead();
  head.codec = static_cast<BlockCodecId>(3);
  REQUIRE_CODE(DecodeBlockHead(AsBytes(EncodeBlockHead(head, kIdentity)), kIdentity), kNeedsNewer);
}

TEST_CASE("A payload is checked against its length and checksum") {
  Bytes payload(1000, 7);
  BlockHead head = MakeHead();
  head.payload_bytes = 1000;
  head.payload_checksum = Checksum(payload);
  REQUIRE_OK(CheckPayload(head, payload));
  REQUIRE_CODE(CheckPayload(head, ByteView(payload).first(999)), kCorruption);
  payload[500] ^= 1;
  REQUIRE_CODE(CheckPayload(head, payload), kCorruption);
}

TEST_CASE("A footer is decoded as it was encoded") {
  SegmentFooter footer = MakeFooter();
  std::string bytes = EncodeSegmentFooter(footer, kIdentity);
  CHECK(bytes.size() == 6 * kFooterChunkSize + 2 * kFooterBlockSize + kSegmentTrailerSize);
  SegmentTrailer trailer = Must(DecodeTrailerOf(bytes, 2064));
  CHECK(trailer == footer.trailer);
  CHECK(trailer.chunk_count == 6);
  CHECK(trailer.block_count == 2);
  CHECK(trailer.first_sequence == 5);
  CHECK(trailer.last_sequence == 9);
  CHECK(trailer.plain_bytes == 2 * (10 + 20 + 65536));
  ByteView tables = AsBytes(bytes).first(bytes.size() - kSegmentTrailerSize);
  SegmentFooter back = Must(DecodeSegmentFooter(trailer, tables, kIdentity));
  CHECK(back.chunks == footer.chunks);
  CHECK(back.blocks == footer.blocks);
}

TEST_CASE("Every byte of a footer is covered by a checksum") {
  SegmentFooter footer = MakeFooter();
  std::string bytes = EncodeSegmentFooter(footer, kIdentity);
  for (size_t i = 0; i < bytes.size(); ++i) {
    CAPTURE(i);
    std::string flipped = Flip(bytes, i);
    auto trailer = DecodeTrailerOf(flipped, 2064);
    if (!trailer.ok()) {
      REQUIRE_CODE(trailer, kCorruption);
      continue;
    }
    ByteView tables = AsBytes(flipped).first(bytes.size() - kSegmentTrailerSize);
    REQUIRE_CODE(DecodeSegmentFooter(*trailer, tables, kIdentity), kCorruption);
  }
}

TEST_CASE("A footer of another store or segment, or for another file size, is not accepted") {
  SegmentFooter footer = MakeFooter();
  std::string bytes = EncodeSegmentFooter(footer, kIdentity);
  ByteView trailer = AsBytes(bytes).last(kSegmentTrailerSize);
  uint64_t file_size = 2064 + bytes.size();
  REQUIRE_OK(DecodeSegmentTrailer(trailer, kIdentity, file_size));
  REQUIRE_CODE(DecodeSegmentTrailer(trailer, {TestUuid(2), kIdentity.id}, file_size), kCorruption);
  REQUIRE_CODE(DecodeSegmentTrailer(trailer, {TestUuid(), 5}, file_size), kCorruption);
  REQUIRE_CODE(DecodeSegmentTrailer(trailer, kIdentity, file_size + 1), kCorruption);
  REQUIRE_CODE(DecodeSegmentTrailer(trailer, kIdentity, file_size - 1), kCorruption);
}

TEST_CASE("A footer with impossible counts is refused before any allocation") {
  SegmentFooter footer = MakeFooter();
  // 8 chunks need at least 256 bytes of blocks, more than data_end allows. The file size matches
  // the counts.
  footer.trailer.data_end = kSegmentHeaderSize + 100;
  std::string bytes = EncodeSegmentFooter(footer, kIdentity);
  REQUIRE_CODE(DecodeTrailerOf(bytes, footer.trailer.data_end), kCorruption);

  SegmentFooter empty;
  empty.trailer.data_end = 1000;
  bytes = EncodeSegmentFooter(empty, kIdentity);
  REQUIRE_CODE(DecodeTrailerOf(bytes, 1000), kCorruption);
}

TEST_CASE("A footer with an unordered block table is refused") {
  auto decode = [](auto change) {
    SegmentFooter footer = MakeFooter();
    change(footer);
    std::string bytes = EncodeSegmentFooter(footer, kIdentity);
    ByteView tables = AsBytes(bytes).first(bytes.size() - kSegmentTrailerSize);
    return DecodeSegmentFooter(Must(DecodeTrailerOf(bytes, 2064)), tables, kIdentity);
  };
  REQUIRE_OK(decode([](SegmentFooter&) {}));
  REQUIRE_CODE(decode([](SegmentFooter& f) { std::swap(f.blocks[0], f.blocks[1]); }), kCorruption);
  REQUIRE_CODE(decode([](SegmentFooter& f) { f.blocks[1].first_ordinal = 0; }), kCorruption);
  REQUIRE_CODE(decode([](SegmentFooter& f) { f.blocks[1].first_ordinal = 6; }), kCorruption);
  REQUIRE_CODE(decode([](SegmentFooter& f) { f.blocks[1].block_offset = 2064; }), kCorruption);
  REQUIRE_CODE(decode([](SegmentFooter& f) { f.blocks[0].block_offset = 63; }), kCorruption);
}

TEST_CASE("A footer finds the block of an ordinal") {
  SegmentFooter footer = MakeFooter();
  CHECK(footer.FindBlock(0) == BlockPlace{64, 0});
  CHECK(footer.FindBlock(2) == BlockPlace{64, 0});
  CHECK(footer.FindBlock(3) == BlockPlace{1064, 3});
  CHECK(footer.FindBlock(5) == BlockPlace{1064, 3});
  CHECK_FALSE(footer.FindBlock(6).has_value());
}

TEST_CASE("The binary search of a block table agrees with a search of all blocks") {
  // The blocks have 1 to 5 chunks of 100 bytes. After every third block, a block of 4 chunks is
  // lost.
  BlockTable table;
  std::vector<uint32_t> ends;  // end ordinals of the blocks, without lost chunks
  for (uint32_t i = 0; i < 200; ++i) {
    const uint32_t chunks = 1 + i * 7 % 5;
    table.blocks.push_back({table.data_end, table.chunk_count});
    ends.push_back(table.chunk_count + chunks);
    const uint32_t lost = i % 3 == 2 ? 4 : 0;
    table.chunk_count += chunks + lost;
    table.data_end += (chunks + lost) * 100;
  }
  for (uint32_t ordinal = 0; ordinal < table.chunk_count; ++ordinal) {
    const auto found = table.Find(ordinal);
    REQUIRE(found);
    size_t block = 0;
    while (block + 1 < table.blocks.size() && table.blocks[block + 1].first_ordinal <= ordinal)
      ++block;
    REQUIRE(found->place == table.blocks[block]);
    REQUIRE(found->end_ordinal >= ends[block]);
    REQUIRE(found->end_ordinal > ordinal);
    REQUIRE(found->bytes == (found->end_ordinal - found->place.first_ordinal) * 100);
  }
  CHECK_FALSE(table.Find(table.chunk_count));
  CHECK_FALSE(BlockTable{}.Find(0));
  // The chunks before the first block are lost. For these chunks Find returns the offset at which
  // the first block of a segment begins.
  BlockTable headless{{{1000, 5}}, 10, 2000};
  REQUIRE(headless.Find(4));
  CHECK(headless.Find(4)->place == BlockPlace{kSegmentHeaderSize, 0});
  CHECK(headless.Find(4)->end_ordinal == 5);
  // A damaged table may give wrong counts, but no impossible ones such as a negative size.
  BlockTable damaged{{{5000, 0}, {64, 3}}, 10, 70};
  CHECK(damaged.Find(1)->bytes == 0);
}

TEST_CASE("A block table takes about 8 bytes per block") {
  BlockTable table;
  table.blocks.resize(640);
  CHECK(table.memory_bytes() <= 640 * sizeof(BlockPlace) + 64);
}

TEST_CASE("Block table, footer and index slot cost at most 85 bytes per chunk") {
  constexpr double kChunksPerBlock = 13;
  constexpr double kChunksPerSegment = 4096;
  constexpr double kIndexSlot = ChunkName::kSize + Location::kEncodedSize;
  double per_chunk = kChunkTableEntrySize + kFooterChunkSize + kIndexSlot +
                     (kBlockHeaderSize + kFooterBlockSize) / kChunksPerBlock +
                     (kSegmentHeaderSize + kSegmentTrailerSize) / kChunksPerSegment;
  CHECK(kIndexSlot == 32);
  CHECK(per_chunk <= 85);
}
