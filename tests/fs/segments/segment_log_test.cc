// The open segments of the log after a store is opened again: one or several that can be continued,
// and some that cannot.
#include "fs/segments/segment_log.h"

#include <atomic>
#include <chrono>
#include <thread>

#include "store/segment/block_codec.h"
#include "store/segment/segment_files.h"
#include "tests/fs/chunks/store_under_test.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

// A segment of one block, closed but not sealed, as an unmount leaves segments that await sealing.
SegmentRecord WriteUnsealed(StoreUnderTest& store, SegmentId id, uint64_t sequence) {
  auto writer = SegmentWriter::Create(store.env(), store.path(), {store.identity().uuid, id},
                                      SegmentKind::kData, 0, {.target_size = 4096});
  REQUIRE_OK(writer);
  PlainBlock block;
  block.plain = RandomChunk(id, 8000);
  ChunkRecord record;
  record.name.bytes.fill(static_cast<uint8_t>(id));
  record.length = 8000;
  block.records.push_back(record);
  const BlockCodec codec;
  auto encoded = codec.Encode(block, {});
  REQUIRE_OK(encoded);
  REQUIRE_OK((*writer)->Append(*encoded, sequence, 0));
  REQUIRE_OK((*writer)->Sync());
  return {0, false, (*writer)->size(), 1, 8000, sequence, sequence};
}

}  // namespace

TEST_CASE("many segments that a clean unmount left unsealed are sealed, and writing goes on") {
  StoreSettings settings;
  settings.segment_bytes = 4096;
  StoreUnderTest store(settings);
  const SegmentId count = GENERATE(1, 2, 3, 4, 6);
  for (SegmentId id = 1; id <= count; ++id) {
    store.committed().segments[id] = WriteUnsealed(store, id, id);
  }
  store.committed().ids.segment_limit = count + 1;
  store.Open();
  const PutChunks all = PutMany(store.chunks(), 0, 40);
  store.Commit();
  RequireAll(store.chunks(), all);
  store.Reopen();
  RequireAll(store.chunks(), all);
  for (SegmentId id = 1; id <= count; ++id) {
    ChunkName name;
    name.bytes.fill(static_cast<uint8_t>(id));
    REQUIRE(ComesBack(store.chunks(), name, RandomChunk(id, 8000)));
  }
}

TEST_CASE("an open segment with a damaged end or beginning does not keep the store from opening") {
  StoreUnderTest store;
  store.Open();
  const PutChunks all = PutMany(store.chunks(), 0, 25);
  store.Close();
  const FoundBlock last = AllBlocks(store).back();
  const std::string path = SegmentPath(store.path(), last.segment);
  size_t lost = 0;
  auto info = store.env().GetFileInfo(path);
  REQUIRE_OK(info);
  const uint64_t end = info->size;
  SECTION("the header") { FlipByte(store, path, 5); }
  SECTION("the last block's head") {
    FlipByte(store, path, last.offset + 8);
    lost = last.head.records.size();
  }
  SECTION("the file is shorter than it was") {
    auto file = store.env().OpenFile(path, {.mode = OpenMode::kReadWrite});
    REQUIRE_OK(file);
    REQUIRE_OK((*file)->Truncate(end - 1));
    REQUIRE_OK((*file)->Sync());
    lost = last.head.records.size();
  }
  SECTION("the file is longer than it was") {
    auto file = store.env().OpenFile(path, {.mode = OpenMode::kReadWrite});
    REQUIRE_OK(file);
    REQUIRE_OK((*file)->Write(end, RandomChunk(1, 100)));
    REQUIRE_OK((*file)->Sync());
  }
  for (int mount = 0; mount < 3; ++mount) {
    store.Open(/*read_only=*/mount == 1);
    size_t failed = 0;
    for (size_t i = 0; i < all.chunks.size(); ++i) {
      auto got = store.chunks().Get(all.names[i], 2000);
      if (got.ok()) {
        REQUIRE(ComesBack(store.chunks(), all.names[i], all.chunks[i]));
      } else {
        REQUIRE_CODE(got, kCorruption);
        ++failed;
      }
    }
    REQUIRE(failed == lost);
    if (mount == 1) {
      store.Kill();
    } else {
      const PutChunks more = PutMany(store.chunks(), 700 + mount, 20);
      RequireAll(store.chunks(), more);
      store.Close();
      // Metadata has the new record of the segment.
      REQUIRE(store.committed().segments.at(last.segment).sealed);
    }
  }
  // The same holds after a crash.
  store.Open();
  store.Crash();
  store.Open();
  size_t readable = 0;
  for (size_t i = 0; i < all.chunks.size(); ++i) {
    readable += store.chunks().Get(all.names[i], 2000).ok() ? 1 : 0;
  }
  REQUIRE(readable == all.chunks.size() - lost);
}

TEST_CASE("WaitUntilSealed waits only for segments that were full before the call") {
  // Segments of one block each; so many that waiting for the last of them takes long.
  constexpr SegmentId kMostSegments = 10'000;
  SimEnv env;
  REQUIRE_OK(env.CreateDirectory("/store"));
  REQUIRE_OK(CreateSegmentsDirectory(env, "/store"));
  PlainBlock plain;
  plain.plain = RandomChunk(1, 5000);
  ChunkRecord record;
  record.length = 5000;
  plain.records.push_back(record);
  const auto block = BlockCodec().Encode(plain, {});
  REQUIRE_OK(block);
  SegmentLog* running = nullptr;
  std::atomic<bool> steady = false;
  std::atomic<bool> done = false;
  SegmentLog::Options options;
  options.store = "/store";
  options.segment_bytes = kMinSegmentTargetSize;  // full with one block
  options.segment_limit = kMostSegments + 10;
  // Each segment is full before the log has sealed the previous one, as on a slow device with a
  // constant writer.
  SegmentLog log(env, options, [&](SegmentId sealed) {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    while (!done && running->next_segment() <= sealed + 3) std::this_thread::yield();
    steady = true;
  });
  running = &log;
  bool all_written = false;
  std::thread writer([&] {
    while (!done && log.next_segment() <= kMostSegments) {
      if (!log.Append(LogStream::kData, *block).ok()) break;
    }
    all_written = !done;
    done = true;
  });
  while (!steady && !done) std::this_thread::yield();
  log.WaitUntilSealed();
  done = true;
  writer.join();
  REQUIRE_OK(log.failure());
  CHECK_FALSE(all_written);
}

TEST_CASE("segment ids are claimed before they are used, and used once") {
  StoreSettings settings;
  settings.segment_bytes = 4096;
  settings.block_plain_bytes = 16u << 10;
  StoreUnderTest store(settings);
  SegmentId limit = 1;
  for (uint64_t mount = 0; mount < 4; ++mount) {
    store.Open();
    REQUIRE(store.first_segment() >= limit);
    PutMany(store.chunks(), 1000 * mount, 50);
    store.Commit();
    for (const FoundBlock& block : AllBlocks(store)) {
      REQUIRE(block.segment < store.committed().ids.segment_limit);
      REQUIRE(block.head.sequence < (store.committed().ids.epoch + 1) << 40);
    }
    if (mount % 2 == 0) {
      store.Close();
    } else {
      store.Crash();
    }
    limit = AllBlocks(store).back().segment + 1;
  }
}

}  // namespace siltfs::testing
