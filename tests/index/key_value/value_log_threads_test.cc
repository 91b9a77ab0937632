// Several threads at once; with the sanitizers this finds missing locks.
#include <atomic>
#include <mutex>
#include <thread>

#include "value_log_fixture.h"

namespace siltfs::testing {

// Only the main thread makes assertions; the others count faults.
TEST_CASE("threads append, read, sync, seal and remove at the same time") {
  auto env = NewDevice();
  auto log = OpenLog(*env, SmallOptions());
  std::mutex mutex;
  std::vector<Record> records;  // guarded by mutex
  std::atomic<int> wrong{0};
  std::atomic<bool> done{false};
  std::atomic<uint64_t> reads{0};
  std::atomic<uint64_t> removed{0};

  auto append = [&](uint64_t thread) {
    Random random(thread);
    // Appends at least 1500 records. Goes on until the other threads have made progress, because
    // they may be scheduled late.
    for (uint64_t i = 0; i < 1500 || reads < 500 || removed == 0; ++i) {
      if (i >= 1500) std::this_thread::yield();
      const uint64_t number = thread * 100000 + i;
      const size_t size = RandomSize(random, 900);
      auto location = log->Append(NameOf(number), BytesOf(number, size));
      if (!location.ok()) {
        ++wrong;
        continue;
      }
      // The record may be missing only if its segment was removed: it became the oldest of 30
      // segments while this thread slept.
      if (!log->Holds(NameOf(number), *location) &&
          !log->Read(NameOf(number), *location).status().Is(StatusCode::kNotFound)) {
        ++wrong;
      }
      const std::lock_guard lock(mutex);
      records.push_back({number, size, *location});
    }
  };
  auto read = [&](uint64_t thread) {
    Random random(thread);
    while (!done) {
      Record record;
      {
        const std::lock_guard lock(mutex);
        if (records.empty()) continue;
        // Reads one of the ten newest records half of the time.
        const size_t span = random.OneIn(2) ? std::min<size_t>(records.size(), 10) : records.size();
        record = records[records.size() - 1 - random.Below(span)];
      }
      auto bytes = log->Read(record.name(), record.location);
      if (bytes.ok() ? *bytes != record.bytes() : !bytes.status().Is(StatusCode::kNotFound)) {
        ++wrong;
      }
      ++reads;
    }
  };
  auto sync = [&] {
    for (int i = 0; !done; ++i) {
      if (!(i % 20 == 0 ? log->SealOpenSegment() : log->Sync()).ok()) ++wrong;
    }
  };
  auto reclaim = [&] {
    while (!done) {
      const auto segments = log->segments();
      if (segments.size() < 30 || segments[0].open) continue;
      uint64_t visited = 0;
      auto damaged =
          log->ForEachRecord(segments[0].id, [&](const ChunkName&, const Location&, ByteView) {
            ++visited;
            return Status::Ok();
          });
      if (!damaged.ok() || *damaged != 0 || visited != segments[0].records) ++wrong;
      if (!log->Remove(segments[0].id).ok()) ++wrong;
      if (log->stats().damaged != 0) ++wrong;
      ++removed;
    }
  };

  std::vector<std::thread> writers;
  for (uint64_t thread = 1; thread <= 2; ++thread) writers.emplace_back(append, thread);
  std::vector<std::thread> others;
  for (uint64_t thread = 11; thread <= 12; ++thread) others.emplace_back(read, thread);
  others.emplace_back(sync);
  others.emplace_back(reclaim);
  for (std::thread& thread : writers) thread.join();
  done = true;
  for (std::thread& thread : others) thread.join();
  CHECK(wrong == 0);

  REQUIRE_OK(log->Sync());
  log.reset();
  env->PowerCut();
  log = OpenLog(*env, SmallOptions());
  std::map<SegmentId, bool> present;
  for (const auto& segment : log->segments()) present[segment.id] = true;
  for (const Record& record : records) {
    if (present.contains(record.location.segment)) RequireRead(*log, record);
  }
}

// A reader that does not find its segment's file checks whether the segment was removed.
TEST_CASE("reads of a segment that is being removed find its record or no such segment") {
  auto env = NewDevice();
  ValueLogOptions options = SmallOptions();
  options.open_files = 1;
  auto log = OpenLog(*env, options);
  std::vector<Record> records;
  for (uint64_t number = 0; number < 100; ++number) {
    records.push_back(AppendRecord(*log, number, 5000));
  }
  REQUIRE_OK(log->SealOpenSegment());
  std::atomic<int> wrong{0};
  std::atomic<size_t> next{0};
  auto read = [&] {
    for (int round = 0; round < 100; ++round) {
      const size_t begin = next;
      for (size_t i = begin; i < std::min<size_t>(begin + 3, records.size()); ++i) {
        auto bytes = log->Read(records[i].name(), records[i].location);
        if (bytes.ok() ? *bytes != records[i].bytes() : !bytes.status().Is(StatusCode::kNotFound)) {
          ++wrong;
        }
      }
    }
  };
  std::thread one(read);
  std::thread two(read);
  for (const Record& record : records) {
    if (!log->Remove(record.location.segment).ok()) ++wrong;
    ++next;
  }
  one.join();
  two.join();
  CHECK(wrong == 0);
  CHECK(log->segments().empty());
}

}  // namespace siltfs::testing
