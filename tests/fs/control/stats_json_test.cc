// The JSON keys are a stable interface: scripts rely on them.
#include "fs/control/stats_json.h"

#include "fs/control/index_json.h"
#include "tests/support/catch.h"

namespace siltfs {
namespace {

FileSystemStats SomeStats() {
  FileSystemStats stats;
  stats.logical_bytes = 4000;
  stats.unique_bytes = 1000;
  stats.stored_bytes = 700;
  stats.awaiting_recompression_bytes = 300;
  stats.dead_bytes = 200;
  stats.reserve_bytes = 5;
  stats.metadata_bytes = 250;
  stats.index_bytes = 50;
  stats.files = 3;
  stats.directories = 2;
  stats.chunks_logical = 40;
  stats.chunks_unique = 10;
  stats.sha1_collisions = 1;
  stats.damaged_blocks = 6;
  stats.damaged_chunks = 60;
  stats.created_ns = 1'500'000'000;
  stats.last_scrub = LastScrub{
      .ended_ns = 2'000'000'000, .damaged_blocks = 7, .damaged_chunks = 8, .damaged_footers = 9};
  stats.disk_bytes = 100'000;
  stats.disk_available_bytes = 60'000;
  stats.added_bytes = 1100;
  stats.chunker_kernel = "portable";
  stats.sha1_kernel = "evp";
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

TEST_CASE("Every documented statistic is there under its key") {
  const auto json = ToJson(SomeStats(), "/store",
                           DaemonInfo{.pid = 17, .mountpoint = "/mnt", .transport = "io_uring"});
  CHECK(json.at("transport") == "io_uring");
  CHECK(json.at("logical_bytes") == 4000);
  CHECK(json.at("unique_bytes") == 1000);
  CHECK(json.at("stored_bytes") == 700);
  CHECK(json.at("awaiting_recompression_bytes") == 300);
  CHECK(json.at("dead_bytes") == 200);
  CHECK(json.at("reserve_bytes") == 5);
  CHECK(json.at("metadata_bytes") == 250);
  CHECK(json.at("index_bytes") == 50);
  CHECK(json.at("files") == 3);
  CHECK(json.at("directories") == 2);
  CHECK(json.at("chunks_logical") == 40);
  CHECK(json.at("damaged_blocks") == 6);
  CHECK(json.at("damaged_chunks") == 60);
  CHECK(json.at("created_at") == 1.5);
  CHECK(json.at("last_scrub").at("ended_at") == 2.0);
  CHECK(json.at("last_scrub").at("damaged_blocks") == 7);
  CHECK(json.at("last_scrub").at("damaged_chunks") == 8);
  CHECK(json.at("last_scrub").at("damaged_footers") == 9);
  CHECK(json.at("disk_bytes") == 100'000);
  CHECK(json.at("disk_available_bytes") == 60'000);
  CHECK(json.at("added_bytes") == 1100);
  CHECK(json.at("chunks_unique") == 10);
  CHECK(json.at("dedup_ratio") == 4.0);
  CHECK(json.at("compression_ratio") == 2.0);
  CHECK(json.at("total_ratio") == 4.0);
  CHECK(json.at("sha1_collisions") == 1);
  CHECK(json.at("chunker_kernel") == "portable");
  CHECK(json.at("sha1_kernel") == "evp");
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

TEST_CASE("Stores of a kind are summed in stat, and listed one by one in index stat") {
  IndexStats index;
  index.merge_backlog = 2;
  for (const uint64_t id : {4, 5, 6}) {
    index.stores.push_back({.kind = id == 5 ? "sorted_store" : "hash_store",
                            .partition = 3,
                            .id = id,
                            .entries = 10,
                            .flash_bytes = 4096,
                            .memory_bytes = 20,
                            .occupancy = static_cast<double>(id) / 10,
                            .probes = 100,
                            .flash_reads = 40,
                            .false_positives = id,
                            .flash_bytes_written = 8192});
  }
  const auto summary = IndexSummaryToJson(index).at("stores");
  REQUIRE(summary.size() == 2);
  CHECK(summary[0].at("kind") == "hash_store");
  CHECK(summary[0].at("count") == 2);
  CHECK(summary[0].at("entries") == 20);
  CHECK(summary[0].at("flash_bytes") == 8192);
  CHECK(summary[0].at("memory_bytes") == 40);
  CHECK(summary[0].at("occupancy") == 0.5);
  CHECK(summary[0].at("probes") == 200);
  CHECK(summary[0].at("flash_reads") == 80);
  CHECK(summary[0].at("false_positives") == 10);
  CHECK(summary[0].at("false_positive_rate") == 10.0 / 130);
  CHECK(summary[0].at("flash_bytes_written") == 16384);
  CHECK(summary[1].at("count") == 1);
  const auto whole = IndexToJson(
      index, "/store", DaemonInfo{.pid = 17, .mountpoint = "/mnt", .transport = "io_uring"});
  CHECK(whole.at("kinds") == summary);
  CHECK(whole.at("pid") == 17);
  CHECK(whole.at("mountpoint") == "/mnt");
  CHECK(whole.at("merge_backlog") == 2);
  REQUIRE(whole.at("stores").size() == 3);
  CHECK(whole.at("stores")[1].at("kind") == "sorted_store");
  CHECK(whole.at("stores")[1].at("partition") == 3);
  CHECK(whole.at("stores")[1].at("id") == 5);
  CHECK(whole.at("stores")[1].at("false_positive_rate") == 5.0 / 65);
}

TEST_CASE("An empty, unmounted store has ratios of 1 and no daemon") {
  const auto json = ToJson(FileSystemStats(), "/store", std::nullopt);
  CHECK(json.at("dedup_ratio") == 1.0);
  CHECK(json.at("compression_ratio") == 1.0);
  CHECK(json.at("total_ratio") == 1.0);
  CHECK(json.at("last_scrub").is_null());
  CHECK(json.at("pid").is_null());
  CHECK(json.at("mountpoint").is_null());
  CHECK(json.at("transport").is_null());
  CHECK(json.at("index").at("memory_bytes_per_entry") == 0);
  CHECK(json.at("index").at("stores").is_array());
}

}  // namespace
}  // namespace siltfs
