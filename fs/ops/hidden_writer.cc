#include "fs/ops/hidden_writer.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "fs/records/schema.h"

namespace siltfs {
namespace {

// The first range is small, because most clones are small. Later ranges grow with the clone, so
// that there are few of them.
constexpr uint64_t kFirstRange = 16;
constexpr uint64_t kLargestRange = 1u << 16;
constexpr uint64_t kGrowth = 16;
// Fewer records are written and not loaded, because a load has a cost of its own: it syncs several
// files.
constexpr size_t kLeastLoad = 1u << 20;
// A load of more records would keep commits waiting for too long, because it syncs too many files.
constexpr size_t kMostLoad = 256u << 20;
// The disk must have room for this multiple of a batch: its log, its table, and merged tables.
constexpr uint64_t kRoomFactor = 4;
// A load writes no log, and its tables are compressed.
constexpr uint64_t kRoomFactorOfLoad = 1;

}  // namespace

HiddenWriter::~HiddenWriter() {
  WaitForWrite().IgnoreError("what was written is removed");
  load_.reset();
  if (!published_) RemoveAll();
}

Result<uint64_t> HiddenWriter::NextNumber() {
  if (ranges_.empty() || next_ == ranges_.back().end) {
    const uint64_t last = ranges_.empty() ? 0 : ranges_.back().end - ranges_.back().first;
    const uint64_t count = std::clamp(last * kGrowth, kFirstRange, kLargestRange);
    SILTFS_ASSIGN_OR_RETURN(next_, ids_.NextInodes(count));
    ranges_.push_back({next_, next_ + count});
    hidden_.Add(ranges_.back());
    batch_.Add(batch_.notes, {HiddenRangeKey(next_), ranges_.back().EncodeEnd()});
  }
  return next_++;
}

void HiddenWriter::Batch::Add(std::vector<Mutation>& list, Mutation mutation) {
  other_bytes += mutation.key.size() + (mutation.value ? mutation.value->size() : 0);
  other_bytes += sizeof(Mutation);
  list.push_back(std::move(mutation));
}

void HiddenWriter::Batch::Clear() {
  notes.clear();
  records.Clear();
  replaced.clear();
  other_bytes = 0;
}

void HiddenWriter::Replace(std::string key, std::string value) {
  batch_.Add(batch_.replaced, {std::move(key), std::move(value)});
}

void HiddenWriter::PutLink(uint64_t inode, std::string value) {
  batch_.Add(batch_.notes, {LinkKey(inode), std::move(value)});
}

void HiddenWriter::RemoveLink(std::string key) {
  batch_.Add(batch_.notes, {std::move(key), std::nullopt});
}

Status HiddenWriter::WaitForWrite() {
  if (thread_.joinable()) thread_.join();
  Status written = std::exchange(written_, Status::Ok());
  written_.IgnoreError("no write runs");
  return written;
}

bool HiddenWriter::IsLoaded(const Batch& batch) const {
  return load_ != nullptr || batch.records.bytes() >= std::min(kLeastLoad, batch_bytes_);
}

Status HiddenWriter::Flush() {
  SILTFS_RETURN_IF_ERROR(WaitForWrite());
  if (batch_.bytes() == 0) return Status::Ok();
  const uint64_t factor = IsLoaded(batch_) ? kRoomFactorOfLoad : kRoomFactor;
  SILTFS_RETURN_IF_ERROR(store_.CheckRoom(factor * batch_.bytes()));
  std::swap(writing_, batch_);
  thread_ = std::thread([this] {
    written_ = Write(writing_);
    writing_.Clear();
  });
  return Status::Ok();
}

// The order matters: after a crash there must be no inode without its range, and a record can be
// replaced only after it was loaded.
Status HiddenWriter::Write(Batch& batch) {
  MetadataStore& metadata = store_.metadata();
  std::vector<Mutation> mutations = std::move(batch.notes);
  if (IsLoaded(batch)) {
    if (!mutations.empty()) SILTFS_RETURN_IF_ERROR(metadata.WriteThrough(mutations));
    mutations.clear();
    if (load_ == nullptr) {
      SILTFS_ASSIGN_OR_RETURN(load_, metadata.NewLoad());
    }
    load_bytes_ += batch.records.bytes();
    for (const KvRun& run : batch.records.Runs()) SILTFS_RETURN_IF_ERROR(load_->Add(run));
    if (load_bytes_ >= kMostLoad || !batch.replaced.empty()) SILTFS_RETURN_IF_ERROR(Load());
  } else {
    for (const KvRun& run : batch.records.Runs()) {
      for (const KvRecord& record : run)
        mutations.push_back({std::string(record.key), std::string(record.value)});
    }
  }
  std::ranges::move(batch.replaced, std::back_inserter(mutations));
  return mutations.empty() ? Status::Ok() : metadata.WriteThrough(mutations);
}

Status HiddenWriter::Load() {
  const std::unique_ptr<KvLoad> load = std::move(load_);
  load_bytes_ = 0;
  return load == nullptr ? Status::Ok() : load->Load();
}

Status HiddenWriter::Finish() {
  SILTFS_RETURN_IF_ERROR(FlushAndWait());
  return Load();
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
