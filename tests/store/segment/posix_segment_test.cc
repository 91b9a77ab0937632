// The life cycle of a segment on a real file system.
#include "store/env/posix_env.h"
#include "store/segment/segment_salvage.h"
#include "tests/store/segment/segment_test_support.h"
#include "tests/support/temporary_directory.h"

using namespace siltfs;
using namespace siltfs::testing;

TEST_CASE(
    "A segment is written, resumed, sealed, listed, read, salvaged and removed on a real file "
    "system") {
  TemporaryDirectory directory;
  auto env = NewPosixEnv();
  BlockCodec codec;
  const std::string& store = directory.path();
  const SegmentIdentity identity{TestUuid(), 0x12345};
  REQUIRE_OK(CreateSegmentsDirectory(*env, store));
  uint64_t length = 0;
  {
    auto writer = Must(SegmentWriter::Create(*env, store, identity, SegmentKind::kData, 1));
    AppendAll(*writer, codec, kSmallSegment);
    REQUIRE_OK(writer->Sync());
    length = writer->size();
  }
  std::vector<BlockPlace> places;
  {
    auto writer = Must(SegmentWriter::Resume(*env, store, identity, length));
    Must(writer->Append(Encode(codec, MakeChunks(7, {9000, 300000}, false)), 2000, 1));
    REQUIRE_OK(writer->Seal());
    for (uint32_t ordinal : {0U, 3U, 4U, 8U}) places.push_back(*writer->FindBlock(ordinal));
  }
  CHECK(Must(ListSegments(*env, store)).ids == std::vector<SegmentId>{identity.id});
  auto read_all = [&] {
    auto reader = Must(SegmentReader::Open(*env, store, identity, codec));
    CHECK(Must(reader->ReadFooter()).blocks == places);
    for (size_t i = 0; i < kSmallSegment.size(); ++i) {
      RequireSame(*Must(reader->ReadBlock(places[i].block_offset)), ChunksOf(kSmallSegment, i));
    }
    RequireSame(*Must(reader->ReadBlock(places[3].block_offset)),
                MakeChunks(7, {9000, 300000}, false));
  };
  read_all();
  {
    auto file =
        Must(env->OpenFile(SegmentPath(store, identity.id), {.mode = OpenMode::kReadWrite}));
    REQUIRE_OK(file->Truncate(Must(file->Size()) - 30));
  }
  SalvageResult salvaged = Must(SalvageSegment(*env, store, identity, {}));
  CHECK(salvaged.outcome == SalvageOutcome::kSealed);
  read_all();
  REQUIRE_OK(RemoveSegment(*env, store, identity.id));
  CHECK(Must(ListSegments(*env, store)).ids.empty());
}
