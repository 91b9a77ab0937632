// Each test makes a single fault in segments and requires the check's finding.
#include <fmt/format.h>

#include <filesystem>
#include <functional>

#include "store/env/files.h"
#include "store/segment/segment_files.h"
#include "store/segment/segment_reader.h"
#include "store/segment/segment_scan.h"
#include "store/superblock/superblock.h"
#include "tests/fs/check/checked_store.h"
#include "tests/fs/core/directory_tree.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

// Segment 1 holds the data of "small" and the beginning of "large", and is sealed.
constexpr SegmentId kSegment = 1;

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
  REQUIRE(blocks.size() > 1);
  return blocks;
}

std::vector<SegmentId> Segments(CheckedStore& store) {
  auto listing = ListSegments(store.fixture().env(), store.path());
  REQUIRE_OK(listing);
  return listing->ids;
}

uint64_t SizeOf(CheckedStore& store, SegmentId id) {
  return std::filesystem::file_size(SegmentPath(store.path(), id));
}

const Finding* FindCode(const CheckOutcome& outcome, std::string_view code) {
  for (const Finding& finding : outcome.findings) {
    if (finding.code == code) return &finding;
  }
  return nullptr;
}

}  // namespace

TEST_CASE("damage in a segment is found at its place, and the damaged files are named") {
  CheckedStore store(GENERATE(IndexEngine::kSilt, IndexEngine::kMap));
  store.FillAndClose();
  const std::string path = SegmentPath(store.path(), kSegment);
  const Block block = BlocksOf(store, kSegment)[1];
  SECTION("the header: costs no chunk") {
    store.Flip(path, 40);
    const CheckOutcome outcome = store.Check(true);
    INFO(outcome.ToString());
    REQUIRE(outcome.codes() == Codes{"segment-header"});
  }
  SECTION("a block's head") {
    store.Flip(path, block.offset + 60);
    const CheckOutcome outcome = store.Check();
    INFO(outcome.ToString());
    // The index entries for the block's chunks look like stale entries, which are no finding.
    REQUIRE(outcome.codes() == Codes{"block-head", "chunk-damaged"});
    const Finding* head = FindCode(outcome, "block-head");
    REQUIRE(head->path == path);
    REQUIRE(head->offset == block.offset);
    const Finding* file = FindCode(outcome, "chunk-damaged");
    REQUIRE((file->path == "/large" || file->path == "/copy"));
    REQUIRE(file->offset > 0);
  }
  SECTION("a payload, which only a full read detects") {
    store.Flip(path, block.offset + block.head.head_bytes() + 100);
    REQUIRE(store.Check(false).findings.empty());
    const CheckOutcome outcome = store.Check(true);
    INFO(outcome.ToString());
    REQUIRE(outcome.codes() == Codes{"block-payload", "chunk-damaged"});
    const Finding* payload = FindCode(outcome, "block-payload");
    REQUIRE(payload->path == path);
    REQUIRE(payload->offset == block.offset);
    // Both files that share the chunk are reported.
    Codes files;
    for (const Finding& finding : outcome.findings) {
      if (finding.code == "chunk-damaged") files.insert(finding.path);
    }
    REQUIRE(files == Codes{"/copy", "/large"});
  }
  SECTION("the footer's trailer, its tables, or all of it") {
    const uint64_t size = SizeOf(store, kSegment);
    const uint64_t back = GENERATE(10u, 60u, 70u, 200u);
    store.Flip(path, size - back);
    const CheckOutcome outcome = store.Check(true);
    INFO(outcome.ToString());
    REQUIRE(outcome.codes() == Codes{"segment-footer"});
  }
  SECTION("its end is cut off") {
    std::filesystem::resize_file(path, SizeOf(store, kSegment) - 1);
    const CheckOutcome outcome = store.Check(true);
    INFO(outcome.ToString());
    REQUIRE(outcome.codes() == Codes{"segment-truncated"});
  }
  SECTION("it has grown") {
    WriteText(path, ReadText(path) + "x");
    const CheckOutcome outcome = store.Check();
    INFO(outcome.ToString());
    REQUIRE(outcome.codes() == Codes{"segment-record", "segment-footer"});
  }
  SECTION("it is gone") {
    std::filesystem::remove(path);
    const CheckOutcome outcome = store.Check();
    INFO(outcome.ToString());
    REQUIRE(outcome.codes() == Codes{"segment-missing", "chunk-missing"});
    REQUIRE(outcome.report.stale_index_entries > 0);
    Codes files;
    for (const Finding& finding : outcome.findings) {
      if (finding.code == "chunk-missing") files.insert(finding.path);
    }
    REQUIRE(files == Codes{"/copy", "/large", "/small"});
  }
}

namespace {

// Replaces part of a segment.
void Overwrite(CheckedStore& store, SegmentId id, uint64_t offset, const std::string& bytes) {
  std::string segment = ReadText(SegmentPath(store.path(), id));
  REQUIRE(offset + bytes.size() <= segment.size());
  segment.replace(offset, bytes.size(), bytes);
  WriteText(SegmentPath(store.path(), id), segment);
}

SegmentIdentity IdentityOf(CheckedStore& store, SegmentId id) {
  auto state = ReadSuperblock(store.fixture().env(), store.path());
  REQUIRE_OK(state);
  return {state->superblock.uuid, id};
}

}  // namespace

TEST_CASE("a footer that is valid but describes other chunks or blocks is found") {
  CheckedStore store;
  store.FillAndClose();
  const SegmentIdentity identity = IdentityOf(store, kSegment);
  SegmentFooter footer;
  {
    const BlockCodec codec;
    auto reader = SegmentReader::Open(store.fixture().env(), store.path(), identity, codec);
    REQUIRE_OK(reader);
    auto read = (*reader)->ReadFooter();
    REQUIRE_OK(read);
    footer = *read;
  }
  SECTION("a chunk's name") { ++footer.chunks[3].name_prefix; }
  SECTION("a chunk's tag") { ++footer.chunks[3].tag; }
  SECTION("a block's place") { ++footer.blocks[1].block_offset; }
  Overwrite(store, kSegment, footer.trailer.data_end, EncodeSegmentFooter(footer, identity));
  const CheckOutcome outcome = store.Check();
  INFO(outcome.ToString());
  REQUIRE(outcome.codes() == Codes{"segment-footer"});
}

TEST_CASE("a footer's totals are compared with the blocks and with metadata") {
  CheckedStore store;
  store.FillAndClose();
  const SegmentIdentity identity = IdentityOf(store, kSegment);
  const BlockCodec codec;
  auto reader = SegmentReader::Open(store.fixture().env(), store.path(), identity, codec);
  REQUIRE_OK(reader);
  auto footer = (*reader)->ReadFooter();
  REQUIRE_OK(footer);
  ++footer->trailer.plain_bytes;
  Overwrite(store, kSegment, footer->trailer.data_end, EncodeSegmentFooter(*footer, identity));
  const CheckOutcome outcome = store.Check();
  INFO(outcome.ToString());
  REQUIRE(outcome.codes() == Codes{"segment-footer", "segment-record"});
}

TEST_CASE("a chunk whose bytes do not match its name or tag is found by --data") {
  CheckedStore store;
  store.FillAndClose();
  Block block = BlocksOf(store, kSegment)[1];
  const SegmentIdentity identity = IdentityOf(store, kSegment);
  SECTION("its name") {
    // Change a byte of the name that the footer does not hold.
    ++block.head.records[0].name.bytes[19];
    Overwrite(store, kSegment, block.offset, EncodeBlockHead(block.head, identity));
    const CheckOutcome outcome = store.Check(true);
    INFO(outcome.ToString());
    REQUIRE(outcome.codes() == Codes{"chunk-name", "not-indexed", "chunk-missing"});
  }
  SECTION("its tag") {
    ++block.head.records[0].tag;
    Overwrite(store, kSegment, block.offset, EncodeBlockHead(block.head, identity));
    const CheckOutcome outcome = store.Check(true);
    INFO(outcome.ToString());
    REQUIRE(outcome.codes() == Codes{"chunk-name", "segment-footer", "chunk-damaged"});
  }
  SECTION("its salt") {
    block.head.records[0].salt = 1;
    Overwrite(store, kSegment, block.offset, EncodeBlockHead(block.head, identity));
    const CheckOutcome outcome = store.Check(true);
    INFO(outcome.ToString());
    REQUIRE(outcome.codes() == Codes{"chunk-name", "chunk-damaged"});
  }
}

TEST_CASE("damage in a recipe's node is reported for the file") {
  CheckedStore store;
  store.FillAndClose();
  SegmentId nodes = kNoSegment;
  for (const SegmentId id : Segments(store)) {
    auto file = store.fixture().env().OpenFile(SegmentPath(store.path(), id), {});
    REQUIRE_OK(file);
    Bytes bytes(kSegmentHeaderSize);
    REQUIRE_OK(ReadExactly(**file, 0, bytes));
    auto header = DecodeSegmentHeader(bytes);
    REQUIRE_OK(header);
    if (header->kind == SegmentKind::kRecipeNodes) nodes = id;
  }
  REQUIRE(nodes != kNoSegment);
  store.Flip(SegmentPath(store.path(), nodes), 1000);
  const CheckOutcome outcome = store.Check();
  INFO(outcome.ToString());
  REQUIRE(outcome.codes() == Codes{"block-payload", "recipe-node"});
  REQUIRE(FindCode(outcome, "recipe-node")->inode.has_value());
}

TEST_CASE("after an unmount an unsealed segment must have its recorded length") {
  CheckedStore store;
  store.FillAndClose();
  const SegmentId last = Segments(store).back();
  const std::string path = SegmentPath(store.path(), last);
  SECTION("longer") {
    WriteText(path, ReadText(path) + "x");
    const CheckOutcome outcome = store.Check();
    INFO(outcome.ToString());
    REQUIRE(outcome.codes() == Codes{"metadata-lost"});
  }
  SECTION("shorter") {
    std::filesystem::resize_file(path, SizeOf(store, last) - 1);
    const CheckOutcome outcome = store.Check();
    INFO(outcome.ToString());
    REQUIRE(outcome.codes().contains("segment-truncated"));
  }
}

TEST_CASE("damage that was healed is found, and no file is reported as damaged") {
  CheckedStore store(GENERATE(IndexEngine::kSilt, IndexEngine::kMap));
  store.FillAndClose();
  store.fixture().Open();
  Bytes content(1'000'000);
  REQUIRE_OK(store.fs().Read(store.large, 0, content));
  store.fixture().Close();
  const Block block = BlocksOf(store, kSegment)[1];
  store.Flip(SegmentPath(store.path(), kSegment), block.offset + block.head.head_bytes() + 100);
  store.fixture().Open();
  Bytes damaged(content.size());
  REQUIRE_CODE(store.fs().Read(store.large, 0, damaged), kCorruption);
  WriteLargeFile(store.fs(), "again", content);
  REQUIRE_OK(store.fs().Read(store.large, 0, damaged));
  store.fixture().Close();
  const CheckOutcome outcome = store.Check(true);
  INFO(outcome.ToString());
  REQUIRE(outcome.codes() == Codes{"block-payload"});
}

TEST_CASE("after a crash, damage below the committed length is still found") {
  CheckedStore store(IndexEngine::kSilt, 32u << 20);
  store.Fill();
  store.fixture().Crash();
  const Block block = BlocksOf(store, kSegment)[0];
  store.Flip(SegmentPath(store.path(), kSegment), block.offset + block.head.head_bytes() + 10);
  const CheckOutcome outcome = store.Check();
  INFO(outcome.ToString());
  REQUIRE(outcome.codes() == Codes{"block-payload", "chunk-damaged"});
}

TEST_CASE("unknown segments, or no segments at all, are found in a store that was unmounted") {
  CheckedStore store;
  store.FillAndClose();
  const std::vector<SegmentId> ids = Segments(store);
  SECTION("a number that was never allocated") {
    const SegmentId beyond = ids.back() + 1;
    WriteText(SegmentPath(store.path(), beyond), "");
    const CheckOutcome outcome = store.Check();
    INFO(outcome.ToString());
    REQUIRE(outcome.codes() == Codes{"metadata-lost"});
  }
  SECTION("all of them are gone") {
    const bool with_directory = GENERATE(true, false);
    std::filesystem::remove_all(SegmentsDirectory(store.path()));
    if (!with_directory) std::filesystem::create_directory(SegmentsDirectory(store.path()));
    const CheckOutcome outcome = store.Check();
    INFO(outcome.ToString());
    REQUIRE(outcome.codes() == Codes{"segments-missing", "chunk-missing", "recipe-node"});
  }
}

}  // namespace siltfs::testing
