// Opens a segment at any moment of the replacement of its file.
#include "fs/segments/segment_cache.h"

#include <functional>

#include "store/env/sim_env.h"
#include "store/segment/directory_segment_store.h"
#include "store/segment/segment_files.h"
#include "store/segment/segment_rewrite.h"
#include "store/segment/segment_writer.h"
#include "tests/fs/chunks/store_under_test.h"
#include "tests/support/catch.h"
#include "tests/support/fault_env.h"

namespace siltfs::testing {
namespace {

constexpr SegmentId kId = 3;
constexpr StoreUuid kUuid{{1, 2, 3}};
const std::string kStore = "/store";

// Calls a hook just before or just after a file is opened.
class HookedEnv : public FaultEnv {
 public:
  HookedEnv() : FaultEnv(std::make_unique<SimEnv>()) {}
  Result<std::unique_ptr<File>> OpenFile(const std::string& path, OpenOptions options) override {
    if (before_open) std::exchange(before_open, nullptr)();
    auto opened = FaultEnv::OpenFile(path, options);
    if (after_open) std::exchange(after_open, nullptr)();
    return opened;
  }
  std::function<void()> before_open;
  std::function<void()> after_open;
};

// A sealed segment of eight blocks with one chunk each, and one block that is to replace them.
struct Replaced {
  Replaced() {
    REQUIRE_OK(env.CreateDirectory(kStore));
    REQUIRE_OK(CreateSegmentsDirectory(env, kStore));
    auto writer = SegmentWriter::Create(env, kStore, {kUuid, kId}, SegmentKind::kData, 0);
    REQUIRE_OK(writer);
    for (uint64_t i = 0; i < 8; ++i) {
      PlainBlock block;
      block.plain = DullChunk(i);
      ChunkRecord record;
      record.name.bytes[0] = static_cast<uint8_t>(i);
      record.tag = i;
      record.length = static_cast<uint32_t>(block.plain.size());
      block.records = {record};
      auto encoded = codec.Encode(block, {BlockCodecId::kNone, 0});
      REQUIRE_OK(encoded);
      REQUIRE_OK((*writer)->Append(*encoded, i + 1, 0));
    }
    REQUIRE_OK((*writer)->Seal());
    const auto prepared = PrepareRewrite(env, kStore, segments, {kUuid, kId}, codec, {});
    REQUIRE_OK(prepared);
    REQUIRE(prepared->worthwhile);
  }
  Status Install() { return segments.Replace(kId, BuiltReplacement(env, kStore, kId)); }
  void Replace() {
    REQUIRE_OK(cache.Replace(kId, [this] { return Install(); }));
  }

  // Requires that the opened file is the old or the new one, and that `file` says which.
  void RequireConsistent(const OpenSegment& segment) {
    for (uint32_t ordinal = 0; ordinal < 8; ++ordinal) {
      const auto found = cache.FindBlock(segment, ordinal);
      REQUIRE_OK(found);
      REQUIRE(*found);
      const auto block = segment.reader->ReadBlock((*found)->place.block_offset);
      REQUIRE_OK(block);
      REQUIRE((*block)->head().Covers(ordinal));
    }
    const auto trailer = segment.reader->ReadTrailer();
    REQUIRE_OK(trailer);
    const uint32_t blocks = trailer->block_count;
    if (segment.file == SegmentFile::kOriginal) REQUIRE(blocks == 8);
    if (segment.file == SegmentFile::kRecompressed) REQUIRE(blocks == 1);
  }
  OpenSegmentPtr Open() {
    auto opened = cache.Open(kId);
    REQUIRE_OK(opened);
    RequireConsistent(**opened);
    return *opened;
  }

  HookedEnv env;
  const BlockCodec codec;
  DirectorySegmentStore segments{env, kStore};
  SegmentCache cache{segments, kUuid, codec, nullptr, 16};
};

}  // namespace

TEST_CASE("a segment opened while its file is replaced is one file or the other") {
  Replaced segment;
  const auto all = [&] { segment.Replace(); };
  OpenSegmentPtr opened;
  SECTION("replaced just before the file is opened") {
    segment.env.before_open = all;
    opened = segment.Open();
    CHECK(opened->file == SegmentFile::kUnknown);
  }
  SECTION("replaced just after the file is opened") {
    segment.env.after_open = all;
    opened = segment.Open();
    CHECK(opened->file == SegmentFile::kUnknown);
  }
  SECTION("opened just before the rename, and just after it") {
    const Status replaced = segment.cache.Replace(kId, [&] {
      CHECK(segment.Open()->file == SegmentFile::kUnknown);
      const Status installed = segment.Install();
      opened = segment.Open();
      return installed;
    });
    REQUIRE_OK(replaced);
    CHECK(opened->file == SegmentFile::kUnknown);
  }
  SECTION("renamed while the file is opened") {
    Status installed;
    const Status replaced = segment.cache.Replace(kId, [&] {
      segment.env.before_open = [&] { installed = segment.Install(); };
      opened = segment.Open();
      return installed;
    });
    REQUIRE_OK(installed);
    REQUIRE_OK(replaced);
    CHECK(opened->file == SegmentFile::kUnknown);
  }
  SECTION("replaced while the file is open") {
    opened = segment.Open();
    CHECK(opened->file == SegmentFile::kOriginal);
    CHECK(segment.Open() == opened);
    all();
  }
  // The opened file stays valid, and the next Open gets the new file.
  segment.RequireConsistent(*opened);
  const OpenSegmentPtr next = segment.Open();
  CHECK(next != opened);
  CHECK(next->file == SegmentFile::kRecompressed);
  CHECK(segment.Open() == next);
}

TEST_CASE("nothing is cached of a segment after its replacement failed") {
  Replaced segment;
  const bool renamed = GENERATE(false, true);
  const Status replaced = segment.cache.Replace(kId, [&] {
    if (renamed) segment.Install().IgnoreError("the replacement reports a failure");
    return Status(StatusCode::kIoError, "the device");
  });
  REQUIRE_CODE(replaced, kIoError);
  const OpenSegmentPtr opened = segment.Open();
  CHECK(opened->file == SegmentFile::kUnknown);
  CHECK(segment.Open() != opened);
}

TEST_CASE("a segment that keeps its file can be marked as recompressed") {
  Replaced segment;
  REQUIRE_OK(DiscardRewrite(segment.env, kStore, kId));
  CHECK(segment.Open()->file == SegmentFile::kOriginal);
  segment.cache.SetRecompressed(kId);
  auto opened = segment.cache.Open(kId);
  REQUIRE_OK(opened);
  CHECK((*opened)->file == SegmentFile::kRecompressed);
  CHECK((*opened)->reader->ReadTrailer()->block_count == 8);
}

}  // namespace siltfs::testing
