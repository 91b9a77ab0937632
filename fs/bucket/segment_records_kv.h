// A key-value store in memory that keeps only what the metadata says about segments: the records of
// segments and replacements, and the position in the log. All other records are dropped. With it,
// the metadata in a bucket can be read (RestoreKvStore) without a disk.
//
// Thread-safety: one thread at a time. Memory: about 150 bytes for each segment.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "fs/kv/kv_store.h"

namespace siltfs {

class SegmentRecordsKv final : public KvStore {
 public:
  using Records = std::map<std::string, std::string, std::less<>>;

  SegmentRecordsKv() : records_(std::make_shared<Records>()) {}

  Result<std::optional<std::string>> Get(std::string_view key) const override;
  // Later writes do not change it.
  std::shared_ptr<const KvSnapshot> Snapshot() const override;
  Status WriteFrom(const std::function<void(MutationSink&)>& fill) override;
  uint64_t DiskBytes() const override { return 0; }
  Status CloseCleanly() override { return Status::Ok(); }

 private:
  std::shared_ptr<Records> records_;  // copied by a write if a snapshot shares it
};

}  // namespace siltfs
