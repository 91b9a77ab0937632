// The privileges that a write, a new size or a new owner removes: set-id bits and the capability.
#include "tests/fs/core/recount_store.h"
#include "tests/fs/core/store_fixture.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

constexpr const char* kCapability = "security.capability";

struct Fixture {
  StoreFixture store;
  FileSystem* fs = &store.Open();
  InodeNumber file = MakeFile(*fs, kRootInode, "program");

  uint32_t Mode() const {
    auto attributes = fs->GetAttributes(file);
    REQUIRE_OK(attributes);
    return attributes->mode & 07777;
  }
  void SetMode(InodeNumber inode, uint32_t mode) const {
    AttributeChange change;
    change.mode = mode;
    REQUIRE_OK(fs->SetAttributes(inode, change));
  }
  void Give(const char* name) const {
    REQUIRE_OK(fs->SetXattr(file, name, "value", XattrMode::kSet));
  }
  bool Has(const char* name) const { return fs->GetXattr(file, name).ok(); }
  void Write(Privileges privileges) const {
    REQUIRE_OK(fs->Write(file, 0, RandomBytes(1, 100), privileges));
  }
  void RequireCount(uint64_t xattrs) {
    store.Close();
    REQUIRE(RecountStore(store.path()).xattrs == xattrs);  // and each inode's count is right
    fs = &store.Open();
  }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "a write removes the privileges that it names") {
  SetMode(file, 06755);
  Give(kCapability);
  Write(Privileges::kKeep);
  REQUIRE(Mode() == 06755);
  REQUIRE(Has(kCapability));
  Write(Privileges::kDropCapability);
  REQUIRE(Mode() == 06755);
  REQUIRE_FALSE(Has(kCapability));
  Give(kCapability);
  Write(Privileges::kDropAll);
  REQUIRE(Mode() == 0755);
  REQUIRE_FALSE(Has(kCapability));
  SetMode(file, 06745);
  Write(Privileges::kDropAll);
  REQUIRE(Mode() == 02745);
  RequireCount(0);
  REQUIRE(Mode() == 02745);
}

TEST_CASE_METHOD(Fixture,
                 "a new size, owner or group removes the capability, and set-id bits on request") {
  AttributeChange change;
  SECTION("size") { change.size = 5; }
  SECTION("owner") { change.uid = 7; }
  SECTION("group") { change.gid = 7; }
  SetMode(file, 06755);
  Give(kCapability);
  Give("user.other");
  REQUIRE_OK(fs->SetAttributes(file, change));
  REQUIRE(Mode() == 06755);
  REQUIRE_FALSE(Has(kCapability));
  Give(kCapability);
  change.kill_privileges = true;
  auto changed = fs->SetAttributes(file, change);
  REQUIRE_OK(changed);
  REQUIRE(changed->mode == 0100755);
  REQUIRE_FALSE(Has(kCapability));
  REQUIRE(Has("user.other"));
  RequireCount(1);
  REQUIRE(Mode() == 0755);
}

TEST_CASE_METHOD(Fixture, "a new mode or time does not remove the capability") {
  Give(kCapability);
  SetMode(file, 0700);
  AttributeChange change;
  change.mtime = 5;
  REQUIRE_OK(fs->SetAttributes(file, change));
  REQUIRE(Has(kCapability));
}

TEST_CASE_METHOD(Fixture, "a directory keeps its set-group-id") {
  const InodeNumber directory = MakeDir(*fs, kRootInode, "d");
  SetMode(directory, 02775);
  AttributeChange change;
  change.gid = 7;
  change.kill_privileges = true;
  auto changed = fs->SetAttributes(directory, change);
  REQUIRE_OK(changed);
  REQUIRE((changed->mode & 07777) == 02775);
}

TEST_CASE_METHOD(Fixture, "a capability is removed each time it was set, other attributes stay") {
  const bool reopened = GENERATE(false, true);
  Give("user.other");
  Write(Privileges::kDropCapability);  // the inode remembers that it has no capability
  Give(kCapability);
  if (reopened) RequireCount(2);
  Write(Privileges::kDropCapability);
  REQUIRE_FALSE(Has(kCapability));
  REQUIRE(Has("user.other"));
  Give(kCapability);
  REQUIRE_OK(fs->RemoveXattr(file, kCapability));
  Write(Privileges::kDropCapability);
  Give(kCapability);
  Write(Privileges::kDropCapability);
  REQUIRE_FALSE(Has(kCapability));
  RequireCount(1);
  REQUIRE(Has("user.other"));
}

TEST_CASE_METHOD(Fixture, "a refused write removes nothing") {
  SetMode(file, 06755);
  Give(kCapability);
  WriteFile(*fs, "filler", RandomBytes(2, 5u << 20));
  store.env().SetAvailable(0);
  Status status;
  for (uint64_t at = 0; status.ok() && at < (uint64_t{40} << 20); at += 1u << 20)
    status = fs->Write(file, at, RandomBytes(at, 1u << 20));
  REQUIRE_CODE(status, kNoSpace);
  REQUIRE_CODE(fs->Write(file, 0, RandomBytes(3, 1u << 20), Privileges::kDropAll), kNoSpace);
  REQUIRE(Mode() == 06755);
  REQUIRE(Has(kCapability));
  store.env().SetAvailable(std::nullopt);
  REQUIRE_OK(fs->Write(file, 0, RandomBytes(3, 1u << 20), Privileges::kDropAll));
  REQUIRE(Mode() == 0755);
  REQUIRE_FALSE(Has(kCapability));
}

TEST_CASE_METHOD(Fixture, "written data and removed privileges stay together across a crash") {
  SetMode(file, 04755);
  Give(kCapability);
  REQUIRE_OK(fs->SyncAll());
  const bool synced = GENERATE(false, true);
  Write(Privileges::kDropAll);
  if (synced) REQUIRE_OK(fs->Fsync(file));
  store.Crash();
  RecountStore(store.path());
  fs = &store.Open();
  REQUIRE(fs->GetAttributes(file)->size == (synced ? 100 : 0));
  REQUIRE(Mode() == (synced ? 0755 : 04755));
  REQUIRE(Has(kCapability) == !synced);
}

}  // namespace siltfs::testing
