// A key-value store that also brings its writes to another place: which calls wait for that.
#include <functional>

#include "fs/meta/metadata_store.h"
#include "tests/fs/meta/metadata_test_support.h"

namespace siltfs {
namespace {

using testing::Apply;
using testing::MemoryDisk;
using testing::OpenMemoryKvStore;
using testing::Put;
using testing::Unhurried;

// AwaitShipped returns what `await` says.
class ShippingStore final : public KvStore {
 public:
  ShippingStore(MemoryDisk& disk, std::function<Status()> await)
      : base_(OpenMemoryKvStore(disk)), await_(std::move(await)) {}
  Result<std::optional<std::string>> Get(std::string_view key) const override {
    return base_->Get(key);
  }
  std::shared_ptr<const KvSnapshot> Snapshot() const override { return base_->Snapshot(); }
  Status WriteFrom(const std::function<void(MutationSink&)>& fill) override {
    return base_->WriteFrom(fill);
  }
  Status AwaitShipped() override { return await_(); }
  uint64_t DiskBytes() const override { return base_->DiskBytes(); }
  Status CloseCleanly() override { return base_->CloseCleanly(); }

 private:
  const std::unique_ptr<KvStore> base_;
  const std::function<Status()> await_;
};

TEST_CASE("Only calls that promise durability wait until commits are shipped") {
  MemoryDisk disk;
  int waits = 0;
  Status outcome;
  const auto await = [&] {
    ++waits;
    return outcome;
  };
  auto opened = MetadataStore::Open(std::make_unique<ShippingStore>(disk, await), Unhurried());
  REQUIRE_OK(opened);
  MetadataStore& store = **opened;
  REQUIRE_OK(store.WriteThrough({Put("w", "1")}));
  Apply(store, {Put("k1", "1")});
  REQUIRE_OK(store.CommitAllLocally());
  REQUIRE(disk.contents().contains("k1"));
  REQUIRE(waits == 0);
  // Also without a change: an earlier commit may be on its way.
  REQUIRE_OK(store.CommitAll());
  REQUIRE(waits == 1);
  REQUIRE_OK(store.Commit(Apply(store, {Put("k2", "1")})));
  REQUIRE_OK(store.CommitNow());
  REQUIRE(waits == 3);

  // The commit is on the disk, and only on its way.
  outcome = Status(StatusCode::kIoError, "the other place does not answer");
  REQUIRE_CODE(store.Commit(Apply(store, {Put("k3", "1")})), kIoError);
  REQUIRE(disk.contents().contains("k3"));
  REQUIRE_OK(store.failure());
  outcome.IgnoreError("returned by AwaitShipped");
  outcome = Status::Ok();
  REQUIRE_OK(store.Commit(Apply(store, {Put("k4", "1")})));

  // Another writer has taken over.
  outcome = Status(StatusCode::kReadOnly, "taken over");
  REQUIRE_CODE(store.Commit(Apply(store, {Put("k5", "1")})), kReadOnly);
  REQUIRE_CODE(store.Apply({Put("k6", "1")}), kReadOnly);
  outcome.IgnoreError("returned by AwaitShipped");
}

TEST_CASE("A close waits for its commit on the disk only") {
  MemoryDisk disk;
  const auto await = [] { return Status(StatusCode::kIoError, "it does not answer"); };
  auto opened = MetadataStore::Open(std::make_unique<ShippingStore>(disk, await), Unhurried());
  REQUIRE_OK(opened);
  Apply(**opened, {Put("k1", "1")});
  REQUIRE_OK((*opened)->Close());
  REQUIRE(disk.contents().contains("k1"));
  REQUIRE(disk.closed_cleanly());
}

}  // namespace
}  // namespace siltfs
