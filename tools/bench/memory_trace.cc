#include "tools/bench/memory_trace.h"

#include <fmt/format.h>

#include <algorithm>

#include "store/base/bytes.h"
#include "tools/bench/bench_threads.h"

namespace siltfs {
namespace {

constexpr std::string_view kHeader =
    "seconds,phase,entries,puts,gets,log_store_bytes,hash_store_filter_bytes,page_index_bytes,"
    "sorted_store_filter_bytes,other_bytes,index_bytes,resident_bytes,log_stores,hash_stores,"
    "sorted_stores,conversions,merges,flash_bytes_written\n";

// HashStores and sorted runs share a column.
bool IsConverted(const IndexComponentStats& store) {
  return store.kind == "hash_store" || store.kind == "run_store";
}

struct StoreCounts {
  uint64_t logs = 0;
  uint64_t hashes = 0;
  uint64_t sorted = 0;
};

StoreCounts CountsOf(const IndexStats& stats) {
  StoreCounts counts;
  for (const IndexComponentStats& store : stats.stores) {
    counts.logs += store.kind == "log_store" ? 1 : 0;
    counts.hashes += IsConverted(store) ? 1 : 0;
    counts.sorted += store.kind == "sorted_store" ? 1 : 0;
  }
  return counts;
}

}  // namespace

IndexMemory MemoryOf(const IndexStats& stats) {
  IndexMemory memory;
  memory.total = stats.memory_bytes;
  for (const IndexComponentStats& store : stats.stores) {
    if (store.kind == "log_store") memory.log_stores += store.memory_bytes;
    if (IsConverted(store)) memory.hash_store_filters += store.memory_bytes;
    if (store.kind == "sorted_store") {
      memory.sorted_store_filters += store.filter_memory_bytes;
      memory.page_indexes += store.memory_bytes - store.filter_memory_bytes;
    }
  }
  const uint64_t known = memory.log_stores + memory.hash_store_filters + memory.page_indexes +
                         memory.sorted_store_filters;
  memory.other = memory.total - std::min(known, memory.total);
  return memory;
}

MemoryTrace::MemoryTrace(Env& env, const std::string& path, std::chrono::milliseconds interval,
                         const ChunkIndex& index, const MemoryMeter& meter,
                         const IndexProgress& progress)
    : interval_(interval), index_(index), meter_(meter), progress_(progress) {
  auto file = env.OpenFile(path, {.mode = OpenMode::kCreate});
  Require(file.status());
  {
    MutexLock lock(mutex_);
    file_ = std::move(*file);
    Require(Write(std::string(kHeader)));
  }
  thread_ = std::thread([this] { Run(); });
}

MemoryTrace::~MemoryTrace() { StopThread(); }

void MemoryTrace::Run() {
  MutexLock lock(mutex_);
  while (!stop_ && status_.ok()) {
    status_ = TakeSample();
    if (!stop_) stop_changed_.WaitFor(mutex_, interval_);
  }
}

void MemoryTrace::StopThread() {
  {
    MutexLock lock(mutex_);
    stop_ = true;
    stop_changed_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

Status MemoryTrace::Write(const std::string& line) {
  SILTFS_RETURN_IF_ERROR(file_->Write(size_, AsBytes(line)));
  size_ += line.size();
  return Status::Ok();
}

Status MemoryTrace::TakeSample() {
  uint64_t resident = 0;
  try {
    resident = meter_.Growth();
  } catch (const BenchFailure& failure) {
    return {StatusCode::kIoError, failure.what()};
  }
  const char* const phase = progress_.phase;
  const uint64_t entries = progress_.entries;
  const uint64_t puts = progress_.puts;
  const uint64_t gets = progress_.gets;
  const IndexStats stats = index_.stats();
  const IndexMemory memory = MemoryOf(stats);
  const StoreCounts counts = CountsOf(stats);
  ++samples_;
  if (memory.total >= peak_.memory.total) peak_ = {.memory = memory, .entries = entries};
  return Write(fmt::format(
      "{:.3f},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", clock_.seconds(), phase,
      entries, puts, gets, memory.log_stores, memory.hash_store_filters, memory.page_indexes,
      memory.sorted_store_filters, memory.other, memory.total, resident, counts.logs, counts.hashes,
      counts.sorted, stats.conversions, stats.merges, stats.flash_bytes_written));
}

void MemoryTrace::Sample() {
  MutexLock lock(mutex_);
  Require(status_);
  Require(TakeSample());
}

MemoryPeak MemoryTrace::TakePeak() {
  MutexLock lock(mutex_);
  const MemoryPeak peak = peak_;
  peak_ = {};
  return peak;
}

void MemoryTrace::End() {
  Sample();
  StopThread();
  MutexLock lock(mutex_);
  Require(status_);
}

uint64_t MemoryTrace::samples() const {
  MutexLock lock(mutex_);
  return samples_;
}

}  // namespace siltfs
