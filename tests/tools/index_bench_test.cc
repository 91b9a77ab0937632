// siltfs-bench index prints the keys that scripts rely on for each of its options.
#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tests/tools/index_bench_fixture.h"

namespace siltfs::testing {

TEST_CASE("bench index reports growth and updates separately, and looks up after both") {
  const Json statistics = Measured({"--updates", "30000"});
  CHECK(statistics["verified"] == true);
  CHECK(statistics["strategy"] == "default");
  CHECK(statistics["slot_bytes"] == 20);
  CHECK(statistics["growth"]["puts"] == 20000);
  CHECK(statistics["updates"]["puts"] == 30000);
  for (const char* name : {"growth", "updates"}) {
    INFO(name);
    const Json& phase = statistics[name];
    for (const char* figure :
         {"put_per_s", "bytes_written_per_put", "write_amplification", "conversions", "merges",
          "get_hit_per_s", "get_miss_per_s", "reads_per_hit", "processor_us_per_hit"}) {
      INFO(figure);
      CHECK(phase[figure] > 0);
    }
    // The values may be 0: the process need not grow if an earlier test has left enough memory.
    for (const char* figure :
         {"memory_bytes", "memory_bytes_per_entry", "memory_bytes_per_entry_most",
          "memory_bytes_end", "reads_per_miss"}) {
      INFO(figure);
      CHECK(phase[figure] >= 0);
    }
    CHECK(phase["bytes_written_per_put"].get<double>() ==
          Approx(32 * phase["write_amplification"].get<double>()));
    CHECK(phase["gets"] == 2000);
    CheckLatency(phase["put_call_us"], phase["puts"].get<uint64_t>() / 100);
    CheckLatency(phase["single_hit_us"], 400);
    CheckLatency(phase["single_miss_us"], 400);
    const Json& memory = phase["index_memory_end"];
    CHECK(memory["log_store_bytes"] > 0);
    CHECK(memory["hash_store_filter_bytes"] > 0);
    CHECK(memory["page_index_bytes"] > 0);
    CHECK(memory["sorted_store_filter_bytes"] == 0);
    CHECK(memory["bytes"] >= memory["log_store_bytes"]);
    CHECK_FALSE(phase.contains("index_memory_peak"));
  }
  const double written = statistics["growth"]["bytes_written_per_put"].get<double>() * 20000 +
                         statistics["updates"]["bytes_written_per_put"].get<double>() * 30000;
  CHECK(statistics["write_amplification"].get<double>() >= written / 32 / 50000 * 0.999);
  CHECK(statistics["index_file_reads_per_s"] > 0);
  CHECK(statistics["get_hit_share_of_index_files"] > 0);
  CHECK(statistics["device_processor_us_per_read"] > 0);
  CHECK(statistics["written_bytes_per_put"] == statistics["growth"]["bytes_written_per_put"]);
  CHECK(statistics["update_per_s"] == statistics["updates"]["put_per_s"]);
  CHECK(statistics["update_write_amplification"] == statistics["updates"]["write_amplification"]);
  CHECK(statistics["memory_bytes_per_entry_updates"] ==
        statistics["updates"]["memory_bytes_per_entry_most"]);
  for (const auto& [kind, calls] :
       {std::pair("hit", "single_hit_us"), {"miss", "single_miss_us"}}) {
    const Json& latency = statistics["latency_us"][kind];
    const Json& all = statistics["growth"][calls];
    CHECK(latency["p50"] == all["p50"]);
    CHECK(latency["p99"] == all["p99"]);
    CHECK(latency["p999"] == all["p99_9"]);
  }
  const Json growth = Measured({});
  CHECK(growth.contains("written_bytes_per_put"));
  for (const char* figure : {"updates", "update_per_s", "update_write_amplification",
                             "memory_bytes_per_entry_updates"}) {
    CHECK_FALSE(growth.contains(figure));
  }
}

TEST_CASE("bench index measures engines whose files are in subdirectories") {
  const Json report = Measured({"--engines", "slice_hash:directories=3:table_bits=4"});
  REQUIRE(report["engines"].size() == 1);
  const Json& statistics = report["engines"][0];
  CHECK(statistics["verified"] == true);
  CHECK(statistics["index_file_reads_per_s"] > 0);
}

TEST_CASE("bench index measures several engines in one run") {
  const Json statistics =
      Measured({"--engines", "buffer_hash:table_bits=5:incarnations=4,map,silt:partition_bits=1",
                "--mix", "50:50", "--mix-entries", "4000", "--get-batch", "100"});
  const Json& engines = statistics["engines"];
  REQUIRE(engines.size() == 3);
  for (const Json& engine : engines) {
    CHECK(engine["verified"] == true);
    CHECK(engine["entries"] == 20'000);
    CHECK(engine["put_first_half_per_s"] > 0);
    CHECK(engine["processor_us_per_put"] >= 0);
    CHECK(engine["pages_per_hit"] == engine["reads_per_hit"]);
    CHECK(engine["mix_get_per_s"] > 0);
  }
  CHECK(engines[0]["engine"] == "buffer_hash");
  CHECK(engines[0]["index_options"] == Json{"table_bits=5", "incarnations=4"});
  CHECK(engines[0]["merges"] > 0);
  CHECK(engines[1]["reads_per_hit"] == 0);
  CHECK(engines[2]["engine"] == "silt");
}

TEST_CASE("bench index lists the strategies") {
  CHECK(Measured({"--strategy", "list"}) ==
        Json{{"strategies", {"default", "paper", "hashed+tries", "hashed+bounds", "runs+bounds"}}});
}

TEST_CASE("bench index measures each strategy") {
  double named = 0;
  double hashed = 0;
  double tries = 0;
  double bounds = 0;
  for (const std::string strategy : {"default", "paper", "hashed+tries", "hashed+bounds"}) {
    const Json statistics = Measured({"--strategy", strategy, "--get", "500"});
    CHECK(statistics["strategy"] == strategy);
    CHECK(statistics["verified"] == true);
    const bool has_names = strategy == "paper";
    CHECK(statistics["slot_bytes"] == (has_names ? 32 : 20));
    (has_names ? named : hashed) = statistics["growth"]["bytes_written_per_put"];
    const Json& memory = statistics["growth"]["index_memory_end"];
    if (strategy == "default") bounds = memory["page_index_bytes"];
    if (strategy == "hashed+tries") tries = memory["page_index_bytes"];
  }
  CHECK(named > 1.2 * hashed);
  CHECK(tries > 1.5 * bounds);
}

TEST_CASE("bench index leaves out kinds of stores, and says how") {
  const Json all = Measured({"--entries", "60000"});
  CHECK_FALSE(all.contains("without"));
  CHECK(all.contains("plan"));
  const auto memory = [](const Json& statistics, const char* kind) {
    return statistics["growth"]["index_memory_end"][kind].get<double>();
  };
  // Puts wait if a partition has more than 2 HashStores, and if 8 LogStores are frozen. So at most
  // 16 HashStores exist at the end; each filter has 352 bytes.
  constexpr double kFewFilters = 16 * 352;
  CHECK(memory(all, "hash_store_filter_bytes") > kFewFilters);

  const Json no_hash = Measured({"--without", "hash", "--entries", "60000"});
  CHECK(no_hash["without"] == Json::array({"hash"}));
  CHECK(no_hash["without_by"].get<std::string>().find("merged as soon") != std::string::npos);
  CHECK_FALSE(no_hash.contains("plan"));
  CHECK(memory(no_hash, "hash_store_filter_bytes") <= kFewFilters);

  // The only merge may be one of the fullest partition after all puts.
  const Json no_sorted =
      Measured({"--without", "sorted", "--strategy", "hashed+tries", "--entries", "60000"});
  CHECK(no_sorted["merges"] <= 2);
  CHECK(memory(no_sorted, "hash_store_filter_bytes") > 2 * memory(all, "hash_store_filter_bytes"));

  const Json logs = Measured({"--without", "hash,sorted", "--entries", "60000"});
  CHECK(logs["without"] == Json::array({"hash", "sorted"}));
  CHECK(logs["growth"]["conversions"] == 0);
  CHECK(memory(logs, "hash_store_filter_bytes") == 0);
  CHECK(memory(logs, "log_store_bytes") > memory(no_sorted, "hash_store_filter_bytes"));
  CHECK(logs["verified"] == true);
}

TEST_CASE("bench index limits the rate of a mix") {
  const Json statistics = Measured({"--mix", "50:50", "--get-batch", "64", "--mix-entries", "2000",
                                    "--mix-rate", "20000", "--get", "0", "--single-get", "0"});
  // 2,000 puts and 2,000 lookups; the first batches are not delayed.
  CHECK(statistics["mix_put_per_s"] < 12000);
  CHECK(statistics["mix_get_per_s"] < 12000);
  CHECK_FALSE(statistics["growth"].contains("single_hit_us"));
  CHECK_FALSE(statistics["growth"].contains("reads_per_hit"));
}

TEST_CASE("bench index refuses options that exclude each other, and says why") {
  struct Refused {
    std::vector<std::string> arguments;
    std::string reason;
  };
  for (const auto& [arguments, reason] :
       {Refused{{"--strategy", "quick"}, "--strategy"},
        Refused{{"--engine", "map", "--strategy", "paper"}, "only the engine silt has strategies"},
        Refused{{"--engine", "map", "--without", "hash"}, "only the engine silt can leave out"},
        Refused{{"--index-option", "bucket_bits=5"}, "bucket_bits"},
        Refused{{"--strategy", "paper", "--index-option", "tries=1"}, "tries"},
        Refused{{"--index-option", "hash_store_share=1"}, "hash_store_share"},
        Refused{{"--without", "logs"}, "--without"},
        Refused{{"--engines", "oak"}, "there is no engine \"oak\""},
        Refused{{"--engines", "map", "--keep", "--dir", "/tmp/none"}, "--engines: not with"},
        Refused{{"--trace-interval", "5"}, "--trace-memory"},
        Refused{{"--updates", "5080000"}, "254 updates of each entry"},
        Refused{{"--updates", "5", "--keep", "--dir", "/tmp/none"}, "excludes"}}) {
    const IndexBenchOutcome outcome = IndexBench(arguments);
    INFO(outcome.err);
    CHECK(outcome.code == 2);
    CHECK(outcome.err.find(reason) != std::string::npos);
  }
  CHECK(IndexBench({"--trace-memory", "/proc/none/trace"}).code == 1);
}

}  // namespace siltfs::testing
