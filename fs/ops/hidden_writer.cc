#include "fs/ops/hidden_writer.h"

#include <algorithm>
#include <utility>

#include "fs/records/schema.h"

namespace siltfs {
namespace {

// The first range is small, because most clones are small. Later ranges grow with the clone, so
// that there are few of them.
constexpr uint64_t kFirstRange = 16;
constexpr uint64_t kLargestRange = 1u << 16;
constexpr uint64_t kGrowth = 16;
// Approximate bytes of a mutation in a batch, besides its key and value.
constexpr size_t kMutationBytes = 24;
// The disk must have room for this multiple of a batch: its log, its table, and merged tables.
constexpr uint64_t kRoomFactor = 4;

}  // namespace

HiddenWriter::~HiddenWriter() {
  WaitForWrite().IgnoreError("what was written is removed");
  if (!published_) RemoveAll();
}

Result<uint64_t> HiddenWriter::NextNumber() {
  if (ranges_.empty() || next_ == ranges_.back().end) {
    const uint64_t last = ranges_.empty() ? 0 : ranges_.back().end - ranges_.back().first;
    const uint64_t count = std::clamp(last * kGrowth, kFirstRange, kLargestRange);
    SILTFS_ASSIGN_OR_RETURN(next_, ids_.NextInodes(count));
    ranges_.push_back({next_, next_ + count});
    hidden_.Add(ranges_.back());
    Put(HiddenRangeKey(next_), ranges_.back().EncodeEnd());
  }
  return next_++;
}

void HiddenWriter::Put(std::string key, std::string value) {
  bytes_ += key.size() + value.size() + kMutationBytes;
  batch_.push_back({std::move(key), std::move(value)});
}

void HiddenWriter::Remove(std::string key) {
  bytes_ += key.size() + kMutationBytes;
  batch_.push_back({std::move(key), std::nullopt});
}

Status HiddenWriter::WaitForWrite() {
  if (thread_.joinable()) thread_.join();
  Status written = std::exchange(written_, Status::Ok());
  written_.IgnoreError("no write runs");
  return written;
}

Status HiddenWriter::Flush() {
  SILTFS_RETURN_IF_ERROR(WaitForWrite());
  if (batch_.empty()) return Status::Ok();
  SILTFS_RETURN_IF_ERROR(store_.CheckRoom(kRoomFactor * bytes_));
  writing_.clear();
  std::swap(writing_, batch_);
  bytes_ = 0;
  thread_ = std::thread([this] {
    // Sorted keys go faster into the tables in memory. Mutations of one key keep their order.
    std::stable_sort(writing_.begin(), writing_.end(),
                     [](const Mutation& a, const Mutation& b) { return a.key < b.key; });
    written_ = store_.metadata().WriteThrough(writing_);
  });
  return Status::Ok();
}

Status HiddenWriter::FlushAndWait() {
  SILTFS_RETURN_IF_ERROR(Flush());
  return WaitForWrite();
}

std::string HiddenWriter::LinkKey(uint64_t inode) const {
  return HiddenLinkKey(ranges_.front().first, inode);
}

KeyRange HiddenWriter::LinkKeys() const {
  return {LinkKey(0), RangeOf(Table::kHidden, ranges_.front().first).end};
}

void HiddenWriter::AddPublication(Change& change) const {
  for (const HiddenRange& range : ranges_) change.Delete(HiddenRangeKey(range.first));
}

void HiddenWriter::Publish() {
  published_ = true;
  for (const HiddenRange& range : ranges_) hidden_.Remove(range);
}

void HiddenWriter::RemoveAll() {
  const auto write = [this](const std::vector<Mutation>& mutations) {
    return store_.metadata().WriteThrough(mutations);
  };
  for (const HiddenRange& range : ranges_) {
    // After a failure the range stays hidden in this mount, too.
    if (RemoveHiddenRange(*Written(), range, write).ok()) hidden_.Remove(range);
  }
}

}  // namespace siltfs
