// Power cuts at every step of a repair.
#include <fmt/format.h>

#include "fs/open/store_layout.h"
#include "fs/records/directory_entry.h"
#include "fs/records/inode_record.h"
#include "fs/records/schema.h"
#include "fs/repair/repair_store.h"
#include "fs/rocksdb/rocksdb_store.h"
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

void Flip(Env& env, const std::string& path, uint64_t offset) {
  auto file = env.OpenFile(path, {.mode = OpenMode::kReadWrite});
  REQUIRE_OK(file);
  Bytes byte(1);
  REQUIRE_OK(ReadExactly(**file, offset, byte));
  byte[0] = static_cast<uint8_t>(~byte[0]);
  REQUIRE_OK((*file)->Write(offset, byte));
  REQUIRE_OK((*file)->Sync());
}

uint64_t SizeOf(Env& env, const std::string& path) {
  const auto info = env.GetFileInfo(path);
  REQUIRE_OK(info);
  return info->size;
}

void EditMetadata(Env& env, const std::function<void(KvStore& kv)>& edit) {
  KvStoreOptions options;
  options.path = MetadataPath(kPath);
  options.ledger_path = LedgerPath(kPath);
  auto kv = OpenRocksDbStore(env, options);
  REQUIRE_OK(kv);
  edit(**kv);
  REQUIRE_OK((*kv)->CloseCleanly());
}

// A closed store with files in several segments; two files share most of their content.
struct Filled {
  Filled() : store(env, kPath) {
    auto fs = store.Open(env);
    REQUIRE_OK(fs);
    store.WriteFiles(**fs, 1, 4);
    store.files["large"] = RandomBytes(99, 400'000);
    WriteLargeFile(**fs, "large", store.files["large"]);
    REQUIRE_OK((*fs)->Close());
  }

  SimEnv env;
  RecompressionStore store;
};

// Damages the superblock, segments, index, and counters of metadata, without a loss.
void DamageHarmlessly(Env& env) {
  Flip(env, SuperblockPath(kPath, 1), 1000);
  Flip(env, SegmentPath(kPath, 1), 40);
  Flip(env, SegmentPath(kPath, 2), SizeOf(env, SegmentPath(kPath, 2)) - 70);
  const auto index = env.ListDirectory(IndexPath(kPath));
  REQUIRE_OK(index);
  for (const DirectoryEntry& file : *index) {
    const std::string path = JoinPath(IndexPath(kPath), file.name);
    if (SizeOf(env, path) > 0) Flip(env, path, SizeOf(env, path) / 2);
  }
  EditMetadata(env, [](KvStore& kv) {
    auto root = InodeRecord::Decode(**kv.Get(InodeKey(kRootInode)));
    REQUIRE_OK(root);
    root->entries += 3;
    REQUIRE_OK(kv.Write({{InodeKey(kRootInode), root->Encode()}}));
  });
}

// Makes the harmless damage and, in addition, loses a block and a file name.
void DamageForGood(Env& env) {
  DamageHarmlessly(env);
  // A block of "large", whose recipe has a node.
  Flip(env, SegmentPath(kPath, 5), 64 + 60);
  EditMetadata(env, [](KvStore& kv) {
    auto name = NameEntry::Decode(**kv.Get(DirectoryEntryKey(kRootInode, "file 2")));
    REQUIRE_OK(name);
    REQUIRE_OK(kv.Write({{DirectoryEntryKey(kRootInode, "file 2"), std::nullopt},
                         {DirectoryCookieKey(kRootInode, name->cookie), std::nullopt}}));
  });
}

// The bytes of each file; nullopt for an unreadable byte.
using Readable = std::map<std::string, std::vector<std::optional<uint8_t>>>;

Readable ReadAll(const RecompressionStore& store, Env& env) {
  constexpr size_t kStep = 1000;
  auto fs = store.Open(env, /*read_only=*/true);
  REQUIRE_OK(fs);
  Readable readable;
  for (const auto& [name, content] : store.files) {
    auto inode = Resolve(**fs, name);
    if (!inode.ok()) continue;
    std::vector<std::optional<uint8_t>>& bytes = readable[name];
    for (size_t at = 0; at < content.size(); at += kStep) {
      Bytes piece(std::min(kStep, content.size() - at));
      const auto got = (*fs)->Read(*inode, at, piece);
      for (const uint8_t byte : piece) {
        if (got.ok()) {
          bytes.emplace_back(byte);
        } else {
          bytes.emplace_back();
        }
      }
    }
  }
  REQUIRE_OK((*fs)->Close());
  return readable;
}

// Requires that readable bytes are still readable and unchanged. Other bytes are right, zero, or
// unreadable.
void RequireKept(const RecompressionStore& store, const Readable& before, const Readable& after) {
  for (const auto& [name, bytes] : before) {
    INFO(name);
    REQUIRE(after.contains(name));
    const auto& now = after.at(name);
    const Bytes& content = store.files.at(name);
    REQUIRE(now.size() == bytes.size());
    bool kept = true;
    bool right = true;
    for (size_t i = 0; i < bytes.size(); ++i) {
      if (bytes[i]) kept = kept && now[i] == bytes[i];
      if (now[i]) right = right && (*now[i] == content[i] || (!bytes[i] && *now[i] == 0));
    }
    REQUIRE(kept);
    REQUIRE(right);
  }
}

void CutEverywhere(const Filled& filled, SimEnv& damaged, RepairMode mode) {
  const Readable readable = ReadAll(filled.store, damaged);
  const auto before = damaged.Fork();
  damaged.StartTrace();
  const auto report = RunRepair(damaged, mode);
  REQUIRE_OK(report);
  CHECK(report->found > 4);
  REQUIRE(report->left == 0);
  const SimTrace trace = damaged.TakeTrace();
  filled.store.RequireSound(damaged);
  const Readable repaired = ReadAll(filled.store, damaged);
  RequireKept(filled.store, readable, repaired);
  uint64_t cuts = 0;
  for (const auto unsynced : {CrashPolicy::Unsynced::kDrop, CrashPolicy::Unsynced::kKeep,
                              CrashPolicy::Unsynced::kGarble}) {
    const auto device = before->Fork();
    // Test only some of the cuts, because the repair after each one takes long.
    const size_t step = 10 * CallStep();
    const size_t first = 3 * static_cast<size_t>(unsynced) % step;
    for (size_t cut = 0; cut <= trace.size(); ++cut) {
      INFO(fmt::format("cut before record {} of {}: {}", cut, trace.size(),
                       cut < trace.size() ? Describe(trace[cut]) : "the end"));
      if (cut % step == first) {
        const auto left = device->Fork();
        left->PowerCut({.unsynced = unsynced, .seed = cut, .names_in_any_order = cut % 2 == 0});
        RequireKept(filled.store, readable, ReadAll(filled.store, *left));
        const auto again = RunRepair(*left, mode);
        REQUIRE_OK(again);
        REQUIRE(again->left == 0);
        filled.store.RequireSound(*left);
        const bool same = ReadAll(filled.store, *left) == repaired;
        REQUIRE(same);
        ++cuts;
      }
      if (cut < trace.size()) REQUIRE_OK(device->Replay(trace[cut]));
    }
  }
  CHECK(cuts > 20 / CallStep());
}

}  // namespace

TEST_CASE("after a power cut at any step of a safe repair the next one succeeds") {
  const Filled filled;
  const auto damaged = filled.env.Fork();
  DamageHarmlessly(*damaged);
  CutEverywhere(filled, *damaged, RepairMode::kSafe);
}

TEST_CASE("a power cut at any step of a full repair loses no readable data") {
  const Filled filled;
  const auto damaged = filled.env.Fork();
  DamageForGood(*damaged);
  const size_t segments = ListSegments(*damaged, kPath)->ids.size();
  CutEverywhere(filled, *damaged, RepairMode::kAll);
  CHECK(ListSegments(*damaged, kPath)->ids.size() == segments + 1);  // the new node is in one
}

TEST_CASE("a device failure at any step of a repair loses no readable data") {
  const Filled filled;
  const auto damaged = filled.env.Fork();
  DamageForGood(*damaged);
  const Readable readable = ReadAll(filled.store, *damaged);
  const auto code = GENERATE(StatusCode::kIoError, StatusCode::kNoSpace);
  uint64_t struck = 0;
  constexpr uint64_t kEach = 10;
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
    RequireKept(filled.store, readable, ReadAll(filled.store, *device));
    const auto again = RunRepair(*device, RepairMode::kAll);
    REQUIRE_OK(again);
    REQUIRE(again->left == 0);
    filled.store.RequireSound(*device);
    if (!reached) break;
    ++struck;
  }
  CHECK(struck > 5 / CallStep());
}

}  // namespace siltfs::testing
