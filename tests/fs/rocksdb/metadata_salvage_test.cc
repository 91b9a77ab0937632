// Reads a key-value store, undamaged or damaged, without RocksDB.
#include "fs/rocksdb/metadata_salvage.h"

#include <algorithm>
#include <map>

#include "fs/rocksdb/table_block.h"
#include "fs/rocksdb/table_check.h"
#include "store/base/coding.h"
#include "store/base/random.h"
#include "tests/fs/meta/metadata_test_support.h"
#include "tests/fs/meta/simulated_store.h"
#include "tests/support/test_scale.h"

namespace siltfs {
namespace {

using testing::At;
using testing::Contents;
using testing::Flip;
using testing::kLedgerPath;
using testing::kStorePath;
using testing::kWholeScale;
using testing::TestScale;
using Mode = KvStoreOptions::Mode;
using Entries = std::map<std::string, std::string>;

struct Salvaged {
  Entries entries;
  MetadataSalvage report;

  uint64_t LostBytes() const {
    uint64_t bytes = 0;
    for (const SalvageLoss& loss : report.losses) bytes += loss.bytes;
    return bytes;
  }
  // Number of changes known to be lost.
  uint64_t LostChanges() const {
    uint64_t changes = 0;
    for (const SalvageLoss& loss : report.losses) changes += *loss.expected - loss.read;
    return changes;
  }
};

Salvaged ReadAll(Env& env) {
  Salvaged salvaged;
  std::string last;
  const auto visit = [&](std::string_view key, std::string_view value) {
    REQUIRE((salvaged.entries.empty() || last < key));
    last = key;
    salvaged.entries.emplace(key, value);
    return Status::Ok();
  };
  auto report = SalvageMetadata(env, kStorePath, kLedgerPath, visit);
  REQUIRE_OK(report);
  salvaged.report = std::move(*report);
  REQUIRE(salvaged.report.entries == salvaged.entries.size());
  return salvaged;
}

std::vector<std::string> FilesWith(Env& env, std::string_view part) {
  const auto entries = env.ListDirectory(kStorePath);
  REQUIRE_OK(entries);
  std::vector<std::string> paths;
  for (const DirectoryEntry& entry : *entries) {
    if (entry.name.find(part) != std::string::npos)
      paths.push_back(JoinPath(kStorePath, entry.name));
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::string Key(uint64_t number) { return Encoder().U8('k').BigU64(number).Take(); }

std::string Value(Random& random) {
  std::string value(20 + random.Below(200), 'v');
  for (size_t at = 0; at < value.size() / 2; ++at) value[at] = static_cast<char>(random.Below(256));
  return value;
}

// A store in which keys were set, overwritten and removed in several mounts, so that there are
// tables on several levels.
struct Filled {
  explicit Filled(uint64_t mounts = 6, uint64_t changes = 3000) {
    for (uint64_t mount = 0; mount < mounts; ++mount)
      Mount(mount == 0 ? Mode::kCreate : Mode::kOpen, changes);
  }
  void Mount(Mode mode, uint64_t changes) {
    auto store = OpenRocksDbStore(env, At(mode));
    REQUIRE_OK(store);
    for (uint64_t i = 0; i < changes / 100; ++i) {
      std::vector<Mutation> mutations;
      for (int j = 0; j < 100; ++j) {
        const std::string key = Key(random.Below(8000));
        if (random.Below(4) == 0) {
          mutations.push_back({key, std::nullopt});
          entries.erase(key);
        } else {
          entries[key] = Value(random);
          mutations.push_back({key, entries[key]});
        }
      }
      REQUIRE_OK((*store)->Write(mutations));
    }
    REQUIRE_OK((*store)->CloseCleanly());
  }

  SimEnv env;
  Entries entries;
  Random random{5};
};

// Requires that `rest` differs from `whole` only by missing entries.
void RequireOnlyMissing(const Entries& whole, const Entries& rest) {
  for (const auto& [key, value] : rest) {
    const auto found = whole.find(key);
    REQUIRE(found != whole.end());
    REQUIRE(found->second == value);
  }
}

TEST_CASE("From an undamaged store everything is read, and nothing else") {
  Filled filled;
  SECTION("with the MANIFEST") { CHECK(ReadAll(filled.env).report.manifest_known); }
  SECTION("without a ledger") { REQUIRE_OK(filled.env.RemoveFile(kLedgerPath)); }
  SECTION("without CURRENT") { REQUIRE_OK(filled.env.RemoveFile(JoinPath(kStorePath, "CURRENT"))); }
  SECTION("without a MANIFEST") {
    for (const std::string& path : FilesWith(filled.env, "MANIFEST"))
      REQUIRE_OK(filled.env.RemoveFile(path));
  }
  const Salvaged salvaged = ReadAll(filled.env);
  CHECK(salvaged.report.losses.empty());
  CHECK(salvaged.report.tables >= 2);
  REQUIRE((salvaged.entries == filled.entries));
}

TEST_CASE("From many tables on several levels everything is read") {
  Filled filled(9, 40'000);
  SimEnv& env = filled.env;
  const Salvaged salvaged = ReadAll(env);
  CHECK(salvaged.report.losses.empty());
  REQUIRE((salvaged.entries == filled.entries));
}

TEST_CASE("Tables that are not in use are ignored if the MANIFEST is known") {
  Filled filled(3);
  SimEnv& env = filled.env;
  SimEnv other;
  {
    auto store = OpenRocksDbStore(other, At(Mode::kCreate));
    REQUIRE_OK(store);
    REQUIRE_OK((*store)->Write({{"another store's", "value"}}));
    REQUIRE_OK((*store)->CloseCleanly());
  }
  auto file = env.OpenFile(JoinPath(kStorePath, "000999.sst"), {.mode = OpenMode::kCreate});
  REQUIRE_OK(file);
  REQUIRE_OK((*file)->Write(0, AsBytes(Contents(other, FilesWith(other, ".sst").at(0)))));
  REQUIRE((ReadAll(env).entries == filled.entries));
  // Without a known MANIFEST, using a dead table is better than missing a live one.
  REQUIRE_OK(env.RemoveFile(kLedgerPath));
  const Salvaged salvaged = ReadAll(env);
  CHECK_FALSE(salvaged.report.manifest_known);
  CHECK(salvaged.entries.size() == filled.entries.size() + 1);
}

TEST_CASE("Changes left in the log by a crash are read") {
  SimEnv env;
  Entries expected;
  {
    auto store = OpenRocksDbStore(env, At(Mode::kCreate));
    REQUIRE_OK(store);
    Random random(3);
    for (uint64_t i = 0; i < 1000; ++i) {
      expected[Key(i)] = Value(random);
      REQUIRE_OK((*store)->Write({{Key(i), expected[Key(i)]}}));
    }
    REQUIRE_OK((*store)->Write({{Key(7), std::nullopt}}));
    expected.erase(Key(7));
    REQUIRE_OK(env.SyncDirectory("/"));
    env.CutAtCall(1);  // so that RocksDB's threads write nothing either
    store->reset();
    env.Reboot();
  }
  const Salvaged salvaged = ReadAll(env);
  CHECK(salvaged.report.losses.empty());
  CHECK(salvaged.entries.size() == expected.size());
  REQUIRE((salvaged.entries == expected));

  // A flipped byte loses one write, or, if it belongs to a length, the rest of a 32 KiB block.
  std::string log;
  size_t size = 0;
  for (const std::string& path : FilesWith(env, ".log")) {
    const size_t bytes = Contents(env, path).size();
    if (bytes > size) log = path;
    size = std::max(size, bytes);
  }
  for (size_t at = 100; at < size - 100; at += 3001) {
    const auto damaged = env.Fork();
    Flip(*damaged, log, at, 0x10);
    const Salvaged rest = ReadAll(*damaged);
    INFO("byte " << at << " of " << size);
    REQUIRE(rest.LostBytes() > 0);
    REQUIRE(rest.LostBytes() <= 33'000);
    RequireOnlyMissing(expected, rest.entries);
    REQUIRE(rest.entries.size() + 300 > expected.size());
  }
}

TEST_CASE("A flipped byte anywhere in a table loses at most the entries of one block") {
  SimEnv env;
  Entries expected;
  {
    auto store = OpenRocksDbStore(env, At(Mode::kCreate));
    REQUIRE_OK(store);
    Random random(9);
    std::vector<Mutation> mutations;
    for (uint64_t i = 0; i < 2000; ++i) {
      expected[Key(i)] = Value(random);
      mutations.push_back({Key(i), expected[Key(i)]});
    }
    REQUIRE_OK((*store)->Write(mutations));
    REQUIRE_OK((*store)->CloseCleanly());
  }
  const auto tables = FilesWith(env, ".sst");
  REQUIRE(tables.size() == 1);
  const size_t size = Contents(env, tables[0]).size();
  uint64_t harmless = 0;
  const size_t step = TestScale() == kWholeScale ? 1 : 5;
  for (size_t at = 0; at < size; at += step * (at + 3000 > size ? 7 : 1009)) {
    const auto damaged = env.Fork();
    Flip(*damaged, tables[0], at, 0x04);
    const Salvaged rest = ReadAll(*damaged);
    INFO("byte " << at << " of " << size);
    RequireOnlyMissing(expected, rest.entries);
    const size_t lost = expected.size() - rest.entries.size();
    REQUIRE(lost < 120);
    if (lost > 0) {
      REQUIRE(rest.report.losses.size() == 1);
      REQUIRE(rest.LostChanges() >= lost);
      REQUIRE(rest.LostChanges() <= lost + 1);  // plus the removal of a key that never existed
    }
    harmless += lost == 0 ? 1 : 0;
  }
  CHECK(harmless > 30 / step);  // bytes of the index, filters and the footer
}

TEST_CASE("Several damaged blocks and unreadable parts lose only their own entries") {
  SimEnv env;
  Entries expected;
  {
    auto store = OpenRocksDbStore(env, At(Mode::kCreate));
    REQUIRE_OK(store);
    Random random(10);
    std::vector<Mutation> mutations;
    for (uint64_t i = 0; i < 3000; ++i) {
      expected[Key(i)] = Value(random);
      mutations.push_back({Key(i), expected[Key(i)]});
    }
    REQUIRE_OK((*store)->Write(mutations));
    REQUIRE_OK((*store)->CloseCleanly());
  }
  const std::string table = FilesWith(env, ".sst").at(0);
  const size_t size = Contents(env, table).size();
  SECTION("three flipped bytes") {
    for (const size_t at : {size_t{10}, size / 3, size / 2}) Flip(env, table, at);
    const Salvaged rest = ReadAll(env);
    RequireOnlyMissing(expected, rest.entries);
    REQUIRE(rest.entries.size() > expected.size() - 3 * 120);
    REQUIRE(rest.LostChanges() == expected.size() - rest.entries.size() + 1);  // in the first block
  }
  SECTION("its second half is cut off") {
    auto file = env.OpenFile(table, {.mode = OpenMode::kReadWrite});
    REQUIRE_OK(file);
    REQUIRE_OK((*file)->Truncate(size / 2));
    const Salvaged rest = ReadAll(env);
    RequireOnlyMissing(expected, rest.entries);
    REQUIRE(rest.entries.size() > expected.size() / 3);
    REQUIRE(rest.report.losses.size() == 1);
    REQUIRE_FALSE(rest.report.losses[0].expected.has_value());
  }
  SECTION("zeros and garbage") {
    auto file = env.OpenFile(table, {.mode = OpenMode::kReadWrite});
    REQUIRE_OK(file);
    Bytes bytes(20'000);
    if (GENERATE(false, true)) {
      Random random(4);
      for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.Below(256));
    }
    REQUIRE_OK((*file)->Write(size / 3, bytes));
    const Salvaged rest = ReadAll(env);
    RequireOnlyMissing(expected, rest.entries);
    REQUIRE(rest.entries.size() > expected.size() - 600);
    REQUIRE(rest.LostChanges() == expected.size() - rest.entries.size());
  }
  SECTION("the table is gone") {
    REQUIRE_OK(env.RemoveFile(table));
    const Salvaged rest = ReadAll(env);
    REQUIRE(rest.entries.empty());
    REQUIRE(rest.report.losses.size() == 1);
    REQUIRE(rest.report.losses[0].missing);
  }
  SECTION("the directory is gone") {
    for (const std::string& path : FilesWith(env, "")) REQUIRE_OK(env.RemoveFile(path));
    REQUIRE_OK(env.RemoveDirectory(kStorePath));
    REQUIRE(ReadAll(env).entries.empty());
  }
}

TEST_CASE("With damage in one of several tables, only lost keys are missing or have older values") {
  Filled filled;
  SimEnv& env = filled.env;
  for (const std::string& path : FilesWith(env, ".sst")) {
    const size_t size = Contents(env, path).size();
    for (const size_t at : {size / 4, size / 2}) {
      const auto damaged = env.Fork();
      Flip(*damaged, path, at);
      const Salvaged rest = ReadAll(*damaged);
      REQUIRE(rest.report.losses.size() == 1);
      uint64_t other = 0;
      for (const auto& [key, value] : rest.entries) {
        const auto found = filled.entries.find(key);
        if (found == filled.entries.end() || found->second != value) ++other;
      }
      uint64_t missing = 0;
      for (const auto& [key, value] : filled.entries) missing += rest.entries.contains(key) ? 0 : 1;
      INFO(path << " at " << at << ": " << other << " others, " << missing << " missing");
      REQUIRE(other + missing <= rest.LostChanges());
    }
  }
}

TEST_CASE("Filters, indexes and properties are not taken for data") {
  Filled filled(1, 5000);
  SimEnv& env = filled.env;
  const std::string table = FilesWith(env, ".sst").at(0);
  const std::string bytes = Contents(env, table);
  size_t at = 0;
  uint64_t changes = 0;
  while (auto found = FindDataBlock(AsBytes(bytes).subspan(at))) {
    at += found->bytes;
    changes += found->changes.size();
  }
  auto file = env.OpenFile(table, {});
  REQUIRE_OK(file);
  CHECK(CountInTable(**file) == changes);
  uint64_t others = 0;
  for (; at + 53 < bytes.size(); ++others) {
    const ByteView rest = AsBytes(bytes).subspan(at);
    REQUIRE_FALSE(FindDataBlock(rest));
    const size_t length = FindAnyBlock(rest);
    REQUIRE(length > 0);
    at += length;
  }
  CHECK(others >= 4);
  REQUIRE(at + 53 == bytes.size());
}

struct Entry {
  uint8_t shared = 0;
  std::string rest;  // of the key, with its trailer
  std::string value;
};

std::string Trailer(uint64_t number, uint8_t kind) {
  return Encoder().U64(number << 8 | kind).Take();
}

std::optional<std::vector<StoredChange>> Parse(const std::vector<Entry>& entries,
                                               const std::vector<uint32_t>& restarts) {
  Encoder block;
  for (const Entry& entry : entries) {
    block.U8(entry.shared).U8(static_cast<uint8_t>(entry.rest.size()));
    block.U8(static_cast<uint8_t>(entry.value.size())).Raw(entry.rest).Raw(entry.value);
  }
  for (const uint32_t restart : restarts) block.U32(restart);
  block.U32(static_cast<uint32_t>(restarts.size()));
  return ParseDataBlock(block.view());
}

TEST_CASE("A data block must follow every rule") {
  const Entry first{0, "key a" + Trailer(7, 1), "value"};
  const Entry second{4, "b" + Trailer(5, 0), ""};
  const Entry whole{0, "key b" + Trailer(5, 0), ""};
  const auto at = static_cast<uint32_t>(3 + first.rest.size() + first.value.size());
  const auto changes = Parse({first, second}, {0});
  REQUIRE(changes.has_value());
  REQUIRE(changes->size() == 2);
  CHECK(changes->at(0).key == "key a");
  CHECK(changes->at(0).number == 7);
  CHECK(changes->at(0).value == "value");
  CHECK(changes->at(1).key == "key b");
  CHECK_FALSE(changes->at(1).value);
  CHECK(Parse({first, whole}, {0, at}));
  CHECK_FALSE(Parse({first, second}, {0, at}));                  // a restart that shares a prefix
  CHECK_FALSE(Parse({first, whole}, {0, at + 1}));               // a restart inside an entry
  CHECK_FALSE(Parse({first, whole}, {at}));                      // the first restart is not 0
  CHECK_FALSE(Parse({first, second}, {}));                       //
  CHECK_FALSE(Parse({whole, first}, {0}));                       // out of order
  CHECK_FALSE(Parse({first, first}, {0}));                       // twice
  CHECK_FALSE(Parse({{0, "key a" + Trailer(7, 7), ""}}, {0}));   // an unknown kind
  CHECK_FALSE(Parse({{0, "key a" + Trailer(7, 0), "v"}}, {0}));  // a removal with a value
  CHECK_FALSE(Parse({{0, "short", ""}}, {0}));
  CHECK_FALSE(ParseDataBlock({}));
}

TEST_CASE("A block whose keys do not follow those of the block before is rejected") {
  Filled filled(1, 5000);
  const std::string path = FilesWith(filled.env, ".sst").at(0);
  std::string bytes = Contents(filled.env, path);
  const auto first = FindDataBlock(AsBytes(bytes));
  REQUIRE(first.has_value());
  const auto second = FindDataBlock(AsBytes(bytes).subspan(first->bytes));
  REQUIRE(second.has_value());
  std::rotate(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(first->bytes),
              bytes.begin() + static_cast<ptrdiff_t>(first->bytes + second->bytes));
  REQUIRE_OK(testing::OpenFile(filled.env, path, OpenMode::kReadWrite)->Write(0, AsBytes(bytes)));
  const Salvaged salvaged = ReadAll(filled.env);
  CHECK(salvaged.LostChanges() == first->changes.size());
  RequireOnlyMissing(filled.entries, salvaged.entries);
}

}  // namespace
}  // namespace siltfs
