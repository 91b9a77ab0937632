#include "store/bucket/block_fetcher.h"

#include <algorithm>
#include <string>
#include <utility>

#include "store/bucket/bucket_names.h"
#include "store/bucket/bucket_retry.h"
#include "store/env/files.h"

namespace siltfs {
namespace {

constexpr size_t kTableBytes = size_t{4} << 20;
constexpr size_t kMostTasks = 256;

}  // namespace

struct BlockFetcher::Flight {
  uint32_t count = 0;                                           // of registered blocks
  bool done = false;                                            // guarded by the fetcher's mutex
  Status status;                                                // constant when done
  std::shared_ptr<Blocks> blocks = std::make_shared<Blocks>();  // constant when done
};

BlockFetcher::BlockFetcher(ObjectStore& objects, LocalCache& cache, StopSignal& stop,
                           Options options)
    : objects_(objects), cache_(cache), stop_(stop), options_(options), tables_(kTableBytes) {}

BlockFetcher::~BlockFetcher() { Stop(); }

// --- Requests.

Status BlockFetcher::Get(const BlockChecksums& checksums, MutableByteView bytes, uint32_t first) {
  const SegmentContent& content = checksums.content();
  const uint64_t offset = uint64_t{first} * kObjectBlockBytes;
  SILTFS_ASSIGN_OR_RETURN(const size_t got,
                          objects_.Read(SegmentObjectKey(content.id), {}, offset, bytes));
  if (got != bytes.size())
    return Status(StatusCode::kCorruption, "the bucket has sent too few bytes of the object");
  for (uint32_t block = first; block * uint64_t{kObjectBlockBytes} < offset + got; ++block) {
    const ByteView one =
        bytes.subspan((block - first) * size_t{kObjectBlockBytes}, BlockBytes(content.size, block));
    if (!checksums.Matches(block, one)) {
      return Status(StatusCode::kCorruption,
                    "the bucket has sent bytes that do not match the checksum of the block");
    }
  }
  return Status::Ok();
}

Result<BlockChecksums> BlockFetcher::ReadChecksums(const SegmentContent& content) {
  Bytes trailer(TrailerBytes(content.size));
  SILTFS_ASSIGN_OR_RETURN(const size_t got,
                          objects_.Read(SegmentObjectKey(content.id), {}, content.size, trailer));
  trailer.resize(got);
  return BlockChecksums::Decode(content, trailer);
}

void BlockFetcher::Remember(BlockChecksums checksums) {
  const SegmentContent content = checksums.content();
  tables_.Put(content.id, std::make_shared<const BlockChecksums>(std::move(checksums)),
              TrailerBytes(content.size));
}

std::optional<BlockChecksums> BlockFetcher::KeptChecksums(const SegmentContent& content) {
  const LocalCache::Hit hit = cache_.Find(content, 0);
  if (!hit.file || hit.whole) return std::nullopt;
  Bytes trailer(TrailerBytes(content.size));
  const auto got = hit.file->Read(content.size, trailer);
  auto kept = BlockChecksums::Decode(content, ByteView(trailer).first(got.ok() ? *got : 0));
  if (!kept.ok()) return std::nullopt;
  return std::move(kept).value();
}

Result<BlockChecksums> BlockFetcher::LoadChecksums(const SegmentContent& content) {
  if (auto kept = KeptChecksums(content)) return std::move(*kept);
  std::optional<BlockChecksums> fetched;
  SILTFS_RETURN_IF_ERROR(RepeatUnlessOut(outage_, stop_, options_.timeout, [&] {
    SILTFS_ASSIGN_OR_RETURN(fetched, ReadChecksums(content));
    return Status::Ok();
  }));
  return std::move(*fetched);
}

Result<std::shared_ptr<const BlockChecksums>> BlockFetcher::Checksums(
    const SegmentContent& content) {
  {
    MutexLock lock(mutex_);
    while (loading_tables_.contains(content.id)) changed_.Wait(mutex_);
    if (auto known = tables_.Get(content.id)) return std::shared_ptr<const BlockChecksums>(known);
    loading_tables_.insert(content.id);
  }
  auto loaded = LoadChecksums(content);
  MutexLock lock(mutex_);
  loading_tables_.erase(content.id);
  changed_.NotifyAll();
  if (!loaded.ok()) return loaded.status();
  auto table = std::make_shared<const BlockChecksums>(std::move(loaded).value());
  tables_.Put(content.id, table, TrailerBytes(content.size));
  return std::shared_ptr<const BlockChecksums>(table);
}

// --- Flights.

std::shared_ptr<BlockFetcher::Flight> BlockFetcher::Register(const SegmentContent& content,
                                                             uint32_t block, uint32_t count,
                                                             bool& is_mine) {
  const uint32_t end = std::min(BlockCount(content.size), block + std::min(count, kMostBlocks));
  MutexLock lock(mutex_);
  if (const auto found = flights_.find({content.id, block}); found != flights_.end()) {
    is_mine = false;
    return found->second;
  }
  is_mine = true;
  auto flight = std::make_shared<Flight>();
  flight->blocks->first = block;
  // A block that an earlier run has left is read and verified alone.
  const bool alone = cache_.Find(content, block).presence == LocalCache::Presence::kUnverified;
  for (uint32_t next = block; next < (alone ? block + 1 : end); ++next) {
    const bool missing = !flights_.contains({content.id, next}) &&
                         cache_.Find(content, next).presence == LocalCache::Presence::kAbsent;
    if (next > block && !missing) break;
    flights_[{content.id, next}] = flight;
    ++flight->count;
  }
  return flight;
}

bool BlockFetcher::LoadUnverified(const BlockChecksums& checksums, Flight& flight) {
  const SegmentContent& content = checksums.content();
  const uint32_t block = flight.blocks->first;
  const LocalCache::Hit hit = cache_.Find(content, block);
  if (hit.presence == LocalCache::Presence::kAbsent) return false;
  Bytes& bytes = flight.blocks->bytes;
  bytes.resize(BlockBytes(content.size, block));
  const auto got = hit.file->Read(uint64_t{block} * kObjectBlockBytes, bytes);
  const bool intact = got.ok() && *got == bytes.size() && checksums.Matches(block, bytes);
  cache_.MarkVerified(content.id, block, intact);
  return intact;
}

Status BlockFetcher::Load(const SegmentContent& content, Flight& flight) {
  SILTFS_ASSIGN_OR_RETURN(const auto checksums, Checksums(content));
  if (flight.count == 1 && LoadUnverified(*checksums, flight)) return Status::Ok();
  const uint32_t first = flight.blocks->first;
  const uint64_t begin = uint64_t{first} * kObjectBlockBytes;
  const uint64_t end =
      std::min<uint64_t>(content.size, begin + uint64_t{flight.count} * kObjectBlockBytes);
  flight.blocks->bytes.resize(end - begin);
  {
    MutexLock lock(mutex_);
    while (gets_ >= options_.most_gets) changed_.Wait(mutex_);
    ++gets_;
  }
  const Status got = RepeatUnlessOut(outage_, stop_, options_.timeout,
                                     [&] { return Get(*checksums, flight.blocks->bytes, first); });
  {
    MutexLock lock(mutex_);
    --gets_;
    changed_.NotifyAll();
  }
  SILTFS_RETURN_IF_ERROR(got);
  cache_.Store(content, first, flight.blocks->bytes);
  if (!cache_.HasTrailer(content.id))
    cache_.StoreTrailer(content, AsBytes(checksums->EncodeTrailer()));
  return Status::Ok();
}

Result<std::shared_ptr<const BlockFetcher::Blocks>> BlockFetcher::Fetch(
    const SegmentContent& content, uint32_t block, uint32_t count) {
  bool is_mine = false;
  const auto flight = Register(content, block, count, is_mine);
  if (is_mine) {
    Status status = Load(content, *flight);
    MutexLock lock(mutex_);
    for (uint32_t i = 0; i < flight->count; ++i)
      flights_.erase({content.id, flight->blocks->first + i});
    flight->status = std::move(status);
    flight->done = true;
    changed_.NotifyAll();
  } else {
    MutexLock lock(mutex_);
    while (!flight->done) changed_.Wait(mutex_);
  }
  if (!flight->status.ok()) return flight->status;
  return std::shared_ptr<const Blocks>(flight->blocks);
}

// --- Read-ahead.

void BlockFetcher::Prefetch(const SegmentContent& content, uint32_t block, uint32_t count) {
  MutexLock lock(mutex_);
  if (options_.threads == 0 || stopping_ || tasks_.size() >= kMostTasks) return;
  tasks_.push_back({content, block, count});
  while (threads_.size() < options_.threads) threads_.emplace_back([this] { ThreadMain(); });
  changed_.NotifyAll();
}

void BlockFetcher::ThreadMain() {
  for (;;) {
    Task task;
    {
      MutexLock lock(mutex_);
      while (tasks_.empty() && !stopping_) changed_.Wait(mutex_);
      if (stopping_) return;
      Task& front = tasks_.front();
      task = front;
      // Other threads take the rest of the task at the same time.
      const uint32_t step = std::min(front.count, kMostBlocks);
      front.block += step;
      front.count -= step;
      if (front.count == 0) tasks_.pop_front();
      task.count = step;
    }
    const uint32_t end = std::min(BlockCount(task.content.size), task.block + task.count);
    for (uint32_t block = task.block; block < end; ++block) {
      // Without room, the blocks would be lost, and fetched again by the reader.
      if (!cache_.CanTake(uint64_t{kMostBlocks} * kObjectBlockBytes)) break;
      if (cache_.Find(task.content, block).presence == LocalCache::Presence::kPresent) continue;
      const auto fetched = Fetch(task.content, block, end - block);
      if (!fetched.ok()) {
        fetched.status().IgnoreError("the reader fetches the block itself, and reports the error");
        break;
      }
      const auto blocks = BlockCount(static_cast<uint32_t>((*fetched)->bytes.size()));
      block = std::max(block, (*fetched)->first + blocks - 1);
    }
  }
}

void BlockFetcher::Stop() {
  std::vector<std::thread> threads;
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    tasks_.clear();
    threads.swap(threads_);
    changed_.NotifyAll();
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace siltfs
