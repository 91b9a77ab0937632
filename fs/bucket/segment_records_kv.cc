#include "fs/bucket/segment_records_kv.h"

#include <iterator>
#include <utility>

#include "fs/records/schema.h"

namespace siltfs {
namespace {

using Records = SegmentRecordsKv::Records;

bool IsKept(std::string_view key) {
  return ParseSegmentKey(key) || ParseReplacementKey(key) || key == kBucketPositionKey ||
         key == kEpochFloorsKey;
}

Result<std::optional<std::string>> Find(const Records& records, std::string_view key) {
  const auto found = records.find(key);
  if (found == records.end()) return std::optional<std::string>();
  return std::optional(found->second);
}

class Iterator final : public KvIterator {
 public:
  Iterator(const Records& records, std::string_view end) : records_(records), end_(end) {}
  void Seek(std::string_view key) override { at_ = records_.lower_bound(key); }
  void Next() override { ++at_; }
  bool Valid() const override {
    return at_ != records_.end() && (end_.empty() || std::string_view(at_->first) < end_);
  }
  std::string_view key() const override { return at_->first; }
  std::string_view value() const override { return at_->second; }
  Status status() const override { return Status::Ok(); }

 private:
  const Records& records_;
  const std::string end_;
  Records::const_iterator at_ = records_.end();
};

class RecordsSnapshot final : public KvSnapshot {
 public:
  explicit RecordsSnapshot(std::shared_ptr<const Records> records) : records_(std::move(records)) {}
  Result<std::optional<std::string>> Get(std::string_view key) const override {
    return Find(*records_, key);
  }
  std::unique_ptr<KvIterator> NewIteratorBelow(std::string_view end) const override {
    return std::make_unique<Iterator>(*records_, end);
  }

 private:
  const std::shared_ptr<const Records> records_;
};

class Sink final : public MutationSink {
 public:
  explicit Sink(Records& records) : records_(records) {}
  void Put(std::string_view key, std::string_view value) override {
    if (IsKept(key)) records_.insert_or_assign(std::string(key), std::string(value));
  }
  void Remove(std::string_view key) override {
    const auto found = records_.find(key);
    if (found != records_.end()) records_.erase(found);
  }

 private:
  Records& records_;
};

}  // namespace

Result<std::optional<std::string>> SegmentRecordsKv::Get(std::string_view key) const {
  return Find(*records_, key);
}

std::shared_ptr<const KvSnapshot> SegmentRecordsKv::Snapshot() const {
  return std::make_shared<RecordsSnapshot>(records_);
}

Status SegmentRecordsKv::WriteFrom(const std::function<void(MutationSink&)>& fill) {
  if (records_.use_count() > 1) records_ = std::make_shared<Records>(*records_);
  Sink sink(*records_);
  fill(sink);
  return Status::Ok();
}

}  // namespace siltfs
