// A value log without failures or damage.
#include "index/key_value/value_log.h"

#include <algorithm>
#include <set>

#include "store/env/posix_env.h"
#include "tests/support/temporary_directory.h"
#include "value_log_fixture.h"

namespace siltfs::testing {
namespace {

uint64_t Reads(const SimEnv& env) { return env.Calls(SimCall::kRead); }

}  // namespace

TEST_CASE("records of all sizes are read back, at once and after reopening") {
  const bool small = GENERATE(true, false);
  const auto codec = GENERATE(BlockCodecId::kNone, BlockCodecId::kZstd);
  auto env = NewDevice();
  ValueLogOptions options = SmallOptions();
  if (!small) {
    options = {.directory = kLogDirectory};
    options.segment_bytes = 8U << 20;
  }
  options.compression.codec = codec;
  Random random(7);
  std::vector<Record> records;
  auto log = OpenLog(*env, options);
  for (uint64_t number = 0; number < 200; ++number) {
    records.push_back(AppendRecord(*log, number, RandomSize(random, 1U << 20)));
    RequireRead(*log, records.back());
    RequireRead(*log, records[random.Below(records.size())]);
  }
  RequireReadAll(*log, records);
  REQUIRE_OK(log->Sync());
  RequireReadAll(*log, records);
  CHECK(log->stats().records == records.size());

  log.reset();
  env->PowerCut();
  log = OpenLog(*env, options);
  RequireReadAll(*log, records);
  CHECK(log->stats().records == records.size());
  CHECK(log->stats().damaged == 0);
  for (const auto& segment : log->segments()) CHECK_FALSE(segment.open);
  for (uint64_t number = 200; number < 220; ++number) {
    records.push_back(AppendRecord(*log, number, RandomSize(random, 1U << 20)));
  }
  RequireReadAll(*log, records);
}

TEST_CASE("a record is read from the open block, from the open segment and from sealed ones") {
  auto env = NewDevice();
  auto log = OpenLog(*env, SmallOptions());
  std::vector<Record> records;
  for (uint64_t number = 0; number < 3; ++number) {
    records.push_back(AppendRecord(*log, number, 50));
  }
  const uint64_t before = Reads(*env);
  RequireReadAll(*log, records);
  CHECK(Reads(*env) == before);  // from memory
  CHECK(log->stats().block_reads == 0);

  REQUIRE_OK(log->Sync());
  RequireReadAll(*log, records);
  CHECK(log->stats().block_reads == 3);
  CHECK(Reads(*env) == before + 3);  // one read each
  REQUIRE(log->segments().size() == 1);
  CHECK(log->segments()[0].open);

  while (log->segments().size() < 10) {
    records.push_back(AppendRecord(*log, records.size(), 300));
  }
  RequireReadAll(*log, records);
  std::set<SegmentId> used;
  for (const Record& record : records) used.insert(record.location.segment);
  CHECK(used.size() == 10);
  for (size_t i = 0; i < 10; ++i) CHECK(log->segments()[i].open == (i == 9));
}

TEST_CASE("small records share a block, a large one has a block of its own") {
  auto env = NewDevice();
  ValueLogOptions options = SmallOptions();
  options.segment_bytes = kMaxSegmentTargetSize;
  auto log = OpenLog(*env, options);
  const Record first = AppendRecord(*log, 1, 100);
  const Record second = AppendRecord(*log, 2, 100);
  const Record large = AppendRecord(*log, 3, 1000);
  const Record after = AppendRecord(*log, 4, 100);
  CHECK(first.location.block_offset == second.location.block_offset);
  CHECK(second.location.block_offset < large.location.block_offset);
  CHECK(large.location.block_offset < after.location.block_offset);
  CHECK(second.location.ordinal == 1);
  CHECK(large.location.ordinal == 2);
  CHECK(after.location.ordinal == 3);

  // Table entries count towards the block size. So a block filled with the smallest records is not
  // larger than other full blocks.
  std::map<uint32_t, size_t> blocks;
  for (uint64_t number = 10; number < 100; ++number) {
    ++blocks[AppendRecord(*log, number, 1).location.block_offset];
  }
  for (const auto& [offset, count] : blocks) CHECK(count <= 512 / 33);
}

TEST_CASE("a block of usual size takes one read, any other at most three") {
  auto env = NewDevice();
  ValueLogOptions options;
  options.directory = kLogDirectory;
  std::vector<Record> records;
  {
    auto log = OpenLog(*env, options);
    for (uint64_t number = 0; number < 100; ++number) {
      records.push_back(AppendRecord(*log, number, 900));
    }
    REQUIRE_OK(log->SealOpenSegment());
  }
  auto log = OpenLog(*env, options);
  for (const Record& record : records) {
    const uint64_t before = Reads(*env);
    RequireRead(*log, record);
    CHECK(Reads(*env) - before == 1);
  }
  options.block_bytes = 1;
  log = OpenLog(*env, options);
  for (const Record& record : records) {
    const uint64_t before = Reads(*env);
    RequireRead(*log, record);
    CHECK(Reads(*env) - before == 3);
  }
}

TEST_CASE("a record of the largest size is accepted, larger and empty ones are refused") {
  auto env = NewDevice();
  auto log = OpenLog(*env, SmallOptions());
  const Record largest = AppendRecord(*log, 1, ValueLog::kMaxRecordBytes);
  REQUIRE_CODE(log->Append(NameOf(2), Bytes(ValueLog::kMaxRecordBytes + 1)), kInvalidArgument);
  REQUIRE_CODE(log->Append(NameOf(2), Bytes()), kInvalidArgument);
  REQUIRE_OK(log->Sync());
  RequireRead(*log, largest);
  CHECK(log->stats().records == 1);
}

TEST_CASE("a read returns only the record with its name at its location") {
  auto env = NewDevice();
  auto log = OpenLog(*env, SmallOptions());
  const Record one = AppendRecord(*log, 1, 60);
  const Record two = AppendRecord(*log, 2, 60);
  for (const char* where : {"open block", "open segment", "sealed segment"}) {
    INFO(where);
    RequireRead(*log, one);
    REQUIRE_CODE(log->Read(two.name(), one.location), kCorruption);
    auto place = one.location;
    place.ordinal = 2;
    REQUIRE_CODE(log->Read(one.name(), place), kCorruption);
    place = one.location;
    place.block_offset += 1;
    REQUIRE_CODE(log->Read(one.name(), place), kCorruption);
    place.block_offset = Location::kMaxBlockOffset;
    REQUIRE_CODE(log->Read(one.name(), place), kCorruption);
    place = one.location;
    place.segment += 1;
    REQUIRE_CODE(log->Read(one.name(), place), kNotFound);
    place.segment = kNoSegment;
    REQUIRE_CODE(log->Read(one.name(), place), kNotFound);
    const auto wrong = log->Read(two.name(), one.location);
    CHECK(wrong.status().path() == SegmentPath(kLogDirectory, one.location.segment));
    CHECK(wrong.status().offset() == one.location.block_offset);
    if (std::string_view(where) == "open block") {
      REQUIRE_OK(log->Sync());
    } else {
      REQUIRE_OK(log->SealOpenSegment());
    }
  }
}

TEST_CASE("the records of a segment are visited in order, and moved, and the segment removed") {
  auto env = NewDevice();
  auto log = OpenLog(*env, SmallOptions());
  Random random(3);
  std::vector<Record> records;
  for (uint64_t number = 0; number < 150; ++number) {
    records.push_back(AppendRecord(*log, number, RandomSize(random, 400)));
  }
  REQUIRE_OK(log->SealOpenSegment());
  size_t next = 0;
  uint64_t bytes = 0;
  for (const auto& segment : log->segments()) {
    CHECK_FALSE(segment.open);
    CHECK(segment.bytes == FileBytes(*env, SegmentPath(kLogDirectory, segment.id)).size());
    bytes += segment.bytes;
    const size_t first = next;
    uint64_t plain = 0;
    auto visited = log->ForEachRecord(
        segment.id, [&](const ChunkName& name, const Location& location, ByteView content) {
          const Record& record = records.at(next++);
          CHECK(name == record.name());
          CHECK(location == record.location);
          CHECK(Bytes(content.begin(), content.end()) == record.bytes());
          plain += content.size();
          return Status::Ok();
        });
    REQUIRE_OK(visited);
    CHECK(*visited == 0);
    CHECK(next - first == segment.records);
    CHECK(plain == segment.plain_bytes);
  }
  CHECK(next == records.size());
  CHECK(log->stats().flash_bytes == bytes);
  CHECK(log->stats().bytes_written == bytes);

  const SegmentId oldest = log->segments()[0].id;
  RequireRead(*log, records[0]);
  const auto before = env->GetDiskSpace(kLogDirectory);
  REQUIRE_OK(before);
  REQUIRE_OK(log->Remove(oldest));
  const auto after = env->GetDiskSpace(kLogDirectory);
  REQUIRE_OK(after);
  CHECK(after->free_bytes > before->free_bytes);  // no reader holds the file open
  for (const Record& record : records) {
    if (record.location.segment != oldest) {
      RequireRead(*log, record);
      continue;
    }
    REQUIRE_CODE(log->Read(record.name(), record.location), kNotFound);
    CHECK_FALSE(log->Holds(record.name(), record.location));
  }
  REQUIRE_CODE(log->Remove(oldest), kNotFound);
  auto none = [](const ChunkName&, const Location&, ByteView) { return Status::Ok(); };
  REQUIRE_CODE(log->ForEachRecord(oldest, none), kNotFound);

  // A visitor's failure ends the visit.
  int calls = 0;
  auto ended =
      log->ForEachRecord(log->segments()[0].id, [&](const ChunkName&, const Location&, ByteView) {
        ++calls;
        return Status(StatusCode::kInterrupted, "enough");
      });
  REQUIRE_CODE(ended, kInterrupted);
  CHECK(calls == 1);
}

TEST_CASE("the open segment is neither visited nor removed") {
  auto env = NewDevice();
  auto log = OpenLog(*env, SmallOptions());
  const Record record = AppendRecord(*log, 1, 10);
  auto none = [](const ChunkName&, const Location&, ByteView) { return Status::Ok(); };
  REQUIRE_CODE(log->Remove(record.location.segment), kInvalidArgument);
  REQUIRE_CODE(log->ForEachRecord(record.location.segment, none), kInvalidArgument);
  RequireRead(*log, record);
  REQUIRE_OK(log->SealOpenSegment());
  REQUIRE_OK(log->SealOpenSegment());  // there is no open segment
  const Record next = AppendRecord(*log, 2, 10);
  CHECK(next.location.segment > record.location.segment);
  REQUIRE_OK(log->Remove(record.location.segment));
  RequireRead(*log, next);
}

TEST_CASE("a log that was sealed before closing opens without a write") {
  auto env = NewDevice();
  auto log = OpenLog(*env, SmallOptions());
  std::vector<Record> records;
  for (uint64_t number = 0; number < 30; ++number) {
    records.push_back(AppendRecord(*log, number, 200));
  }
  REQUIRE_OK(log->SealOpenSegment());
  log.reset();
  const uint64_t writes = env->Calls(SimCall::kWrite | SimCall::kRename | SimCall::kRemove);
  log = OpenLog(*env, SmallOptions());
  CHECK(env->Calls(SimCall::kWrite | SimCall::kRename | SimCall::kRemove) == writes);
  RequireReadAll(*log, records);
  for (const Record& record : records) CHECK(log->Holds(record.name(), record.location));
}

TEST_CASE("block sequences rise across segments and reopenings") {
  auto env = NewDevice();
  const BlockCodec codec;
  uint64_t last = 0;
  for (SegmentId id : {1, 65, 129}) {
    auto log = OpenLog(*env, SmallOptions());
    REQUIRE(AppendRecord(*log, 1, 600).location.segment == id);
    AppendRecord(*log, 2, 600);
    REQUIRE_OK(log->SealOpenSegment());
    auto manifest = ReadValueLogManifest(*env, kLogDirectory);
    REQUIRE_OK(manifest);
    auto reader = SegmentReader::Open(*env, kLogDirectory, {(*manifest)->store, id}, codec);
    REQUIRE_OK(reader);
    auto trailer = (*reader)->ReadTrailer();
    REQUIRE_OK(trailer);
    CHECK(trailer->first_sequence == last + 1);
    CHECK(trailer->last_sequence == last + 2);
    last = trailer->last_sequence;
  }
}

TEST_CASE("at most open_files segments are kept open") {
  auto env = NewDevice();
  ValueLogOptions options = SmallOptions();
  options.open_files = 2;
  auto log = OpenLog(*env, options);
  std::vector<Record> records;
  while (log->segments().size() < 5) records.push_back(AppendRecord(*log, records.size(), 200));
  REQUIRE_OK(log->SealOpenSegment());
  auto opens_for = [&](SegmentId id) {
    const auto record = std::find_if(records.begin(), records.end(),
                                     [id](const Record& r) { return r.location.segment == id; });
    const uint64_t before = env->Calls(SimCall::kOpen);
    RequireRead(*log, *record);
    return env->Calls(SimCall::kOpen) - before;
  };
  CHECK(opens_for(1) == 1);
  CHECK(opens_for(2) == 1);
  CHECK(opens_for(1) == 0);
  CHECK(opens_for(3) == 1);  // its reader replaces that of segment 2
  CHECK(opens_for(1) == 0);
  CHECK(opens_for(2) == 1);
}

TEST_CASE("a log that is opened read-only reads existing records and writes nothing") {
  auto env = NewDevice();
  ValueLogOptions options = SmallOptions();
  ValueLogOptions reading = options;
  reading.read_only = true;
  std::vector<Record> records;
  {
    auto empty = OpenLog(*env, reading);
    CHECK(empty->segments().empty());
    REQUIRE_CODE(empty->Append(NameOf(1), BytesOf(1, 1)), kReadOnly);
    auto log = OpenLog(*env, options);
    for (uint64_t number = 0; number < 50; ++number) {
      records.push_back(AppendRecord(*log, number, 200));
    }
    REQUIRE_OK(log->Sync());
  }
  const uint64_t calls = env->Calls(SimCall::kMutating);
  auto log = OpenLog(*env, reading);
  RequireReadAll(*log, records);
  uint64_t visited = 0;
  for (const auto& segment : log->segments()) {
    CHECK_FALSE(segment.open);
    auto damaged = log->ForEachRecord(segment.id, [&](const ChunkName&, const Location&, ByteView) {
      ++visited;
      return Status::Ok();
    });
    REQUIRE_OK(damaged);
    CHECK(*damaged == 0);
  }
  CHECK(visited == records.size());
  for (const Record& record : records) CHECK(log->Holds(record.name(), record.location));
  CHECK_FALSE(log->Holds(NameOf(1000), records.back().location));
  REQUIRE_CODE(log->Append(NameOf(1), BytesOf(1, 1)), kReadOnly);
  REQUIRE_CODE(log->Sync(), kReadOnly);
  REQUIRE_CODE(log->SealOpenSegment(), kReadOnly);
  REQUIRE_CODE(log->Remove(1), kReadOnly);
  CHECK(env->Calls(SimCall::kMutating) == calls);
}

TEST_CASE("a log on a real disk keeps its records") {
  const TemporaryDirectory temporary;
  auto env = NewPosixEnv();
  ValueLogOptions options = SmallOptions();
  options.directory = temporary.path();
  Random random(8);
  std::vector<Record> records;
  for (uint64_t life = 0; life < 3; ++life) {
    auto log = OpenLog(*env, options);
    RequireReadAll(*log, records);
    for (int step = 0; step < 40; ++step) {
      records.push_back(AppendRecord(*log, records.size(), RandomSize(random, 3000)));
    }
    REQUIRE_OK(log->Sync());
    RequireReadAll(*log, records);
    if (life == 1) {
      const SegmentId oldest = log->segments()[0].id;
      REQUIRE_OK(log->Remove(oldest));
      std::erase_if(records, [oldest](const Record& r) { return r.location.segment == oldest; });
      RequireReadAll(*log, records);
    }
  }
}

TEST_CASE("invalid options are refused") {
  auto env = NewDevice();
  ValueLogOptions options = SmallOptions();
  options.directory.clear();
  REQUIRE_CODE(ValueLog::Open(*env, options), kInvalidArgument);
  options = SmallOptions();
  options.segment_bytes = kMinSegmentTargetSize - 1;
  REQUIRE_CODE(ValueLog::Open(*env, options), kInvalidArgument);
  options = SmallOptions();
  options.block_bytes = kMaxBlockPlainBytes + 1;
  REQUIRE_CODE(ValueLog::Open(*env, options), kInvalidArgument);
  options = SmallOptions();
  options.open_files = 0;
  REQUIRE_CODE(ValueLog::Open(*env, options), kInvalidArgument);
  options = SmallOptions();
  options.directory = "/nowhere";
  REQUIRE_CODE(ValueLog::Open(*env, options), kNotFound);
}

}  // namespace siltfs::testing
