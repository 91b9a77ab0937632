// Crafted stores in which little data causes very much work: recipes whose nodes share their
// subtrees, and directories that contain each other. All checksums and names in them are right.
// No case reads a clock; a case that does not end reaches ctest's timeout.
#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "chunker/chunk_namer.h"
#include "fs/interface/store_maintenance.h"
#include "fs/meta/metadata_store.h"
#include "fs/recipe/recipe_node.h"
#include "fs/records/schema.h"
#include "fs/records/segment_record.h"
#include "fs/segments/sealed_record.h"
#include "store/segment/block_codec.h"
#include "store/segment/segment_files.h"
#include "store/segment/segment_reader.h"
#include "store/segment/segment_scan.h"
#include "store/segment/segment_writer.h"
#include "store/superblock/superblock.h"
#include "tests/fs/repair/repaired_store.h"

namespace siltfs::testing {
namespace {

// Adds nodes to a store that is closed, in a segment of their own.
class NodeForger : public NodeStore {
 public:
  explicit NodeForger(CheckedStore& store) : store_(store) {
    const auto state = ReadSuperblock(store.fixture().env(), store.path());
    REQUIRE_OK(state);
    superblock_ = state->superblock;
  }

  Result<ChunkName> PutNode(ByteView node) override {
    SILTFS_ASSIGN_OR_RETURN(ChunkNamer namer, ChunkNamer::Create(superblock_.uuid.bytes));
    ChunkRecord record;
    record.name = namer.NameOf(node);
    record.tag = TagKey(superblock_.tag_secret).TagOf(node);
    record.length = static_cast<uint32_t>(node.size());
    SILTFS_RETURN_IF_ERROR(block_.Add(record, node));
    return record.name;
  }
  Result<std::shared_ptr<const Bytes>> GetNode(const ChunkName&, uint32_t) override {
    return Status(StatusCode::kUnsupported, "nodes are only written here");
  }

  template <typename Item>
  RecipeChild Add(uint8_t level, const std::vector<Item>& items) {
    RecipeTotals totals;
    for (const Item& item : items) REQUIRE(totals.Add(item));
    Bytes node;
    if constexpr (std::is_same_v<Item, RecipeEntry>) {
      node = EncodeNode(items, totals);
    } else {
      node = EncodeNode(level, items, totals);
    }
    const auto name = PutNode(node);
    REQUIRE_OK(name);
    return {*name, static_cast<uint32_t>(node.size()), totals.covered_bytes, totals.chunk_count,
            totals.hole_bytes};
  }

  // Makes all nodes part of the store.
  void Finish() {
    store_.EditMetadata([this](KvStore& kv) {
      auto ids = IdRanges::Decode(**kv.Get(kIdRangesKey));
      REQUIRE_OK(ids);
      const SegmentId id = ids->segment_limit++;
      ++ids->epoch;
      const SegmentIdentity identity{superblock_.uuid, id};
      auto writer = SegmentWriter::Create(store_.fixture().env(), store_.path(), identity,
                                          SegmentKind::kRecipeNodes, 0);
      REQUIRE_OK(writer);
      const auto block = BlockCodec().Encode(block_.Take(), {BlockCodecId::kNone, 0});
      REQUIRE_OK(block);
      REQUIRE_OK((*writer)->Append(*block, (ids->epoch << 40) + 1, 0));
      REQUIRE_OK((*writer)->Seal());
      REQUIRE_OK(kv.Write({{std::string(kIdRangesKey), ids->Encode()},
                           {SegmentKey(id), SealedRecord((*writer)->totals()).Encode()}}));
    });
  }

 private:
  CheckedStore& store_;
  Superblock superblock_;
  BlockBuilder block_;
};

constexpr uint64_t kChunkBytes = 100;  // of "small"
constexpr size_t kChildren = 20;       // of the inode
static_assert(kChildren <= Recipe::kMaxChildren);

// Turns a file of one chunk into one of 17 TB, in which four nodes repeat the chunk billions of
// times. If `lost`, the last chunk of each leaf is missing.
uint64_t ForgeRepeatedFile(CheckedStore& store, InodeNumber file, bool lost) {
  uint64_t size = 0;
  NodeForger forger(store);
  store.EditInode(file, [&](InodeRecord& record) {
    REQUIRE(record.recipe.entries.size() == 1);
    std::vector<RecipeEntry> entries(512, record.recipe.entries[0]);
    if (lost) entries.back().name.bytes[7] ^= 1;
    RecipeChild node = forger.Add(0, entries);
    for (uint8_t level = 1; level <= 3; ++level)
      node = forger.Add(level, std::vector<RecipeChild>(256, node));
    record.recipe.height = 4;
    record.recipe.entries.clear();
    record.recipe.children.assign(kChildren, node);
    record.size = record.recipe_limit = size = record.recipe.size();
  });
  forger.Finish();
  return size;
}

// Damages the chunk of "small", the first chunk of the store.
void FlipInFirstBlock(CheckedStore& store) {
  const auto state = ReadSuperblock(store.fixture().env(), store.path());
  REQUIRE_OK(state);
  const std::string path = SegmentPath(store.path(), 1);
  const auto file = store.fixture().env().OpenFile(path, {});
  REQUIRE_OK(file);
  uint64_t place = 0;
  REQUIRE_OK(ScanBlocks(**file, {state->superblock.uuid, 1}, {},
                        [&place](const BlockHead& head, uint32_t offset) {
                          if (place == 0) place = offset + head.head_bytes() + kChunkBytes / 2;
                          return Status::Ok();
                        }));
  store.Flip(path, place);
}

void RequireRepeated(FileSystem& fs, InodeNumber inode, uint64_t chunk_bytes, uint64_t offset) {
  const Bytes content = RandomBytes(1, chunk_bytes);
  Bytes got(10'000);
  const auto count = fs.Read(inode, offset, got);
  REQUIRE_OK(count);
  REQUIRE(*count == got.size());
  Bytes expected(got.size());
  for (size_t i = 0; i < got.size(); ++i) expected[i] = content[(offset + i) % chunk_bytes];
  const bool same = got == expected;
  REQUIRE(same);
}

}  // namespace

TEST_CASE("a check walks each node once, even if it is shared billions of times") {
  CheckedStore store;
  store.FillAndClose();
  const uint64_t nodes_before = store.Check().report.recipe_nodes;
  ForgeRepeatedFile(store, store.small, /*lost=*/false);
  const CheckOutcome outcome = store.Check();
  INFO(outcome.ToString());
  REQUIRE(outcome.report.recipe_nodes == nodes_before + 4);
  REQUIRE_FALSE(outcome.codes().contains("chunk-missing"));
  REQUIRE_FALSE(outcome.codes().contains("recipe-node"));
}

TEST_CASE("a chunk that is lost in billions of places is reported and repaired in bounded work") {
  CheckedStore store;
  store.FillAndClose();
  const uint64_t size = ForgeRepeatedFile(store, store.small, /*lost=*/true);
  const CheckOutcome outcome = store.Check();
  REQUIRE(outcome.codes().contains("chunk-missing"));
  const RepairReport report = Repair(store, RepairMode::kAll);
  REQUIRE(report.left == 0);
  RequireCodes(store.Check(), {});
  FileSystem& fs = store.fixture().Open(/*read_only=*/true);
  Bytes got(2 * kChunkBytes);
  for (const uint64_t leaf : {uint64_t{0}, size / 512 / kChunkBytes - 1}) {
    const uint64_t offset = leaf * 512 * kChunkBytes + 510 * kChunkBytes;
    REQUIRE_OK(fs.Read(store.small, offset, got));
    Bytes expected = RandomBytes(1, kChunkBytes);
    expected.resize(2 * kChunkBytes);
    REQUIRE(got == expected);
  }
  store.fixture().Close();
}

TEST_CASE("a file of shared nodes is read, written, collected and scrubbed in bounded work") {
  // The forged chunks are shorter than the minimum chunk of siltfs. So after the write, a cut point
  // of the fold coincides with the end of a forged chunk again only after 131 MB.
  constexpr uint64_t kOddChunkBytes = 1999;
  CheckedStore store;
  store.FillAndClose();
  const InodeNumber file = WriteFile(store.fixture().Open(), "odd", RandomBytes(1, kOddChunkBytes));
  store.fixture().Close();
  const uint64_t size = ForgeRepeatedFile(store, file, /*lost=*/false);
  const uint64_t chunks_before = store.Check().report.chunks;
  {
    FileSystem& fs = store.fixture().Open();
    for (const uint64_t offset : {uint64_t{0}, size / 2 + 33, size - 10'000})
      RequireRepeated(fs, file, kOddChunkBytes, offset);
    REQUIRE_OK(fs.OpenFile(file, false));
    REQUIRE_OK(fs.Write(file, size / 2, Bytes(1, 0)));
    fs.ReleaseFile(file);  // folds it
    for (const std::string& finding : store.fixture().findings())
      REQUIRE(finding.find("was not folded") == std::string::npos);
    REQUIRE_OK(fs.maintenance().Scrub(ScrubMode::kFull));
    store.fixture().Close();
  }
  REQUIRE(store.Check().report.chunks < chunks_before + 1000);
  FileSystem& fs = store.fixture().Open();
  for (const uint64_t offset : {size / 2 - 20'000, size / 2 + 100, size / 2 + (40u << 20)})
    RequireRepeated(fs, file, kOddChunkBytes, offset);
  REQUIRE_OK(fs.maintenance().CollectGarbage(false));
  store.fixture().Close();
}

TEST_CASE("a scrub counts a chunk damaged in billions of places in bounded work") {
  CheckedStore store;
  store.FillAndClose();
  const uint64_t size = ForgeRepeatedFile(store, store.small, /*lost=*/false);
  // The file's recipe limit lies inside a subtree. So the scrub must count this subtree in parts.
  const uint64_t limit = size - kChunkBytes - 7;
  store.EditInode(store.small,
                  [limit](InodeRecord& record) { record.size = record.recipe_limit = limit; });
  FlipInFirstBlock(store);
  FileSystem& fs = store.fixture().Open();
  const auto report = fs.maintenance().Scrub(ScrubMode::kFull);
  REQUIRE_OK(report);
  const std::string expected = fmt::format(
      "small (inode {}): {} bytes cannot be read, the first at offset 0", store.small, limit);
  const std::vector<std::string> findings = store.fixture().findings();
  REQUIRE(std::any_of(findings.begin(), findings.end(), [&](const std::string& finding) {
    return finding.find(expected) != std::string::npos;
  }));
  store.fixture().Close();
}

TEST_CASE("a directory is not moved under directories that contain each other") {
  CheckedStore store;
  store.FillAndClose();
  FileSystem* fs = &store.fixture().Open();
  const InodeNumber a = MakeDir(*fs, kRootInode, "a");
  const InodeNumber b = MakeDir(*fs, kRootInode, "b");
  const InodeNumber c = MakeDir(*fs, kRootInode, "c");
  store.fixture().Close();
  store.EditInode(a, [b](InodeRecord& record) { record.parent = b; });
  store.EditInode(b, [c](InodeRecord& record) { record.parent = c; });
  store.EditInode(c, [b](InodeRecord& record) { record.parent = b; });
  fs = &store.fixture().Open();
  const Status moved = fs->Rename(kRootInode, "moved away", a, "x", RenameMode::kReplace);
  REQUIRE(moved.Is(StatusCode::kNotFound));
  const Status cycle = fs->Rename(kRootInode, "directory", a, "x", RenameMode::kReplace);
  REQUIRE(cycle.Is(StatusCode::kCorruption));
  store.fixture().Close();
  REQUIRE(store.Check().codes().contains("directory-cycle"));
}

}  // namespace siltfs::testing
