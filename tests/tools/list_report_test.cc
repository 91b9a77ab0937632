#include "tools/siltfs/list_report.h"

#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

using Json = nlohmann::json;

Json SomeMount() {
  return {{"store", "/srv/store"},
          {"mountpoint", "/mnt"},
          {"label", Json()},
          {"snapshot", Json()},
          {"read_only", false},
          {"pid", 42},
          {"answers", true},
          {"health", "ok"},
          {"logical_bytes", uint64_t{3} << 30},
          {"stored_bytes", uint64_t{1} << 30},
          {"files", 1234},
          {"total_ratio", 2.996}};
}

TEST_CASE("without mounts nothing is listed") { CHECK(FormatList(Json::array()).empty()); }

TEST_CASE("each mount has a line, and unknown values are dashes") {
  Json snapshot = SomeMount();
  snapshot["mountpoint"] = "/old\nfiles";
  snapshot["snapshot"] = "monday";
  snapshot["read_only"] = true;
  Json silent = SomeMount();
  for (const char* key : {"pid", "logical_bytes", "stored_bytes", "files", "total_ratio"})
    silent[key] = Json();
  silent["answers"] = false;
  silent["health"] = "not answering";
  CHECK(FormatList({SomeMount(), snapshot, silent}) ==
        "STORE       MOUNTPOINT   SHOWS            MODE  FILES  LOGICAL   STORED  RATIO  HEALTH\n"
        "/srv/store  /mnt         live files       rw     1234  3.0 GiB  1.0 GiB   3.00  ok\n"
        "/srv/store  /old\\nfiles  snapshot monday  ro     1234  3.0 GiB  1.0 GiB   3.00  ok\n"
        "/srv/store  /mnt         -                rw        -        -        -      -  "
        "not answering\n");
}

TEST_CASE("the list has a column for labels if a store has one") {
  Json named = SomeMount();
  named["label"] = "nightly";
  CHECK(
      FormatList({SomeMount(), named}) ==
      "STORE       LABEL    MOUNTPOINT  SHOWS       MODE  FILES  LOGICAL   STORED  RATIO  HEALTH\n"
      "/srv/store  -        /mnt        live files  rw     1234  3.0 GiB  1.0 GiB   3.00  ok\n"
      "/srv/store  nightly  /mnt        live files  rw     1234  3.0 GiB  1.0 GiB   3.00  ok\n");
}

}  // namespace
}  // namespace siltfs::testing
