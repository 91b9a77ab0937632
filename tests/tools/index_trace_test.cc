// The memory trace of siltfs-bench index.
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "tests/tools/index_bench_fixture.h"

namespace siltfs::testing {
namespace {

using Row = std::map<std::string, std::string>;  // from a column's name to the cell

std::vector<Row> ReadCsv(const std::string& path) {
  std::ifstream file(path);
  const auto cells_of = [](const std::string& line) {
    std::istringstream text(line);
    std::vector<std::string> cells;
    for (std::string cell; std::getline(text, cell, ',');) cells.push_back(cell);
    return cells;
  };
  std::string line;
  std::getline(file, line);
  const std::vector<std::string> names = cells_of(line);
  std::vector<Row> rows;
  while (std::getline(file, line)) {
    const std::vector<std::string> cells = cells_of(line);
    REQUIRE(cells.size() == names.size());
    Row& row = rows.emplace_back();
    for (size_t i = 0; i < cells.size(); ++i) row[names[i]] = cells[i];
  }
  return rows;
}

}  // namespace

TEST_CASE("bench index traces memory over time") {
  const TemporaryDirectory directory;
  const std::string path = directory / "trace.csv";
  const Json statistics = Measured({"--updates", "5000", "--mix", "10:90", "--get-batch", "64",
                                    "--trace-memory", path, "--trace-interval", "1"});
  CHECK(statistics["memory_trace"]["file"] == path);
  for (const char* phase : {"growth", "updates"}) {
    const Json& peak = statistics[phase]["index_memory_peak"];
    CHECK(peak["bytes"] >= statistics[phase]["index_memory_end"]["log_store_bytes"]);
    CHECK(statistics[phase]["index_memory_peak_bytes_per_entry"] > 0);
  }
  CHECK(statistics["updates"]["index_memory_peak_entries"] == 20000);
  CheckLatency(statistics["mix_get_call_us"], statistics["mix_gets"].get<uint64_t>() / 64);

  auto rows = ReadCsv(path);
  REQUIRE(rows.size() == statistics["memory_trace"]["samples"]);
  REQUIRE(rows.size() >= 3);
  double seconds = 0;
  for (auto& row : rows) {
    CHECK(std::stod(row["seconds"]) >= seconds);
    seconds = std::stod(row["seconds"]);
    uint64_t sum = 0;
    for (const char* kind : {"log_store_bytes", "hash_store_filter_bytes", "page_index_bytes",
                             "sorted_store_filter_bytes", "other_bytes"}) {
      sum += std::stoull(row[kind]);
    }
    CHECK(sum == std::stoull(row["index_bytes"]));
    CHECK(row.contains("resident_bytes"));
  }
  auto& last = rows.back();
  CHECK(last["phase"] == "end");
  CHECK(last["entries"] == "20000");
  CHECK(last["puts"] == "25000");
  // The lookups of the mix, then twice 2,000 in batches and 400 single ones of each kind.
  CHECK(std::stoull(last["gets"]) == statistics["mix_gets"].get<uint64_t>() + 2 * 2 * 2400);
  CHECK(std::stoull(last["merges"]) == statistics["merges"].get<uint64_t>());
  for (const char* column :
       {"log_stores", "hash_stores", "sorted_stores", "conversions", "flash_bytes_written"}) {
    INFO(column);
    CHECK(std::stoull(last[column]) > 0);
  }
}

}  // namespace siltfs::testing
