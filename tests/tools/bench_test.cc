// siltfs-bench prints the keys that scripts rely on, and measures correctly.
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "chunker/chunk_namer.h"
#include "index/open_index.h"
#include "store/base/coding.h"
#include "store/base/random.h"
#include "store/env/posix_env.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "tools/bench/bench.h"
#include "tools/bench/index_gets.h"
#include "tools/bench/index_keys.h"
#include "tools/bench/memory_meter.h"
#include "tools/bench/run_bench.h"

namespace siltfs::testing {
namespace {

struct BenchOutcome {
  int code;
  std::string out;
  std::string err;
};

BenchOutcome Bench(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "siltfs-bench");
  std::ostringstream out;
  std::ostringstream err;
  const int code = RunBench(arguments, out, err);
  return {.code = code, .out = out.str(), .err = err.str()};
}

// Returns the value that the chunker benchmark prints as cuts_sha1 for data that is cut every
// `length` bytes.
std::string CutsOfZeros(uint64_t bytes, uint64_t length) {
  Encoder cut_points;
  for (uint64_t end = length; end <= bytes; end += length) cut_points.U64(end);
  return ChunkNamer::Create({}).value().NameOf(cut_points.view()).ToHex();
}

}  // namespace

TEST_CASE("bench trie reports speed and size of every mode") {
  const BenchOutcome outcome =
      Bench({"trie", "--entries", "20000", "--part-entries", "6000", "--json"});
  REQUIRE(outcome.code == 0);
  const auto statistics = nlohmann::json::parse(outcome.out);
  CHECK(statistics["entries"] == 20000);
  CHECK(statistics["parts"] == 4);
  CHECK(statistics["lookups"] == 20000);
  CHECK(statistics["verified"] == true);
  for (const char* mode : {"weak", "exact", "sparse_weak", "sparse_exact"}) {
    for (const char* figure : {"build_per_s", "lookup_per_s", "bits_per_key"}) {
      INFO(mode << " " << figure);
      CHECK(statistics["modes"][mode][figure] > 0);
    }
  }
  for (const char* figure : {"build_per_s", "lookup_per_s", "bits_per_key"}) {
    CHECK(statistics[figure] == statistics["modes"]["weak"][figure]);
  }
}

TEST_CASE("bench slicebloom finds every name, and compares its false positives with the theory") {
  const TemporaryDirectory directory;
  const BenchOutcome outcome = Bench(
      {"slicebloom", "--names", "40000",          "--groups", "20",   "--bits", "15",   "--probes",
       "8",          "--get",   "20000",          "--batch",  "5000", "--mix",  "4000", "--rounds",
       "1",          "--dir",   directory.path(), "--json"});
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  const auto statistics = nlohmann::json::parse(outcome.out);
  CHECK(statistics["names"] == 40000);
  CHECK(statistics["groups"] == 20);
  CHECK(statistics["slicefilters"] == 16);
  CHECK(statistics["verified"] == true);
  CHECK(statistics["filter_bits_per_name"] == Approx(15.0 / 20));
  for (const char* figure :
       {"adds_per_s", "hits_per_s", "misses_per_s", "reads_per_hit", "mixed_operations_per_s",
        "mixed_operations_per_s_without_order", "memory_bits_per_name", "written_bytes_per_name"}) {
    INFO(figure);
    CHECK(statistics[figure] > 0);
  }
  CHECK(statistics["reads_per_hit"] <= 8);
  CHECK(statistics["false_positives"].get<double>() ==
        Approx(statistics["false_positives_theory"].get<double>()).epsilon(0.3));
  CHECK(statistics["memory_filter"]["memory_bytes"] == 40000 * 15 / 8);
  CHECK(std::filesystem::is_empty(directory.path()));
}

TEST_CASE("bench delta finds every chunk, and compares its bases with the best ones") {
  const TemporaryDirectory directory;
  const TemporaryDirectory sources;
  // Two versions of a file: every 4 KiB of the second one have a new byte.
  Bytes bytes(200'000);
  Random(1).Fill(bytes);
  for (const char* version : {"old", "new"}) {
    std::filesystem::create_directory(sources.path() + "/" + version);
    std::ofstream(sources.path() + "/" + version + "/file", std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    for (size_t i = 77; i < bytes.size(); i += 4096) bytes[i] ^= 1;
  }
  const BenchOutcome outcome =
      Bench({"delta", "--chunks", "20000", "--tables", "2,4", "--get", "2000", "--batch", "500",
             "--rounds", "1", "--buffer", "64K", "--dir", directory.path(), "--json",
             sources.path() + "/old", sources.path() + "/new"});
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  const auto statistics = nlohmann::json::parse(outcome.out);
  CHECK(statistics["verified"] == true);
  for (const char* tables : {"tables_2", "tables_4", "tables_2_single", "tables_4_single"}) {
    const auto& run = statistics["lookups"][tables];
    INFO(tables);
    for (const char* figure : {"lookups_per_s", "adds_per_s", "memory_bytes"}) {
      INFO(figure);
      CHECK(run[figure] > 0);
    }
    CHECK(run["flash_bytes_per_entry"] < 16);
    CHECK(run["found_in_all_tables"] > 0.99);
    CHECK(run["reads_per_lookup"] == run["slicetables"]);
  }
  CHECK(statistics["lookups"]["tables_4_single"]["reads_per_lookup"] == 4);
  const auto& recall = statistics["resemblance"];
  CHECK(recall["useful_bases"] >= 10);
  CHECK(recall["sample_files"] == 2);
  const auto& shape = recall["super_features_x_features"]["3x4"];
  CHECK(shape["recall"] > 0.8);
  CHECK(shape["recall"] <= 1);
  CHECK(shape["precision"] > 0.9);
  CHECK(shape["share_of_savings"] > 0.8);
  CHECK(statistics["recall"] > 0.8);
  CHECK(statistics["precision"] > 0.8);
  CHECK(statistics["logical_bytes"] == 400'000);
  for (const char* figure :
       {"stored_bytes_without", "stored_bytes_with", "ingest_bytes_per_s_without",
        "ingest_bytes_per_s_with", "recompress_bytes_per_s_without", "recompress_bytes_per_s_with",
        "restore_bytes_per_s_without", "restore_bytes_per_s_with"}) {
    INFO(figure);
    CHECK(statistics[figure] > 0);
  }
  CHECK(std::filesystem::is_empty(directory.path()));
}

TEST_CASE("bench mark makes a store, marks it, and removes it") {
  const TemporaryDirectory directory;
  const bool no_spill = GENERATE(false, true);
  std::vector<std::string> arguments = {"mark", "--entries", "20000",          "--memory",
                                        "64K",  "--dir",     directory.path(), "--json"};
  if (no_spill) arguments.push_back("--no-spill");
  const BenchOutcome outcome = Bench(arguments);
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  const auto statistics = nlohmann::json::parse(outcome.out);
  CHECK(statistics["verified"] == true);
  CHECK(statistics["dead"] == 2500);
  CHECK(statistics["nodes"] > 100);
  for (const char* run : {"first", "again"}) {
    INFO(run);
    CHECK((statistics[run]["passes"] > 1) == no_spill);
    CHECK((statistics[run]["spilled_bytes"] > 0) == !no_spill);
    CHECK(statistics[run]["chunks_per_s"] > 0);
  }
  CHECK(statistics["segment_mark"]["segments"] == 5);
  CHECK(std::filesystem::is_empty(directory.path()));
}

TEST_CASE("bench stores builds each kind of store alone, and looks names up in it") {
  const TemporaryDirectory directory;
  const BenchOutcome done =
      Bench({"stores", "--entries", "30000", "--bucket-bits", "7", "--get", "2000", "--single-get",
             "300", "--rounds", "1", "--dir", directory.path(), "--json"});
  INFO(done.err);
  REQUIRE(done.code == 0);
  const auto statistics = nlohmann::json::parse(done.out);
  CHECK(statistics["verified"] == true);
  const auto& kinds = statistics["kinds"];
  REQUIRE(kinds.size() == 5);
  for (const auto& kind : kinds) {
    CHECK(kind["built_entries_per_s"] > 0);
    CHECK(kind["get_miss_per_s"] > 0);
    CHECK(kind["reads_per_hit"] >= 1);
    CHECK(kind["reads_per_hit"] < 1.01);
    CHECK(kind["single_hit_us"]["calls"] == 300);
    CHECK(kind["single_hit_us"]["p50"] > 0);
    CHECK(kind["single_miss_us"]["calls"] == 300);
  }
  CHECK(kinds["log_store"]["stores"] > 50);
  CHECK(kinds["sorted_store"]["stores"] == 1);
  CHECK(kinds["hash_store"]["reads_per_miss"] < 0.01);
  CHECK(kinds["sorted_store"]["reads_per_miss"] == 1);
  CHECK(kinds["sorted_run"]["memory_bytes_per_entry"] <
        kinds["hash_store"]["memory_bytes_per_entry"]);
  CHECK(std::filesystem::is_empty(directory.path()));
}

TEST_CASE("bench index updates entries under each memory limit") {
  const BenchOutcome done =
      Bench({"index", "--entries", "200000", "--updates", "1000", "--get", "500", "--rounds", "1",
             "--index-option", "partition_bits=2", "--memory-steps", "4M,1M", "--step-get", "300",
             "--step-updates", "150000", "--json"});
  INFO(done.err);
  REQUIRE(done.code == 0);
  const auto statistics = nlohmann::json::parse(done.out);
  CHECK(statistics["verified"] == true);
  REQUIRE(statistics["memory_steps"].size() == 2);
  double written = 0;
  for (const auto& step : statistics["memory_steps"]) {
    CHECK(step["updates"]["updates"] == 150'000);
    CHECK(step["updates"]["put_per_s"] > 0);
    CHECK(step["updates"]["merges"] > 0);
    const double bytes = step["updates"]["written_bytes_per_put"];
    CHECK(bytes / 32 == Approx(step["updates"]["write_amplification"].get<double>()));
    CHECK(bytes > written);  // less memory costs writes
    written = bytes;
  }
}

TEST_CASE("bench index steps through memory limits, and bench open opens the kept index") {
  const TemporaryDirectory directory;
  const BenchOutcome filled = Bench({"index", "--entries", "20000", "--get", "500", "--rounds", "1",
                                     "--dir", directory.path(), "--keep", "--memory-steps",
                                     "none,1M,0", "--step-get", "300", "--json"});
  INFO(filled.err);
  REQUIRE(filled.code == 0);
  const auto steps = nlohmann::json::parse(filled.out)["memory_steps"];
  REQUIRE(steps.size() == 3);
  CHECK(steps[0]["memory_limit_bytes"].is_null());
  CHECK(steps[2]["memory_limit_bytes"] == 0);
  for (const auto& step : steps) {
    for (const char* figure :
         {"memory_bytes_reported", "get_hit_per_s", "get_miss_per_s", "gets"}) {
      INFO(figure);
      CHECK(step[figure] > 0);
    }
  }
  CHECK(steps[2]["memory_bytes_reported"] < steps[0]["memory_bytes_reported"]);

  for (const char* mode : {"--memory=0", "--wait"}) {
    const BenchOutcome opened =
        Bench({"open", "--dir", directory.path(), "--entries", "20000", mode, "--json"});
    INFO(opened.err);
    REQUIRE(opened.code == 0);
    const auto statistics = nlohmann::json::parse(opened.out);
    CHECK(statistics["verified"] == true);
    CHECK(statistics["first_answer_seconds"] >= statistics["open_seconds"]);
    CHECK(statistics["series"].size() > 0);
  }
  CHECK(Bench({"open", "--dir", directory.path(), "--entries", "30000", "--json"}).code == 1);
  CHECK(Bench({"index", "--entries", "100", "--memory-steps", "lots"}).code == 2);
  CHECK(Bench({"index", "--dir", directory.path(), "--keep", "--step-updates", "5"}).code == 2);
}

TEST_CASE("bench trie measures the requested modes") {
  const auto modes_of = [](const std::vector<std::string>& flags) {
    std::vector<std::string> arguments = {"trie", "--entries", "500", "--json"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    const BenchOutcome outcome = Bench(arguments);
    REQUIRE(outcome.code == 0);
    std::string names;
    const auto modes = nlohmann::json::parse(outcome.out)["modes"];
    for (const auto& [name, statistics] : modes.items()) {
      names += name + " ";
    }
    return names;
  };
  CHECK(modes_of({"--weak"}) == "weak ");
  CHECK(modes_of({"--exact"}) == "exact weak ");
  CHECK(modes_of({"--sparse"}) == "sparse_exact sparse_weak weak ");
  CHECK(modes_of({"--sparse", "--exact"}) == "sparse_exact weak ");
}

TEST_CASE("bench chunker reports the rate of every kernel, and all cut alike") {
  const TemporaryDirectory directory;
  const std::string file = directory / "data";
  std::ofstream(file) << std::string(300'000, 'x') << "and an end";
  const std::vector<std::vector<std::string>> data = {
      {"--random", "1M"}, {"--zero", "1M"}, {"--file", file}, {"--random", "1M", "--avg", "4K"}};
  std::vector<std::string> cuts;
  for (std::vector<std::string> arguments : data) {
    arguments.insert(arguments.begin(), "chunker");
    arguments.insert(arguments.end(), {"--rounds", "1", "--json"});
    const BenchOutcome outcome = Bench(arguments);
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
    const auto statistics = nlohmann::json::parse(outcome.out);
    CHECK(statistics["verified"] == true);
    CHECK(statistics["sha1_bytes_per_s"] > 0);
    CHECK(statistics["sha1_batch_bytes_per_s"] > 0);
    CHECK(statistics["sha1_kernel"] != "");
    const auto& kernels = statistics["kernels"];
    REQUIRE(kernels.size() >= 2);
    CHECK(kernels[0]["name"] == "scalar");
    CHECK(kernels[1]["name"] == "portable");
    CHECK(statistics["chosen"] == kernels.back()["name"]);
    for (const auto& kernel : kernels) {
      CHECK(kernel["bytes_per_s"] > 0);
      CHECK(kernel["cuts_sha1"] == kernels[0]["cuts_sha1"]);
    }
    cuts.push_back(kernels[0]["cuts_sha1"]);
  }
  std::sort(cuts.begin(), cuts.end());
  CHECK(std::unique(cuts.begin(), cuts.end()) == cuts.end());
  // Zeros are cut into 16 chunks of the maximum size. cuts_sha1 is the SHA-1 of their ends 65536,
  // 131072, ..., as numbers of eight bytes.
  CHECK(std::count(cuts.begin(), cuts.end(), CutsOfZeros(1 << 20, 65536)) == 1);

  CHECK(Bench({"chunker", "--file", directory / "absent"}).code == 1);
  CHECK(Bench({"chunker", "--random", "1M", "--zero", "1M"}).code == 2);
  CHECK(Bench({"chunker", "--random", "1M", "--avg", "100"}).code == 1);
}

TEST_CASE("bench chunks counts the new chunks of each file") {
  const TemporaryDirectory directory;
  Bytes data(400'000);
  Random(1).Fill(data);
  const std::string first = directory / "first";
  const std::string second = directory / "second";
  std::ofstream(first) << AsText(data);
  std::ofstream(second) << "before " << AsText(data);
  const BenchOutcome outcome = Bench({"chunks", "--avg", "4K,16K", first, second, first, "--json"});
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  const auto means = nlohmann::json::parse(outcome.out)["means"];
  REQUIRE(means.size() == 2);
  for (const auto& mean : means) {
    CHECK(mean["bytes"] == 1'200'007);
    const auto& files = mean["files"];
    REQUIRE(files.size() == 3);
    CHECK(files[0]["new_bytes"] == 400'000);
    CHECK(files[1]["new_bytes"] > 7);
    CHECK(files[1]["new_bytes"] < 150'000);
    CHECK(files[2]["new_bytes"] == 0);
    CHECK(files[2]["chunks"] == files[0]["chunks"]);
    double shares = 0;
    for (const double share : mean["share_by_bin"]) shares += share;
    CHECK(shares == Approx(1));
    CHECK(mean["percentile_10"] >= mean["min"]);
    CHECK(mean["percentile_99"] <= mean["max"]);
  }
  CHECK(means[0]["chunks"] > means[1]["chunks"]);
  CHECK(means[0]["avg"] == 4096);
  CHECK(Bench({"chunks", directory / "absent"}).code == 1);
  CHECK(Bench({"chunks", "--avg", "lots", first}).code == 1);
}

TEST_CASE("bench cuckoo reports speed and occupancy") {
  const BenchOutcome outcome = Bench({"cuckoo", "--entries", "40000", "--json"});
  REQUIRE(outcome.code == 0);
  const auto statistics = nlohmann::json::parse(outcome.out);
  CHECK(statistics["tables"] == 3);
  CHECK(statistics["verified"] == true);
  CHECK(statistics["occupancy"] >= 0.93);
  CHECK(statistics["insert_per_s"] > 0);
  CHECK(statistics["lookup_per_s"] > 0);
  CHECK(statistics["bits_per_key"] > 0);
}

TEST_CASE("bench index reports all statistics of an engine, and compares every answer") {
  for (const std::string engine : {"silt", "map"}) {
    const TemporaryDirectory directory;
    const BenchOutcome outcome =
        Bench({"index", "--engine", engine, "--entries", "20000", "--get", "6000", "--dir",
               directory.path(), "--rounds", "3", "--json"});
    INFO(engine << ": " << outcome.err);
    REQUIRE(outcome.code == 0);
    const auto statistics = nlohmann::json::parse(outcome.out);
    CHECK(statistics["engine"] == engine);
    CHECK(statistics["entries"] == 20000);
    CHECK(statistics["gets"] == 6000);
    CHECK(statistics["threads"] == 2);
    CHECK(statistics["verified"] == true);
    CHECK(statistics["memory_limit_bytes"].is_null());
    for (const char* figure :
         {"put_per_s", "put_second_half_per_s", "get_hit_per_s", "get_miss_per_s",
          "device_reads_per_s", "get_hit_share_of_device", "scan_per_s", "write_amplification"}) {
      INFO(figure);
      CHECK(statistics[figure] > 0);
    }
    CHECK(statistics.contains("plan") == (statistics["engine"] == "silt"));
    // The values may be 0: the process need not grow if an earlier test has left enough memory.
    CHECK(statistics["memory_bytes"] >= statistics["memory_bytes_end"]);
    CHECK(statistics["memory_bytes_per_entry"] >= statistics["memory_bytes_per_entry_end"]);
    // Entries that are still in memory need no read; written entries need one.
    CHECK(statistics["reads_per_hit"] >= 0);
    CHECK(statistics["reads_per_hit"] <= 1.1);
    CHECK(statistics["reads_per_miss"] <= 0.1);
    CHECK(statistics["device_file_bytes"] >= statistics["flash_bytes"]);
    CHECK(std::filesystem::is_empty(directory.path()));
  }
}

TEST_CASE("bench index mixes lookups and puts at the given ratio") {
  const BenchOutcome outcome = Bench({"index", "--entries", "20000", "--get", "0", "--mix", "5:10",
                                      "--get-batch", "64", "--memory", "8M", "--json"});
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  const auto statistics = nlohmann::json::parse(outcome.out);
  CHECK(statistics["mix_gets"] <= 20000);
  CHECK(statistics["mix_gets"] >= 20000 - 3 * 64 - 2 * 1024);
  CHECK(statistics["mix_get_per_s"] > 0);
  CHECK(statistics["mix_put_per_s"] > 0);
  CHECK(statistics["mix_entries"] == 10000);
  CHECK(statistics["memory_limit_bytes"] == 8 << 20);
  CHECK_FALSE(statistics.contains("get_hit_per_s"));
}

TEST_CASE("bench index fails with one sentence if no index can be made") {
  const BenchOutcome outcome = Bench({"index", "--entries", "10", "--dir", "/proc/none"});
  CHECK(outcome.code == 1);
  CHECK(outcome.out.empty());
  CHECK(outcome.err.find("/proc/none/siltfs-bench-") != std::string::npos);
  CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
}

TEST_CASE("A lookup with a wrong answer fails") {
  const TemporaryDirectory directory;
  const auto env = NewPosixEnv();
  auto index = OpenIndex(*env, {.engine = IndexEngine::kMap, .directory = directory.path()});
  REQUIRE(index.ok());
  const IndexKeys keys(7);
  const std::array<IndexEntry, 3> entries = {keys.EntryOf(0),
                                             IndexEntry{keys.NameOf(1), keys.LocationOf(2)},
                                             keys.EntryOf(IndexKeys::kAbsent + 4)};
  REQUIRE((*index)->Put(entries, 1).ok());
  IndexGets gets(**index, keys, 64, 1);
  gets.GetPresent(64, 1);
  CHECK_THROWS_AS(gets.GetPresent(64, 2), BenchFailure);  // another entry's location
  gets.GetAbsent(64);
  const IndexKeys others(8);
  IndexGets elsewhere(**index, others, 64, 1);
  CHECK_THROWS_AS(elsewhere.GetPresent(64, 1), BenchFailure);  // the index lacks these names
}

TEST_CASE("Locations can be turned back into numbers, and a tally detects a missing number") {
  const IndexKeys keys(3);
  NumberTally tally;
  for (uint64_t number = 0; number < 1000; ++number) {
    REQUIRE(keys.NumberOf(keys.LocationOf(number)) == number);
    CHECK_FALSE(tally.IsFirst(1000));
    tally.Add(number);
  }
  CHECK(tally.IsFirst(1000));
  CHECK_FALSE(IndexKeys(4).NumberOf(keys.LocationOf(1)));
  NumberTally doubled;
  for (uint64_t number = 0; number < 1000; ++number) doubled.Add(number == 7 ? 8 : number);
  CHECK(doubled.count() == 1000);
  CHECK_FALSE(doubled.IsFirst(1000));
}

TEST_CASE("The memory peak is measured, and freed memory no longer counts") {
  constexpr size_t kSize = 64U << 20;
  MemoryMeter meter;
  // Allocate directly from the system, because a sanitizer's allocator keeps freed memory.
  void* const held =
      mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(held != MAP_FAILED);
  std::memset(held, 1, kSize);
  CHECK(meter.Growth() >= kSize - (kSize >> 4));
  REQUIRE(munmap(held, kSize) == 0);
  CHECK(meter.Growth() < kSize / 2);
  CHECK(meter.PeakGrowth() >= kSize - (kSize >> 4));
  CHECK(meter.PeakGrowth() < kSize / 2);
}

TEST_CASE("bench prints plain text without --json") {
  const BenchOutcome outcome = Bench({"trie", "--entries", "1000", "--weak"});
  REQUIRE(outcome.code == 0);
  CHECK(outcome.out.find("modes.weak.bits_per_key: ") != std::string::npos);
}

TEST_CASE("bench exits with the usage code for a wrong command line") {
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{},
                                                    {"unknown"},
                                                    {"trie", "--entries", "0"},
                                                    {"trie", "--entries"},
                                                    {"cuckoo", "--bucket-bits", "16"},
                                                    {"cuckoo", "--weak"},
                                                    {"index", "--engine", "oak"},
                                                    {"index", "--entries", "1"},
                                                    {"index", "--mix", "0:5"},
                                                    {"index", "--mix", "5"},
                                                    {"index", "--memory", "much"},
                                                    {"index", "--threads", "0"}}) {
    const BenchOutcome outcome = Bench(arguments);
    CHECK(outcome.code == 2);
    CHECK(outcome.out.empty());
    CHECK_FALSE(outcome.err.empty());
  }
  CHECK(Bench({"--help"}).code == 0);
  CHECK(Bench({"index", "--help"}).out.find("--mix") != std::string::npos);
}

}  // namespace siltfs::testing
