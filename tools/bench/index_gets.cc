#include "tools/bench/index_gets.h"

#include <algorithm>

#include "tools/bench/bench_threads.h"
#include "tools/bench/rounds.h"

namespace siltfs {

IndexGets::IndexGets(ChunkIndex& index, const IndexKeys& keys, size_t batch, uint64_t seed)
    : index_(index), keys_(keys), random_(seed), numbers_(batch), names_(batch), results_(batch) {}

void IndexGets::ExpectUpdates(const UpdateOrder& order, uint64_t updates) {
  order_ = &order;
  updates_ = updates;
}

void IndexGets::GetPresent(size_t count, uint64_t present) {
  for (size_t i = 0; i < count; ++i) numbers_[i] = random_.Below(present);
  Get(count);
  uint64_t wrong = 0;
  for (size_t i = 0; i < count; ++i) {
    const uint32_t version = order_ == nullptr ? 0 : order_->VersionAfter(updates_, numbers_[i]);
    wrong += results_[i] == keys_.LocationOf(numbers_[i], version) ? 0 : 1;
  }
  if (wrong == 0) return;
  throw BenchFailure("index: of " + std::to_string(count) + " lookups " + std::to_string(wrong) +
                     " did not return the newest value that was put");
}

void IndexGets::GetAbsent(size_t count) {
  for (size_t i = 0; i < count; ++i) {
    numbers_[i] = IndexKeys::kAbsent + random_.Below(IndexKeys::kAbsent);
  }
  Get(count);
  uint64_t found = 0;
  for (size_t i = 0; i < count; ++i) found += results_[i] ? 1 : 0;
  if (found == 0) return;
  throw BenchFailure("index: of " + std::to_string(count) + " names that were never put " +
                     std::to_string(found) + " were found");
}

void IndexGets::Get(size_t count) {
  for (size_t i = 0; i < count; ++i) names_[i] = keys_.NameOf(numbers_[i]);
  if (member_ != nullptr) member_->Begin();
  Status got;
  for (size_t begin = 0; begin < count && got.ok();) {
    const size_t size = std::min(names_per_call_, count - begin);
    const Stopwatch getting;
    got = index_.Get(std::span(names_).subspan(begin, size),
                     std::span(results_).subspan(begin, size));
    if (latency_ != nullptr) latency_->Record(getting.nanoseconds());
    begin += size;
  }
  if (member_ != nullptr) member_->End();
  Require(got);
}

}  // namespace siltfs
