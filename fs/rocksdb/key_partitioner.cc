#include "fs/rocksdb/key_partitioner.h"

#include <algorithm>
#include <utility>

namespace siltfs {
namespace {

class KeyPartitioner final : public rocksdb::SstPartitioner {
 public:
  // `bytes`: sorted.
  explicit KeyPartitioner(std::string bytes) : bytes_(std::move(bytes)) {}

  const char* Name() const override { return "siltfs.KeyPartitioner"; }
  rocksdb::PartitionerResult ShouldPartition(const rocksdb::PartitionerRequest& request) override {
    const bool same = GroupOf(*request.prev_user_key) == GroupOf(*request.current_user_key);
    return same ? rocksdb::kNotRequired : rocksdb::kRequired;
  }
  bool CanDoTrivialMove(const rocksdb::Slice& smallest, const rocksdb::Slice& largest) override {
    return GroupOf(smallest) == GroupOf(largest);
  }

 private:
  // Even numbers: the groups between the bytes. Odd numbers: those of the bytes.
  size_t GroupOf(const rocksdb::Slice& key) const {
    if (key.empty()) return 0;
    const auto less = [](char a, char b) {
      return static_cast<unsigned char>(a) < static_cast<unsigned char>(b);
    };
    const auto at = std::lower_bound(bytes_.begin(), bytes_.end(), key[0], less);
    const size_t group = 2 * static_cast<size_t>(at - bytes_.begin());
    return at != bytes_.end() && *at == key[0] ? group + 1 : group;
  }

  const std::string bytes_;
};

class KeyPartitionerFactory final : public rocksdb::SstPartitionerFactory {
 public:
  explicit KeyPartitionerFactory(std::string bytes) : bytes_(std::move(bytes)) {
    std::ranges::sort(bytes_, {}, [](char byte) { return static_cast<unsigned char>(byte); });
  }

  const char* Name() const override { return "siltfs.KeyPartitionerFactory"; }
  std::unique_ptr<rocksdb::SstPartitioner> CreatePartitioner(
      const rocksdb::SstPartitioner::Context& /*context*/) const override {
    return std::make_unique<KeyPartitioner>(bytes_);
  }

 private:
  std::string bytes_;
};

}  // namespace

std::shared_ptr<rocksdb::SstPartitionerFactory> NewKeyPartitioner(std::string bytes) {
  return std::make_shared<KeyPartitionerFactory>(std::move(bytes));
}

}  // namespace siltfs
