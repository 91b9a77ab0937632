#include "tools/siltfs/store_place.h"

#include "store/env/process.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

StoreMount MountOf(const char* store, const char* mountpoint, uint32_t owner) {
  return {.address = {.store = store, .mountpoint = mountpoint, .device = "", .owner = owner}};
}

TEST_CASE("the last mount of a store names it") {
  const auto stores =
      StoresOf({MountOf("/a", "/m1", 0), MountOf("/b", "/m2", 0), MountOf("/a", "/m3", 0)});
  REQUIRE(stores.size() == 2);
  CHECK(stores.at("/a").mountpoint == "/m3");
  CHECK(stores.at("/b").mountpoint == "/m2");
}

TEST_CASE("a mount of another user that claims to show a store does not hide the store's mount") {
  constexpr uint32_t kOther = 65534;
  const uint32_t own = CurrentUserId() == kOther ? 0 : CurrentUserId();
  CHECK(StoresOf({MountOf("/a", "/m1", 0), MountOf("/a", "/false", kOther)}).at("/a").mountpoint ==
        "/m1");
  CHECK(
      StoresOf({MountOf("/a", "/false", kOther), MountOf("/a", "/m1", own)}).at("/a").mountpoint ==
      "/m1");
  CHECK(
      StoresOf({MountOf("/a", "/m1", kOther), MountOf("/a", "/m2", kOther)}).at("/a").mountpoint ==
      "/m2");
}

}  // namespace
}  // namespace siltfs::testing
