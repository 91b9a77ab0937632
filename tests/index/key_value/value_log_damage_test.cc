// Damage: if any bytes are changed, the log returns either a record's own bytes or none.
#include <algorithm>

#include "store/segment/segment_footer.h"
#include "store/segment/segment_reader.h"
#include "value_log_fixture.h"

namespace siltfs::testing {
namespace {

// A log of one segment of many blocks.
struct Damaged {
  explicit Damaged(bool sealed, BlockCodecId codec = BlockCodecId::kNone) {
    options.segment_bytes = kMaxSegmentTargetSize;
    options.compression.codec = codec;
    auto log = OpenLog(*env, options);
    for (uint64_t number = 0; number < 24; ++number) {
      records.push_back(AppendRecord(*log, number, 100 + number % 5 * 100));
    }
    if (sealed) {
      REQUIRE_OK(log->SealOpenSegment());
    } else {
      REQUIRE_OK(log->Sync());
    }
    path = SegmentPath(kLogDirectory, records[0].location.segment);
    whole = FileBytes(*env, path);
  }

  // Returns the number of readable records. All others must fail as damaged.
  size_t CountReadable(const ValueLog& log) const {
    size_t readable = 0;
    for (const Record& record : records) {
      auto bytes = log.Read(record.name(), record.location);
      if (bytes.ok()) {
        REQUIRE((*bytes == record.bytes()));
        ++readable;
      } else {
        REQUIRE_CODE(bytes, kCorruption);
        REQUIRE_FALSE(bytes.status().path().empty());
      }
    }
    return readable;
  }

  // Returns the number of visited records; each must be one that was appended.
  size_t CountVisited(const ValueLog& log, uint64_t& damaged) const {
    size_t visited = 0;
    auto visit = log.ForEachRecord(
        records[0].location.segment,
        [&](const ChunkName& name, const Location& location, ByteView bytes) {
          const auto record =
              std::find_if(records.begin(), records.end(),
                           [&](const Record& candidate) { return candidate.location == location; });
          REQUIRE(record != records.end());
          REQUIRE(name == record->name());
          REQUIRE((Bytes(bytes.begin(), bytes.end()) == record->bytes()));
          ++visited;
          return Status::Ok();
        });
    REQUIRE_OK(visit);
    damaged = *visit;
    return visited;
  }

  size_t RecordsInBlockAt(uint32_t offset) const {
    return static_cast<size_t>(std::count_if(
        records.begin(), records.end(),
        [offset](const Record& record) { return record.location.block_offset == offset; }));
  }

  std::unique_ptr<SimEnv> env = NewDevice();
  ValueLogOptions options = SmallOptions();
  std::vector<Record> records;
  std::string path;
  std::string whole;
};

}  // namespace

TEST_CASE("flipped bits in a segment never give wrong bytes, and lose at most one block") {
  const bool sealed = GENERATE(true, false);
  const bool read_only = GENERATE(true, false);
  const auto codec = GENERATE(BlockCodecId::kNone, BlockCodecId::kZstd);
  Damaged damaged(sealed, codec);
  damaged.options.read_only = read_only;
  Random random(9);
  for (size_t at = 0; at < damaged.whole.size(); at += 1 + random.Below(40)) {
    INFO("sealed " << sealed << ", read only " << read_only << ", byte " << at << " of "
                   << damaged.whole.size());
    std::string bytes = damaged.whole;
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << random.Below(8)));
    PutFile(*damaged.env, damaged.path, bytes);
    auto log = OpenLog(*damaged.env, damaged.options);
    const size_t readable = damaged.CountReadable(*log);
    size_t lost = 0;
    for (const Record& record : damaged.records) {
      // The flipped byte is in the last block that begins at or before it; this block's records are
      // lost.
      if (record.location.block_offset <= at) {
        lost = damaged.RecordsInBlockAt(record.location.block_offset);
      }
    }
    REQUIRE(readable + lost >= damaged.records.size());
    uint64_t stretches = 0;
    const size_t visited = damaged.CountVisited(*log, stretches);
    REQUIRE(visited == readable);
    for (const Record& record : damaged.records) {
      if (!sealed && log->Holds(record.name(), record.location)) RequireRead(*log, record);
    }
  }
}

TEST_CASE("a flipped bit in an open segment's block is found when it is read") {
  auto env = NewDevice();
  auto log = OpenLog(*env, SmallOptions());
  const Record record = AppendRecord(*log, 1, 100);
  const Record other = AppendRecord(*log, 2, 600);
  REQUIRE_OK(log->Sync());
  const std::string path = SegmentPath(kLogDirectory, record.location.segment);
  std::string bytes = FileBytes(*env, path);
  bytes[record.location.block_offset + kBlockHeaderSize + kChunkTableEntrySize + 50] ^= 1;
  PutFile(*env, path, bytes);
  REQUIRE_CODE(log->Read(record.name(), record.location), kCorruption);
  CHECK(log->stats().damaged == 1);
  RequireRead(*log, other);
}

TEST_CASE("a visit counts the damage that it skips") {
  Damaged damaged(true);
  std::string bytes = damaged.whole;
  const uint32_t in_head = damaged.records[3].location.block_offset;
  const uint32_t in_payload = damaged.records[12].location.block_offset;
  REQUIRE(in_payload > in_head);
  bytes[in_head + 20] ^= 1;
  bytes[in_payload + kBlockHeaderSize +
        damaged.RecordsInBlockAt(in_payload) * kChunkTableEntrySize] ^= 1;
  PutFile(*damaged.env, damaged.path, bytes);
  auto log = OpenLog(*damaged.env, damaged.options);
  uint64_t stretches = 0;
  const size_t visited = damaged.CountVisited(*log, stretches);
  CHECK(stretches == 2);
  CHECK(visited + damaged.RecordsInBlockAt(in_head) + damaged.RecordsInBlockAt(in_payload) ==
        damaged.records.size());
}

TEST_CASE("a segment that is cut off anywhere keeps its whole blocks") {
  const bool read_only = GENERATE(true, false);
  Damaged damaged(true);
  damaged.options.read_only = read_only;
  for (size_t size = 0; size < damaged.whole.size(); size += 97) {
    INFO("cut off after " << size << " of " << damaged.whole.size() << ", read only " << read_only);
    auto env = damaged.env->Fork();
    PutFile(*env, damaged.path, damaged.whole.substr(0, size));
    auto log = OpenLog(*env, damaged.options);
    for (const Record& record : damaged.records) {
      auto next = std::find_if(
          damaged.records.begin(), damaged.records.end(),
          [&](const Record& r) { return r.location.block_offset > record.location.block_offset; });
      const bool before = next != damaged.records.end() && next->location.block_offset <= size;
      if (before) {
        REQUIRE(log->Holds(record.name(), record.location));
        RequireRead(*log, record);
      } else if (log->Holds(record.name(), record.location)) {
        RequireRead(*log, record);
      }
    }
  }
}

TEST_CASE("the file of another segment is not accepted under the name of a segment") {
  auto env = NewDevice();
  auto log = OpenLog(*env, SmallOptions());
  const Record first = AppendRecord(*log, 1, 5000);
  const Record second = AppendRecord(*log, 2, 5000);
  const bool sealed = GENERATE(true, false);
  if (sealed) REQUIRE_OK(log->SealOpenSegment());
  REQUIRE_OK(log->Sync());
  const Record third = AppendRecord(*log, 3, 5000);
  REQUIRE_OK(log->Sync());
  REQUIRE(first.location.segment != second.location.segment);
  log.reset();
  auto other_env = NewDevice(77);
  auto other = OpenLog(*other_env, SmallOptions());
  AppendRecord(*other, 1, 5000);
  if (sealed) REQUIRE_OK(other->SealOpenSegment());
  REQUIRE_OK(other->Sync());

  PutFile(*env, SegmentPath(kLogDirectory, first.location.segment),
          FileBytes(*other_env, SegmentPath(kLogDirectory, 1)));
  PutFile(*env, SegmentPath(kLogDirectory, second.location.segment),
          FileBytes(*env, SegmentPath(kLogDirectory, third.location.segment)));
  for (const bool read_only : {true, false, false}) {
    ValueLogOptions options = SmallOptions();
    options.read_only = read_only;
    log = OpenLog(*env, options);
    CHECK(log->stats().damaged == 2);
    for (const Record& record : {first, second}) {
      REQUIRE_CODE(log->Read(record.name(), record.location), kCorruption);
      CHECK_FALSE(log->Holds(record.name(), record.location));
      auto visited = log->ForEachRecord(
          record.location.segment,
          [](const ChunkName&, const Location&, ByteView) { return Status::Ok(); });
      REQUIRE_OK(visited);
      CHECK(*visited == 1);
    }
    RequireRead(*log, third);
  }
  // Damaged segments may be removed.
  REQUIRE_OK(log->Remove(first.location.segment));
  REQUIRE_CODE(log->Read(first.name(), first.location), kNotFound);
}

TEST_CASE("a sealed segment without a readable block is kept for repair") {
  Damaged damaged(true);
  std::string bytes(damaged.whole.size(), 'x');
  bytes.replace(0, kSegmentHeaderSize, damaged.whole, 0, kSegmentHeaderSize);
  // Damages a trailer.
  bytes.replace(bytes.size() - kSegmentTrailerSize, kSegmentTrailerSize, damaged.whole,
                bytes.size() - kSegmentTrailerSize, kSegmentTrailerSize);
  bytes[bytes.size() - 30] ^= 1;
  PutFile(*damaged.env, damaged.path, bytes);
  auto log = OpenLog(*damaged.env, damaged.options);
  CHECK(log->stats().damaged == 1);
  CHECK(damaged.CountReadable(*log) == 0);
  CHECK(FileBytes(*damaged.env, damaged.path) == bytes);
}

TEST_CASE("a file larger than any segment is not read") {
  Damaged damaged(false);
  auto file = damaged.env->OpenFile(damaged.path, {.mode = OpenMode::kReadWrite});
  REQUIRE_OK(file);
  REQUIRE_OK((*file)->Truncate(uint64_t{1} << 40));
  REQUIRE_OK((*file)->Sync());
  const uint64_t before = damaged.env->Calls(SimCall::kRead);
  auto log = OpenLog(*damaged.env, damaged.options);
  CHECK(damaged.env->Calls(SimCall::kRead) - before < 20);
  CHECK(log->stats().damaged == 1);
  CHECK_FALSE(log->Holds(damaged.records[0].name(), damaged.records[0].location));
}

TEST_CASE("a missing segment that was not removed is damage") {
  auto env = NewDevice();
  auto log = OpenLog(*env, SmallOptions());
  const Record record = AppendRecord(*log, 1, 100);
  REQUIRE_OK(log->SealOpenSegment());
  REQUIRE_OK(env->RemoveFile(SegmentPath(kLogDirectory, record.location.segment)));
  REQUIRE_CODE(log->Read(record.name(), record.location), kCorruption);
}

TEST_CASE("foreign files in the directory are left alone") {
  auto env = NewDevice();
  { OpenLog(*env, SmallOptions())->segments(); }
  const std::string stray = std::string(kLogDirectory) + "/segments/notes";
  PutFile(*env, stray, "mine");
  auto log = OpenLog(*env, SmallOptions());
  AppendRecord(*log, 1, 10);
  REQUIRE_OK(log->SealOpenSegment());
  log = OpenLog(*env, SmallOptions());
  CHECK(FileBytes(*env, stray) == "mine");
}

}  // namespace siltfs::testing
