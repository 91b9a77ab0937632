#include "fs/ops/record_batch.h"

#include <algorithm>
#include <cstring>

#include "fs/records/schema.h"

namespace siltfs {
namespace {

constexpr size_t kBlockBytes = 256u << 10;

}  // namespace

RecordBatch::RecordBatch() : runs_(kTablesOfInodes.size()) {}

void RecordBatch::Add(std::string_view key, std::string_view value) {
  char* const at = Allocate(key.size() + value.size());
  std::memcpy(at, key.data(), key.size());
  if (!value.empty()) std::memcpy(at + key.size(), value.data(), value.size());
  const auto table = std::ranges::find(kTablesOfInodes, static_cast<Table>(key.front()));
  runs_[static_cast<size_t>(table - kTablesOfInodes.begin())].push_back(
      {{at, key.size()}, {at + key.size(), value.size()}});
  bytes_ += key.size() + value.size() + sizeof(KvRecord);
}

void RecordBatch::Clear() {
  blocks_.clear();
  free_ = nullptr;
  left_ = 0;
  bytes_ = 0;
  for (KvRun& run : runs_) run.clear();
}

const std::vector<KvRun>& RecordBatch::Runs() {
  const auto is_before = [](const KvRecord& a, const KvRecord& b) { return a.key < b.key; };
  // Most runs are sorted already, because the numbers of new inodes ascend.
  for (KvRun& run : runs_) {
    if (!std::is_sorted(run.begin(), run.end(), is_before))
      std::sort(run.begin(), run.end(), is_before);
  }
  return runs_;
}

char* RecordBatch::Allocate(size_t bytes) {
  if (bytes > left_) {
    left_ = std::max(bytes, kBlockBytes);
    blocks_.push_back(std::make_unique_for_overwrite<char[]>(left_));
    free_ = blocks_.back().get();
  }
  char* const at = free_;
  free_ += bytes;
  left_ -= bytes;
  return at;
}

}  // namespace siltfs
