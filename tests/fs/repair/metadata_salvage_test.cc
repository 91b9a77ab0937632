// Damaged metadata is salvaged: its readable part is kept, and the store can be used again.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>

#include "fs/open/store_layout.h"
#include "fs/records/schema.h"
#include "fs/repair/repair_store.h"
#include "store/env/files.h"
#include "store/env/sim_env.h"
#include "store/segment/segment_files.h"
#include "store/superblock/superblock.h"
#include "tests/fs/core/recompression_store.h"
#include "tests/fs/core/store_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/crash_points.h"

namespace siltfs::testing {
namespace {

const std::string kPath = "/store";

Result<RepairReport> RunRepair(Env& env, RepairMode mode) {
  RepairOptions options;
  options.check.store = kPath;
  options.check.data = true;
  options.mode = mode;
  return RepairStore(env, options);
}

std::string Describe(const RepairReport& report) {
  std::string text;
  for (const RepairedFinding& one : report.findings) {
    text += (one.repaired ? "repaired " : "left ") + one.finding.code + " " + one.finding.path +
            ": " + one.finding.message + "\n";
  }
  for (const LostContent& lost : report.lost)
    text += fmt::format("lost {} at {}: {}\n", lost.path, lost.range.offset, lost.range.length);
  return text;
}

bool Has(const RepairReport& report, std::string_view code) {
  return std::any_of(report.findings.begin(), report.findings.end(),
                     [code](const RepairedFinding& one) { return one.finding.code == code; });
}

std::vector<std::string> MetadataFiles(Env& env, std::string_view part) {
  const auto entries = env.ListDirectory(MetadataPath(kPath));
  REQUIRE_OK(entries);
  std::vector<std::string> paths;
  for (const DirectoryEntry& entry : *entries) {
    if (entry.name.find(part) != std::string::npos)
      paths.push_back(JoinPath(MetadataPath(kPath), entry.name));
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

uint64_t SizeOf(Env& env, const std::string& path) {
  const auto info = env.GetFileInfo(path);
  REQUIRE_OK(info);
  return info->size;
}

void Flip(Env& env, const std::string& path, uint64_t offset) {
  auto file = env.OpenFile(path, {.mode = OpenMode::kReadWrite});
  REQUIRE_OK(file);
  Bytes byte(1);
  REQUIRE_OK(ReadExactly(**file, offset, byte));
  byte[0] = static_cast<uint8_t>(~byte[0]);
  REQUIRE_OK((*file)->Write(offset, byte));
  REQUIRE_OK((*file)->Sync());
}

void Remove(Env& env, const std::string& path) {
  REQUIRE_OK(env.RemoveFile(path));
  REQUIRE_OK(env.SyncDirectory(path.substr(0, path.rfind('/'))));
}

void Truncate(Env& env, const std::string& path, uint64_t size) {
  auto file = env.OpenFile(path, {.mode = OpenMode::kReadWrite});
  REQUIRE_OK(file);
  REQUIRE_OK((*file)->Truncate(size));
  REQUIRE_OK((*file)->Sync());
}

// A closed store after two mounts. Some files consist of chunks. The many small files give the
// tables of metadata several blocks.
struct Filled {
  Filled() : store(env, kPath) {
    Mount([this](FileSystem& fs) {
      store.WriteFiles(fs, 1, 4);
      store.files["large"] = RandomBytes(99, 400'000);
      WriteLargeFile(fs, "large", store.files["large"]);
      for (int i = 0; i < 250; ++i) Small(fs, i);
    });
    Mount([this](FileSystem& fs) {
      store.WriteFiles(fs, 10, 2);
      for (int i = 250; i < 400; ++i) Small(fs, i);
      WriteLargeFile(fs, "file 1", store.files["file 1"]);
    });
  }
  void Mount(const std::function<void(FileSystem& fs)>& work) {
    auto fs = store.Open(env);
    REQUIRE_OK(fs);
    work(**fs);
    REQUIRE_OK((*fs)->Close());
  }
  void Small(FileSystem& fs, int i) {
    const std::string name = fmt::format("small {}", i);
    store.files[name] = RandomBytes(1000 + static_cast<uint64_t>(i), 50);
    WriteFile(fs, name, store.files[name]);
  }

  SimEnv env;
  RecompressionStore store;
};

// Reads the file by its name, or by its inode in lost+found.
Result<Bytes> Read(FileSystem& fs, const std::string& path) {
  SILTFS_ASSIGN_OR_RETURN(const InodeNumber inode, Resolve(fs, path));
  return ReadFile(fs, inode);
}

struct Outcome {
  uint64_t whole = 0;  // files under their names, with right bytes
  uint64_t holed = 0;  // with zeros that the report lists
  uint64_t saved = 0;  // in lost+found
  uint64_t gone = 0;
};

// Requires that no file has bytes that were never its own.
Outcome Compare(const RecompressionStore& store, Env& env, const RepairReport& report) {
  auto fs = store.Open(env, /*read_only=*/true);
  REQUIRE_OK(fs);
  Outcome outcome;
  std::vector<Bytes> found;
  const auto directory = Resolve(**fs, "lost+found");
  if (directory.ok()) {
    for (const std::string& name : ListNames(**fs, *directory)) {
      auto content = Read(**fs, "lost+found/" + name);
      REQUIRE_OK(content);
      found.push_back(std::move(*content));
    }
  }
  for (const auto& [name, content] : store.files) {
    INFO(name);
    const auto now = Read(**fs, name);
    if (!now.ok()) {
      REQUIRE(now.status().Is(StatusCode::kNotFound));
      const bool saved = std::find(found.begin(), found.end(), content) != found.end();
      ++(saved ? outcome.saved : outcome.gone);
      continue;
    }
    Bytes expected = content;
    bool holed = false;
    for (const LostContent& lost : report.lost) {
      if (lost.path != "/" + name) continue;
      std::fill_n(expected.begin() + static_cast<ptrdiff_t>(lost.range.offset), lost.range.length,
                  uint8_t{0});
      holed = true;
    }
    const bool right = *now == expected;
    // If only the inode record of its creation was salvaged, the file is empty.
    const bool emptied = now->empty();
    REQUIRE((right || emptied));
    ++(emptied && !content.empty() ? outcome.gone : holed ? outcome.holed : outcome.whole);
  }
  REQUIRE_OK((*fs)->Close());
  return outcome;
}

// Salvages the store and uses it again. Returns the state of the files.
Outcome Salvage(const Filled& filled, SimEnv& env) {
  const auto untouched = env.Fork();
  untouched->StartTrace();
  CheckOptions check;
  check.store = kPath;
  const auto checked = CheckStore(*untouched, check);
  REQUIRE_OK(checked);
  CHECK(checked->findings > 0);
  CHECK(untouched->TakeTrace().empty());

  const auto safe = env.Fork();
  const auto left = RunRepair(*safe, RepairMode::kSafe);
  REQUIRE_OK(left);
  CHECK(left->left > 0);
  REQUIRE(left->remarks.size() == 1);
  CHECK(left->remarks[0].find("fsck -y") != std::string::npos);

  const auto report = RunRepair(env, RepairMode::kAll);
  REQUIRE_OK(report);
  INFO(Describe(*report));
  REQUIRE(report->left == 0);
  REQUIRE(report->found > 0);
  REQUIRE(Has(*report, "metadata-salvaged"));
  REQUIRE(report->remarks.size() == 1);
  CHECK_FALSE(env.GetFileInfo(NewMetadataPath(kPath)).ok());
  CHECK_FALSE(env.GetFileInfo(SalvagedMetadataPath(kPath)).ok());
  CHECK_FALSE(env.GetFileInfo(NewLedgerPath(kPath)).ok());
  filled.store.RequireSound(env);
  const Outcome outcome = Compare(filled.store, env, *report);

  // New files do not disturb the old ones.
  {
    auto fs = filled.store.Open(env);
    REQUIRE_OK(fs);
    for (int i = 0; i < 20; ++i)
      WriteLargeFile(**fs, fmt::format("new {}", i),
                     RandomBytes(5000 + static_cast<uint64_t>(i), 40'000));
    REQUIRE_OK((*fs)->Close());
  }
  filled.store.RequireSound(env);
  const Outcome later = Compare(filled.store, env, *report);
  CHECK(later.whole == outcome.whole);
  CHECK(later.saved == outcome.saved);
  {
    auto fs = filled.store.Open(env);
    REQUIRE_OK(fs);
    for (int i = 0; i < 20; ++i) {
      const auto content = Read(**fs, fmt::format("new {}", i));
      REQUIRE_OK(content);
      const bool same = *content == RandomBytes(5000 + static_cast<uint64_t>(i), 40'000);
      REQUIRE(same);
    }
    REQUIRE_OK((*fs)->Close());
  }
  const auto again = RunRepair(env, RepairMode::kAll);
  REQUIRE_OK(again);
  REQUIRE(again->found == 0);
  return outcome;
}

const Filled& TheStore() {
  static const Filled filled;
  return filled;
}

// Returns the calls that a full repair makes.
SimTrace TraceOfRepair(SimEnv& env) {
  env.StartTrace();
  const auto report = RunRepair(env, RepairMode::kAll);
  REQUIRE_OK(report);
  REQUIRE(report->left == 0);
  return env.TakeTrace();
}

}  // namespace

TEST_CASE("a damaged block of a table loses only the files whose records it held") {
  const Filled& filled = TheStore();
  const auto env = filled.env.Fork();
  const auto tables = MetadataFiles(*env, ".sst");
  REQUIRE(tables.size() >= 2);
  for (const std::string& table : tables) {
    const auto damaged = env->Fork();
    Flip(*damaged, table, SizeOf(*damaged, table) / 3);
    INFO(table << " of " << SizeOf(*damaged, table));
    const Outcome outcome = Salvage(filled, *damaged);
    INFO(outcome.whole << " whole, " << outcome.holed << " holed, " << outcome.saved << " saved, "
                       << outcome.gone << " gone of " << filled.store.files.size());
    CHECK(outcome.whole + outcome.saved + 150 > filled.store.files.size());
    CHECK(outcome.whole > 100);
  }
}

TEST_CASE("damage outside a table's data loses nothing") {
  const Filled& filled = TheStore();
  const auto env = filled.env.Fork();
  const std::string table = MetadataFiles(*env, ".sst").front();
  const uint64_t size = SizeOf(*env, table);
  SECTION("its footer") { Flip(*env, table, size - 3); }
  SECTION("the names of its blocks") { Flip(*env, table, size - 60); }
  SECTION("its end is cut off") { Truncate(*env, table, size - 60); }
  SECTION("the MANIFEST's first byte") { Flip(*env, MetadataFiles(*env, "MANIFEST").front(), 0); }
  SECTION("the MANIFEST is gone") { Remove(*env, MetadataFiles(*env, "MANIFEST").front()); }
  SECTION("CURRENT is gone") { Remove(*env, JoinPath(MetadataPath(kPath), "CURRENT")); }
  SECTION("CURRENT is damaged") { Flip(*env, JoinPath(MetadataPath(kPath), "CURRENT"), 3); }
  SECTION("the MANIFEST and the ledger are gone") {
    Remove(*env, MetadataFiles(*env, "MANIFEST").front());
    Remove(*env, LedgerPath(kPath));
  }
  const Outcome outcome = Salvage(filled, *env);
  CHECK(outcome.whole == filled.store.files.size());
}

TEST_CASE("a missing or truncated table does not affect the others") {
  const Filled& filled = TheStore();
  const auto env = filled.env.Fork();
  const auto tables = MetadataFiles(*env, ".sst");
  const std::string table = GENERATE(false, true) ? tables.front() : tables.back();
  SECTION("gone") { Remove(*env, table); }
  SECTION("cut short") { Truncate(*env, table, SizeOf(*env, table) / 2); }
  SECTION("cut to nothing") { Truncate(*env, table, 0); }
  Salvage(filled, *env);
}

TEST_CASE("a store whose metadata is completely lost is empty and can be used") {
  const Filled& filled = TheStore();
  const auto env = filled.env.Fork();
  for (const std::string& table : MetadataFiles(*env, ".sst")) Remove(*env, table);
  const auto before = ListSegments(*env, kPath);
  REQUIRE_OK(before);
  auto report = RunRepair(*env, RepairMode::kAll);
  REQUIRE_OK(report);
  INFO(Describe(*report));
  REQUIRE(report->left == 0);
  filled.store.RequireSound(*env);
  const auto after = ListSegments(*env, kPath);
  REQUIRE_OK(after);
  CHECK(after->ids == before->ids);
  auto fs = filled.store.Open(*env);
  REQUIRE_OK(fs);
  CHECK(ListNames(**fs, kRootInode).empty());
  WriteLargeFile(**fs, "new", RandomBytes(1, 300'000));
  // Chunks that are stored already are found.
  WriteLargeFile(**fs, "large", filled.store.files.at("large"));
  REQUIRE_OK((*fs)->Close());
  fs->reset();
  filled.store.RequireSound(*env);
  fs = filled.store.Open(*env);
  REQUIRE_OK(fs);
  const auto read = Read(**fs, "large");
  REQUIRE_OK(read);
  const bool same = *read == filled.store.files.at("large");
  REQUIRE(same);
  REQUIRE_OK((*fs)->Close());
}

TEST_CASE("changes that a crash left in metadata's log are salvaged, too") {
  Filled filled;
  auto fs = filled.store.Open(filled.env);
  REQUIRE_OK(fs);
  filled.store.files["last"] = RandomBytes(7, 90'000);
  WriteLargeFile(**fs, "last", filled.store.files["last"]);
  REQUIRE_OK((*fs)->SyncAll());
  filled.env.CutAtCall(1);  // so that RocksDB's threads write nothing either
  fs->reset();
  filled.env.Reboot();
  Remove(filled.env, JoinPath(MetadataPath(kPath), "CURRENT"));
  const Outcome outcome = Salvage(filled, filled.env);
  CHECK(outcome.whole == filled.store.files.size());
}

TEST_CASE("a second salvage after new damage replaces the files kept by the first") {
  const Filled& filled = TheStore();
  const auto env = filled.env.Fork();
  Remove(*env, JoinPath(MetadataPath(kPath), "CURRENT"));
  Salvage(filled, *env);
  Remove(*env, JoinPath(MetadataPath(kPath), "CURRENT"));
  const Outcome outcome = Salvage(filled, *env);
  CHECK(outcome.whole == filled.store.files.size());
}

TEST_CASE("leftovers of an interrupted salvage do not replace existing metadata") {
  const Filled& filled = TheStore();
  const auto env = filled.env.Fork();
  // The store may have been mounted since the interrupted salvage.
  REQUIRE_OK(env->CreateDirectory(SalvagedMetadataPath(kPath)));
  for (const std::string& path :
       {JoinPath(SalvagedMetadataPath(kPath), "CURRENT"), NewLedgerPath(kPath)}) {
    auto file = env->OpenFile(path, {.mode = OpenMode::kCreate});
    REQUIRE_OK(file);
    REQUIRE_OK((*file)->Write(0, Bytes(100, 'x')));
  }
  SECTION("damaged") {
    Remove(*env, JoinPath(MetadataPath(kPath), "CURRENT"));
    CHECK(Salvage(filled, *env).whole == filled.store.files.size());
  }
  SECTION("whole") {
    filled.store.RequireSound(*env);
    const auto report = RunRepair(*env, RepairMode::kAll);
    REQUIRE_OK(report);
    CHECK(report->found == 0);
    filled.store.RequireSound(*env);
    CHECK_FALSE(env->GetFileInfo(NewLedgerPath(kPath)).ok());
  }
  CHECK_FALSE(env->GetFileInfo(SalvagedMetadataPath(kPath)).ok());
}

TEST_CASE(
    "an interrupted salvage continues even if there is a metadata directory without metadata") {
  const Filled& filled = TheStore();
  const auto env = filled.env.Fork();
  REQUIRE_OK(env->Rename(MetadataPath(kPath), SalvagedMetadataPath(kPath)));
  REQUIRE_OK(env->CreateDirectory(MetadataPath(kPath)));
  REQUIRE_OK(env->OpenFile(JoinPath(MetadataPath(kPath), "LOCK"), {.mode = OpenMode::kCreate}));
  auto report = RunRepair(*env, RepairMode::kAll);
  REQUIRE_OK(report);
  INFO(Describe(*report));
  CHECK(report->left == 0);
  filled.store.RequireSound(*env);
  auto fs = filled.store.Open(*env);
  REQUIRE_OK(fs);
  filled.store.RequireFiles(**fs);
  REQUIRE_OK((*fs)->Close());
}

TEST_CASE("each step of a salvage is durable before the next") {
  const auto env = TheStore().env.Fork();
  Remove(*env, JoinPath(MetadataPath(kPath), "CURRENT"));
  const std::set<std::string> ours = {MetadataPath(kPath), NewMetadataPath(kPath),
                                      NewLedgerPath(kPath), SalvagedMetadataPath(kPath)};
  int renames = 0;
  bool durable = true;
  for (const SimRecord& record : TraceOfRepair(*env)) {
    if (record.kind == SimRecord::Kind::kSyncDirectory && record.path == kPath) durable = true;
    if (record.kind != SimRecord::Kind::kRename || !ours.contains(record.path)) continue;
    INFO(Describe(record));
    REQUIRE(durable);
    durable = false;
    ++renames;
  }
  CHECK(durable);
  CHECK(renames == 4);
}

TEST_CASE("a power cut at any step of a salvage loses no readable data") {
  const Filled& filled = TheStore();
  const auto damaged = filled.env.Fork();
  Remove(*damaged, JoinPath(MetadataPath(kPath), "CURRENT"));
  const auto before = damaged->Fork();
  const SimTrace trace = TraceOfRepair(*damaged);
  // Near a rename, test more power cuts, because many combinations of names can survive there.
  size_t renamed = 0;
  const auto is_near_rename = [&trace, &renamed](size_t cut) {
    const bool renames = cut < trace.size() && trace[cut].kind == SimRecord::Kind::kRename &&
                         trace[cut].path.starts_with(MetadataPath(kPath) + ".");
    if (renames) renamed = cut;
    return renames || (renamed > 0 && cut < renamed + 4);
  };
  uint64_t cuts = 0;
  const auto cut_at = [&](const SimEnv& device, size_t cut, const CrashPolicy& policy) {
    INFO(fmt::format("cut before record {} of {}: {}", cut, trace.size(),
                     cut < trace.size() ? Describe(trace[cut]) : "the end"));
    const auto left = device.Fork();
    left->PowerCut(policy);
    const auto again = RunRepair(*left, RepairMode::kAll);
    REQUIRE_OK(again);
    INFO(Describe(*again));
    REQUIRE(again->left == 0);
    filled.store.RequireSound(*left);
    REQUIRE(Compare(filled.store, *left, *again).whole == filled.store.files.size());
    ++cuts;
  };
  for (const auto unsynced : {CrashPolicy::Unsynced::kDrop, CrashPolicy::Unsynced::kKeep,
                              CrashPolicy::Unsynced::kGarble}) {
    const auto device = before->Fork();
    const size_t step = 41 * CallStep();
    const size_t first = 7 * static_cast<size_t>(unsynced) % step;
    renamed = 0;
    for (size_t cut = 0; cut <= trace.size(); ++cut) {
      const bool near_rename = is_near_rename(cut);
      const bool garbled = unsynced == CrashPolicy::Unsynced::kGarble;
      const uint64_t seeds = !near_rename ? (cut % step == first ? 1 : 0)
                             : garbled    ? 1 + 5 / SanitizedStep()
                                          : 1;
      for (uint64_t seed = 0; seed < seeds; ++seed) {
        cut_at(*device, cut,
               {.unsynced = unsynced,
                .seed = cut + seed * 1000,
                .names_in_any_order = near_rename || cut % 2 == 0});
      }
      if (cut < trace.size()) REQUIRE_OK(device->Replay(trace[cut]));
    }
  }
  CHECK(cuts > 20 / CallStep());
}

TEST_CASE("a device failure at any step of a salvage loses no readable data") {
  const Filled& filled = TheStore();
  const auto damaged = filled.env.Fork();
  Remove(*damaged, JoinPath(MetadataPath(kPath), "CURRENT"));
  const auto code = GENERATE(StatusCode::kIoError, StatusCode::kNoSpace);
  uint64_t struck = 0;
  constexpr uint64_t kEach = 29;
  for (uint64_t nth = FirstCall(0);; nth += kEach * CallStep()) {
    INFO(fmt::format("call {} fails with {}", nth, StatusCodeName(code)));
    const auto device = damaged->Fork();
    const uint64_t calls = device->Calls(SimCall::kMutating);
    device->FailCall({.calls = SimCall::kMutating, .nth = nth, .code = code});
    const auto report = RunRepair(*device, RepairMode::kAll);
    report.status().IgnoreError("it may have failed");
    const bool reached = device->Calls(SimCall::kMutating) - calls >= nth;
    device->ClearFaults();
    device->PowerCut();
    const auto again = RunRepair(*device, RepairMode::kAll);
    REQUIRE_OK(again);
    INFO(Describe(*again));
    REQUIRE(again->left == 0);
    filled.store.RequireSound(*device);
    REQUIRE(Compare(filled.store, *device, *again).whole == filled.store.files.size());
    if (!reached) break;
    ++struck;
  }
  CHECK(struck > 2 / CallStep());
}

}  // namespace siltfs::testing
