#include "index/flash/store_files.h"

#include "store/env/files.h"
#include "store/env/sim_env.h"
#include "tests/support/catch.h"

namespace siltfs {

TEST_CASE("a store's file is named by partition, id and kind") {
  CHECK(StoreFileName({StoreKind::kLog, 3, 17}) == "00003-00000000000000000017.log");
  CHECK(StoreFileName({StoreKind::kHash, 0, 1}) == "00000-00000000000000000001.hash");
  CHECK(StoreFileName({StoreKind::kSorted, 4095, UINT64_MAX}) ==
        "04095-18446744073709551615.sorted");
  CHECK(StoreFileName({StoreKind::kFilter, 2, 9}) == "00002-00000000000000000009.filter");
}

TEST_CASE("a store's file name is parsed back") {
  for (const StoreKind kind :
       {StoreKind::kLog, StoreKind::kHash, StoreKind::kSorted, StoreKind::kFilter}) {
    for (const uint32_t partition : {0U, 7U, 4095U, 99999U}) {
      for (const uint64_t id : {uint64_t{0}, uint64_t{1}, uint64_t{1234567890123}, kMaxStoreId}) {
        const StoreFileId file{kind, partition, id};
        CHECK(ParseStoreFileName(StoreFileName(file)) == file);
      }
    }
  }
}

TEST_CASE("only names that stores are given are parsed as stores") {
  for (const char* name : {"",
                           "manifest",
                           "manifest.new",
                           "00000000000000000001.log",
                           "0-1.log",
                           "00000-00000000000000000001",
                           "00000-00000000000000000001.",
                           "00000-00000000000000000001.lo",
                           "00000-00000000000000000001.logx",
                           "00000-0000000000000000000x.log",
                           "00000-+0000000000000000001.log",
                           "00000-99999999999999999999.log",
                           "00000_00000000000000000001.log",
                           "-0000-00000000000000000001.log",
                           " 00000-00000000000000000001.log",
                           "00000-00000000000000000001.HASH",
                           "00000-09223372036854775808.log",
                           "00000-18446744073709551615.log",
                           "4294967296-00000000000000000001.log",
                           "000000-00000000000000000001.log"}) {
    INFO(name);
    CHECK_FALSE(ParseStoreFileName(name).has_value());
  }
}

TEST_CASE("stores are listed by kind, partition and id, and nothing else is listed") {
  SimEnv env;
  const std::vector<StoreFileId> files = {{StoreKind::kLog, 0, 10},   {StoreKind::kLog, 1, 2},
                                          {StoreKind::kLog, 1, 9},    {StoreKind::kHash, 0, 3},
                                          {StoreKind::kSorted, 0, 1}, {StoreKind::kFilter, 0, 1}};
  for (size_t i = files.size(); i-- > 0;) REQUIRE_OK(CreateStoreFile(env, "/", files[i]));
  REQUIRE_OK(env.OpenFile("/manifest", {.mode = OpenMode::kCreate}));
  auto listed = ListStoreFiles(env, "/");
  REQUIRE_OK(listed);
  CHECK(*listed == files);
  REQUIRE_OK(RemoveStoreFile(env, "/", files[0]));
  CHECK(ListStoreFiles(env, "/")->size() == files.size() - 1);
}

TEST_CASE("a new store replaces a leftover file with its name") {
  SimEnv env;
  const StoreFileId id{StoreKind::kHash, 0, 5};
  const uint8_t byte[1] = {1};
  auto first = CreateStoreFile(env, "/", id);
  REQUIRE_OK(first);
  REQUIRE_OK((*first)->Write(0, byte));
  auto second = CreateStoreFile(env, "/", id);
  REQUIRE_OK(second);
  CHECK(*(*second)->Size() == 0);
}

TEST_CASE("opening a missing store returns null, not an error") {
  SimEnv env;
  for (const bool direct : {false, true}) {
    auto opened = OpenStoreFile(env, "/", {StoreKind::kLog, 0, 1}, OpenMode::kRead, direct);
    REQUIRE_OK(opened);
    CHECK(*opened == nullptr);
  }
}

}  // namespace siltfs
