// Tests siltfs index stat, dump and verify on an index that has stores of every kind.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "fs/open/store_layout.h"
#include "index/silt/silt_index.h"
#include "store/base/random.h"
#include "tests/support/catch.h"
#include "tests/support/read_text.h"
#include "tests/support/temporary_directory.h"
#include "tests/tools/run_in_process.h"

namespace siltfs::testing {
namespace {

constexpr uint64_t kEntries = 3000;

IndexEntry EntryOf(uint64_t number) {
  IndexEntry entry;
  Random(number).Fill(entry.name.bytes);
  const auto low = static_cast<uint32_t>(number);
  entry.location = {.segment = low / 100 + 1, .ordinal = low % 100, .block_offset = low * 8};
  return entry;
}

// A store that was never mounted. The test has filled its index directly.
class IndexedStore {
 public:
  IndexedStore() {
    REQUIRE(Run({"siltfs", "mkfs", path()}).code == 0);
    const auto env = NewPosixEnv();
    auto index = OpenSiltIndex(*env, {.directory = IndexPath(path()),
                                      .partition_bits = 1,
                                      .bucket_bits = 6,
                                      .hash_secret = 5,
                                      .hash_store_share = 0.5,
                                      .background = false});
    REQUIRE(index.ok());
    for (uint64_t number = 0; number < kEntries; number += 100) {
      std::vector<IndexEntry> entries;
      for (uint64_t i = 0; i < 100; ++i) entries.push_back(EntryOf(number + i));
      REQUIRE((*index)->Put(entries, number + 1).ok());
    }
    for (uint64_t number = 0; number < kEntries; ++number) {
      const ChunkName name = EntryOf(number).name;
      orders_[name] = (*index)->OrderOf(name);
    }
    REQUIRE((*index)->Close().ok());
    for (const IndexComponentStats& store : (*index)->stats().stores) ++stores_[store.kind];
    REQUIRE(stores_.size() == 3);
  }

  std::string path() const { return directory_ / "store"; }
  const std::map<std::string, uint64_t>& stores() const { return stores_; }
  uint64_t OrderOf(const ChunkName& name) const { return orders_.at(name); }

  // Returns every file with its contents.
  std::map<std::string, std::string> Contents() const {
    std::map<std::string, std::string> contents;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path())) {
      contents[entry.path()] = {};
      if (!entry.is_regular_file()) continue;
      contents[entry.path()] = ReadTextOf(entry.path()).value_or("");
    }
    return contents;
  }

  std::vector<std::string> IndexFiles() const {
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(IndexPath(path()))) {
      files.push_back(entry.path());
    }
    return files;
  }

 private:
  const TemporaryDirectory directory_;
  std::map<std::string, uint64_t> stores_;  // by kind
  std::map<ChunkName, uint64_t> orders_;    // ChunkIndex::OrderOf
};

void FlipByte(const std::string& path, uint64_t offset) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(offset));
  const int byte = file.get();
  file.seekp(static_cast<std::streamoff>(offset));
  file.put(static_cast<char>(byte ^ 0x10));
  REQUIRE(file.good());
}

TEST_CASE("index stat shows each store, the sums of each kind and the total") {
  const IndexedStore store;
  const Outcome outcome = Run({"siltfs", "index", "stat", "--json", store.path()});
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK(outcome.err.empty());
  const auto statistics = nlohmann::json::parse(outcome.out);
  CHECK(statistics.at("store") == store.path());
  CHECK(statistics.at("engine") == "silt");
  CHECK(statistics.at("entries") == kEntries);
  CHECK(statistics.at("pid").is_null());
  for (const char* key : {"lookups", "flash_reads", "conversions", "merges", "merge_backlog",
                          "damaged_pages", "read_amplification", "write_amplification"}) {
    INFO(key);
    CHECK(statistics.at(key).is_number());
  }
  std::map<std::string, uint64_t> counts;
  std::map<std::string, uint64_t> entries;
  std::set<uint64_t> ids;
  uint64_t flash = 0;
  for (const auto& one : statistics.at("stores")) {
    const std::string kind = one.at("kind");
    ++counts[kind];
    entries[kind] += one.at("entries").get<uint64_t>();
    flash += one.at("flash_bytes").get<uint64_t>();
    ids.insert(one.at("id").get<uint64_t>());
    CHECK(one.at("partition") < 2);
    CHECK(one.at("occupancy") <= 1 + 8.0 / 256);  // more than 1 if the stash has entries, too
    CHECK(one.at("false_positive_rate") == 0);
    CHECK(one.at("probes") == 0);
  }
  CHECK(counts == store.stores());
  CHECK(ids.size() == statistics.at("stores").size());
  CHECK(flash == statistics.at("flash_bytes"));
  REQUIRE(statistics.at("kinds").size() == counts.size());
  for (const auto& kind : statistics.at("kinds")) {
    CHECK(kind.at("count") == counts[kind.at("kind")]);
    CHECK(kind.at("entries") == entries[kind.at("kind")]);
  }
}

TEST_CASE("index stat prints text with one line per store") {
  const IndexedStore store;
  const Outcome outcome = Run({"siltfs", "index", "stat", store.path()});
  REQUIRE(outcome.code == 0);
  uint64_t stores = 0;
  for (const auto& [kind, count] : store.stores()) stores += count;
  constexpr size_t kTitles = 4 + 1 + 1 + 1 + 1;  // the total, a gap, kinds, a gap, stores
  CHECK(Lines(outcome.out) == kTitles + store.stores().size() + stores);
  CHECK(Has(outcome.out, "3000 entries"));
}

TEST_CASE("stat sums the index's stores by kind for any number of stores") {
  const IndexedStore store;
  const Outcome outcome = Run({"siltfs", "stat", "--json", store.path()});
  REQUIRE(outcome.code == 0);
  const auto stores = nlohmann::json::parse(outcome.out).at("index").at("stores");
  std::map<std::string, uint64_t> counts;
  for (const auto& kind : stores) counts[kind.at("kind")] += kind.at("count").get<uint64_t>();
  CHECK(counts == store.stores());
  CHECK(stores.size() == counts.size());
}

TEST_CASE("index dump prints every entry once, each a line of JSON") {
  const IndexedStore store;
  std::multiset<std::string> json;
  for (uint64_t number = 0; number < kEntries; ++number) {
    const auto [name, at] = EntryOf(number);
    const std::string segment = std::to_string(at.segment);
    const std::string ordinal = std::to_string(at.ordinal);
    const std::string offset = std::to_string(at.block_offset);
    std::array<char, 17> order;
    snprintf(order.data(), order.size(), "%016lx", store.OrderOf(name));
    json.insert(std::string(R"({"order":")") + order.data() + R"(","segment":)" + segment +
                R"(,"ordinal":)" + ordinal + R"(,"block_offset":)" + offset + "}");
  }
  const auto lines = [](const Outcome& outcome) {
    INFO(outcome.err);
    CHECK(outcome.code == 0);
    CHECK(outcome.err.empty());
    std::multiset<std::string> found;
    std::istringstream in(outcome.out);
    for (std::string line; std::getline(in, line);) found.insert(line);
    return found;
  };
  CHECK(lines(Run({"siltfs", "index", "dump", store.path()})) == json);
  CHECK(lines(Run({"siltfs", "index", "dump", "--json", store.path()})) == json);
}

TEST_CASE("index dump fails if its output cannot be written") {
  const IndexedStore store;
  const auto env = NewPosixEnv();
  std::ostringstream out;
  std::ostringstream err;
  out.setstate(std::ios::badbit);
  Surroundings surroundings{.env = *env, .out = out, .err = err};
  const std::vector<std::string> arguments = {"siltfs", "index", "dump", store.path()};
  CHECK(RunSiltfs(arguments, surroundings) == 1);
  CHECK(Lines(err.str()) == 1);
}

TEST_CASE("index dump exits 13 if damaged pages have lost entries") {
  const IndexedStore store;
  size_t short_dumps = 0;
  for (const std::string& path : store.IndexFiles()) {
    if (path.find(".sorted") == std::string::npos && path.find(".hash") == std::string::npos) {
      continue;
    }
    FlipByte(path, 100);
    const Outcome outcome = Run({"siltfs", "index", "dump", store.path()});
    FlipByte(path, 100);
    INFO(path);
    CHECK(outcome.code == 13);
    CHECK(Lines(outcome.err) == 1);
    if (Lines(outcome.out) > 0) ++short_dumps;
  }
  CHECK(short_dumps > 0);
}

TEST_CASE("index verify finds nothing in a sound index") {
  const IndexedStore store;
  const Outcome text = Run({"siltfs", "index", "verify", store.path()});
  INFO(text.err);
  CHECK(text.code == 0);
  CHECK(Has(text.out, "clean: 3000 entries"));
  const Outcome json = Run({"siltfs", "index", "verify", "--json", store.path()});
  CHECK(json.code == 0);
  const auto report = nlohmann::json::parse(json.out);
  CHECK(report.at("clean") == true);
  CHECK(report.at("entries") == kEntries);
  CHECK(report.at("findings").empty());
}

TEST_CASE("index verify exits 13 for a flipped bit in any file of the index, and names the place") {
  const IndexedStore sound;
  size_t reported = 0;
  for (const std::string& path : sound.IndexFiles()) {
    const uint64_t size = std::filesystem::file_size(path);
    if (size == 0) continue;
    INFO(path);
    FlipByte(path, 100);
    const Outcome json = Run({"siltfs", "index", "verify", "--json", sound.path()});
    CHECK(json.code == 13);
    if (nlohmann::json::parse(json.out).contains("error")) {  // the index cannot even be opened
      CHECK(Lines(json.err) == 1);
    } else {
      ++reported;
      const auto report = nlohmann::json::parse(json.out);
      CHECK(report.at("clean") == false);
      CHECK(report.at("finding_count") == report.at("findings").size());
      REQUIRE_FALSE(report.at("findings").empty());
      const std::string place = report.at("findings")[0].at("path");
      CHECK((place == path || place == IndexPath(sound.path())));
      const Outcome text = Run({"siltfs", "index", "verify", sound.path()});
      CHECK(text.code == 13);
      CHECK(Lines(text.out) == report.at("finding_count"));
    }
    FlipByte(path, 100);
  }
  CHECK(reported >= 4);
  CHECK(Run({"siltfs", "index", "verify", sound.path()}).code == 0);
}

TEST_CASE("index rebuild rebuilds the index from any state") {
  const IndexedStore store;  // its index has chunks that no segment has
  if (GENERATE(false, true)) std::filesystem::remove_all(IndexPath(store.path()));
  const Outcome json = Run({"siltfs", "index", "rebuild", "--json", store.path()});
  INFO(json.out << json.err);
  REQUIRE(json.code == 0);
  CHECK(json.err.empty());
  const auto report = nlohmann::json::parse(json.out);
  CHECK(report.at("store") == store.path());
  CHECK(report.at("engine") == "silt");
  CHECK(report.at("segments") == 0);
  CHECK(report.at("chunks") == 0);
  CHECK(report.at("entries") == 0);
  CHECK(report.at("damages") == 0);
  CHECK(report.at("seconds").is_number_float());
  CHECK(Run({"siltfs", "index", "verify", store.path()}).code == 0);
  CHECK(Run({"siltfs", "fsck", store.path()}).code == 0);
  const Outcome text = Run({"siltfs", "index", "rebuild", store.path()});
  CHECK(text.code == 0);
  CHECK(Lines(text.out) == 1);
}

TEST_CASE("index rebuild has the exit codes of the other index commands") {
  const TemporaryDirectory directory;
  CHECK(Run({"siltfs", "index", "rebuild", directory.path()}).code == 10);
  CHECK(std::filesystem::is_empty(directory.path()));
  const IndexedStore store;
  {
    const auto env = NewPosixEnv();
    const auto lock = env->LockFile(LockPath(store.path()));
    REQUIRE(lock.ok());
    CHECK(Run({"siltfs", "index", "rebuild", store.path()}).code == 11);
  }
  CHECK(Run({"siltfs", "index", "rebuild"}).code == 2);
  std::filesystem::remove_all(MetadataPath(store.path()));
  const Outcome damaged = Run({"siltfs", "index", "rebuild", "--json", store.path()});
  CHECK(damaged.code == 13);
  CHECK(nlohmann::json::parse(damaged.out).contains("error"));
  CHECK(Lines(damaged.err) == 1);
}

TEST_CASE("A rebuild that was interrupted before its first write is reported as interrupted") {
  const IndexedStore store;
  std::filesystem::create_directory(IndexRebuildPath(store.path()));
  std::filesystem::remove(IndexPath(store.path()) + "/manifest");
  for (const char* const command : {"verify", "stat", "dump"}) {
    const Outcome outcome = Run({"siltfs", "index", command, store.path()});
    CHECK(outcome.code == 13);
    CHECK(
        Has(outcome.err, "siltfs index rebuild was interrupted: run it again, or mount the store"));
  }
  CHECK(Run({"siltfs", "index", "rebuild", store.path()}).code == 0);
  CHECK(Run({"siltfs", "index", "verify", store.path()}).code == 0);
}

TEST_CASE("After an interrupted rebuild every command that reads the index reports it") {
  const IndexedStore store;
  std::filesystem::create_directory(IndexRebuildPath(store.path()));
  const std::string sentence = IndexPath(store.path()) +
                               ": siltfs index rebuild was interrupted: run it again, or mount the "
                               "store\n";
  const Outcome verified = Run({"siltfs", "index", "verify", store.path()});
  CHECK(verified.code == 13);
  CHECK(verified.out == "rebuild-interrupted: " + sentence);
  const Outcome json = Run({"siltfs", "index", "verify", "--json", store.path()});
  CHECK(json.code == 13);
  CHECK(nlohmann::json::parse(json.out).at("clean") == false);
  CHECK(nlohmann::json::parse(json.out).at("findings").at(0).at("code") == "rebuild-interrupted");
  const Outcome dumped = Run({"siltfs", "index", "dump", store.path()});
  CHECK(dumped.code == 0);
  CHECK(dumped.err == "siltfs: warning: " + sentence);
  CHECK(Has(Run({"siltfs", "index", "stat", store.path()}).out, "rebuilt only in part"));
  const auto interrupted = [&store] {
    const std::string stat = Run({"siltfs", "index", "stat", "--json", store.path()}).out;
    return nlohmann::json::parse(stat).at("rebuild_interrupted").get<bool>();
  };
  CHECK(interrupted());
  const Outcome checked = Run({"siltfs", "fsck", store.path()});
  CHECK(checked.code == 4);
  CHECK(Has(checked.out, "index-rebuild"));
  CHECK_FALSE(Has(checked.out, "not-indexed"));
  CHECK(Run({"siltfs", "index", "rebuild", store.path()}).code == 0);
  CHECK_FALSE(interrupted());
  CHECK(Run({"siltfs", "index", "verify", store.path()}).code == 0);
}

TEST_CASE("Reading an index writes nothing") {
  const IndexedStore store;
  // The first command makes the lock file if it is missing.
  CHECK(Run({"siltfs", "index", "stat", store.path()}).code == 0);
  const auto before = store.Contents();
  for (const char* command : {"stat", "dump", "verify"}) {
    CHECK(Run({"siltfs", "index", command, store.path()}).code == 0);
    CHECK(store.Contents() == before);
  }
}

TEST_CASE("A missing, used or damaged store has its own exit code") {
  const TemporaryDirectory directory;
  const IndexedStore store;
  const IndexedStore damaged;
  std::filesystem::remove_all(IndexPath(damaged.path()));
  const auto env = NewPosixEnv();
  const auto lock = env->LockFile(LockPath(store.path()));
  REQUIRE(lock.ok());
  for (const char* command : {"stat", "dump", "verify"}) {
    for (const auto& [place, code] : std::vector<std::pair<std::string, int>>{
             {directory.path(), 10}, {store.path(), 11}, {damaged.path(), 13}}) {
      const Outcome outcome = Run({"siltfs", "index", command, "--json", place});
      INFO(command << ": " << outcome.err);
      CHECK(outcome.code == code);
      CHECK(nlohmann::json::parse(outcome.out).contains("error"));
      CHECK(Lines(outcome.err) == 1);
      CHECK(Has(outcome.err, place));
    }
    CHECK(Run({"siltfs", "index", command}).code == 2);
    CHECK(Run({"siltfs", "index", command, "a", "b"}).code == 2);
  }
}

}  // namespace
}  // namespace siltfs::testing
