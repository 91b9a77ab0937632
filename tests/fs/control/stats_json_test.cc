// The keys are stable interface: scripts rely on them.
#include "fs/control/stats_json.h"

#include "tests/support/catch.h"

namespace siltfs {
namespace {

FileSystemStats SomeStats() {
  FileSystemStats stats;
  stats.logical_bytes = 4000;
  stats.unique_bytes = 1000;
  stats.stored_bytes = 700;
  stats.dead_bytes = 200;
  stats.reserve_bytes = 5;
  stats.metadata_bytes = 250;
  stats.index_bytes = 50;
  stats.files = 3;
  stats.directories = 2;
  stats.chunks_logical = 40;
  stats.chunks_unique = 10;
  stats.sha1_collisions = 1;
  stats.index.engine = "silt";
  stats.index.entries = 10;
  stats.index.memory_bytes = 25;
  stats.index.lookups = 8;
  stats.index.flash_reads = 4;
  stats.index.entry_bytes_put = 320;
  stats.index.flash_bytes_written = 960;
  stats.index.stores.push_back({.kind = "log_store", .entries = 10});
  return stats;
}

TEST_CASE("Every promised figure is there under its name") {
  const auto json = ToJson(SomeStats(), "/store", DaemonInfo{.pid = 17, .mountpoint = "/mnt"});
  CHECK(json.at("logical_bytes") == 4000);
  CHECK(json.at("unique_bytes") == 1000);
  CHECK(json.at("stored_bytes") == 700);
  CHECK(json.at("dead_bytes") == 200);
  CHECK(json.at("reserve_bytes") == 5);
  CHECK(json.at("metadata_bytes") == 250);
  CHECK(json.at("index_bytes") == 50);
  CHECK(json.at("files") == 3);
  CHECK(json.at("directories") == 2);
  CHECK(json.at("chunks_logical") == 40);
  CHECK(json.at("chunks_unique") == 10);
  CHECK(json.at("dedup_ratio") == 4.0);
  CHECK(json.at("compression_ratio") == 2.0);
  CHECK(json.at("total_ratio") == 4.0);
  CHECK(json.at("sha1_collisions") == 1);
  CHECK(json.at("pid") == 17);
  CHECK(json.at("mountpoint") == "/mnt");
  const auto& index = json.at("index");
  CHECK(index.at("engine") == "silt");
  CHECK(index.at("entries") == 10);
  CHECK(index.at("memory_bytes") == 25);
  CHECK(index.at("memory_bytes_per_entry") == 2.5);
  CHECK(index.at("lookups") == 8);
  CHECK(index.at("flash_reads") == 4);
  CHECK(index.at("read_amplification") == 0.5);
  CHECK(index.at("write_amplification") == 3.0);
  CHECK(index.at("stores").size() == 1);
  CHECK(index.at("stores")[0].at("kind") == "log_store");
}

TEST_CASE("An empty, unmounted store has ratios of 1 and no daemon") {
  const auto json = ToJson(FileSystemStats(), "/store", std::nullopt);
  CHECK(json.at("dedup_ratio") == 1.0);
  CHECK(json.at("compression_ratio") == 1.0);
  CHECK(json.at("total_ratio") == 1.0);
  CHECK(json.at("pid").is_null());
  CHECK(json.at("mountpoint").is_null());
  CHECK(json.at("index").at("memory_bytes_per_entry") == 0);
  CHECK(json.at("index").at("stores").is_array());
}

}  // namespace
}  // namespace siltfs
