// Wrong usage of quotas, and damaged records of quotas: what fsck finds and repairs.
#include "fs/interface/directory_quotas.h"
#include "fs/records/quota_record.h"
#include "fs/records/schema.h"
#include "tests/fs/repair/repaired_store.h"

namespace siltfs::testing {
namespace {

struct QuotaStore : CheckedStore {
  QuotaNumber number = kNoQuota;
  QuotaInfo before;

  QuotaStore() {
    Fill();
    const auto made = fs().quotas()->Set(directory, {.bytes = uint64_t{1} << 30, .files = 100}, {});
    REQUIRE_OK(made);
    before = *made;
    REQUIRE(before.bytes > 0);
    REQUIRE(before.files == 4);
    fixture().Close();
    EditInode(directory, [this](InodeRecord& record) { number = record.quota; });
    REQUIRE(number != kNoQuota);
    RequireCodes(Check(), {});
  }
  // The store must be as it was, and the quota limits again.
  void RequireWhole() {
    fixture().Open();
    const auto now = fs().quotas()->Of(directory);
    REQUIRE_OK(now);
    REQUIRE(now->has_value());
    CHECK((*now)->bytes == before.bytes);
    CHECK((*now)->files == before.files);
    CHECK((*now)->bytes_limit == before.bytes_limit);
    fixture().Close();
  }
  void RequireRemoved() {
    fixture().Open();
    CHECK(fs().quotas()->List()->empty());
    fixture().Close();
  }
};

TEST_CASE("a wrong usage of a quota is found and counted again") {
  QuotaStore store;
  const std::string usage = QuotaKey(store.number, QuotaPart::kUsage);
  SECTION("bytes") {
    store.Put(usage,
              EncodeUsage({.bytes = static_cast<int64_t>(store.before.bytes) + 1, .files = 4}));
  }
  SECTION("files") {
    store.Put(usage, EncodeUsage({.bytes = static_cast<int64_t>(store.before.bytes), .files = 3}));
  }
  SECTION("missing") { store.Remove(usage); }
  SECTION("malformed") { store.Put(usage, "x"); }
  RequireRepaired(store, RepairMode::kSafe, {"quota"});
  store.RequireWhole();
}

TEST_CASE("an inode that counts against another quota is found") {
  QuotaStore store;
  store.EditInode(store.inner, [](InodeRecord& record) { record.quota = kNoQuota; });
  RequireRepaired(store, RepairMode::kSafe, {"quota"});
  store.fixture().Open();
  CHECK((*store.fs().quotas()->Of(store.directory))->files == 3);
  store.fixture().Close();
}

TEST_CASE("a quota that limits nothing is removed") {
  QuotaStore store;
  const std::string limits = QuotaKey(store.number, QuotaPart::kLimits);
  SECTION("without limits") { store.Remove(limits); }
  SECTION("with malformed limits") { store.Put(limits, std::string(25, 'x')); }
  SECTION("without a directory") {
    store.Put(limits, QuotaRecord{.directory = store.small, .limits = {.bytes = 1}}.Encode());
  }
  SECTION("of a directory that does not belong to it") {
    store.EditInode(store.directory, [](InodeRecord& record) { record.quota = kNoQuota; });
  }
  RequireRepaired(store, RepairMode::kSafe, {"quota"});
  store.RequireRemoved();
}

TEST_CASE("a malformed key of a quota is removed") {
  QuotaStore store;
  store.Put("quagga", "");
  RequireRepaired(store, RepairMode::kSafe, {"quota"});
  store.RequireWhole();
}

TEST_CASE("a number without a quota is no fault") {
  QuotaStore store;
  store.EditInode(store.large, [](InodeRecord& record) { record.quota = 12345; });
  RequireCodes(store.Check(), {});
}

}  // namespace
}  // namespace siltfs::testing
