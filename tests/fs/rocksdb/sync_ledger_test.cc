// The sync ledger itself, and its purpose: RocksDB's logs, damaged at any byte.
#include "fs/rocksdb/sync_ledger.h"

#include <algorithm>
#include <initializer_list>
#include <set>

#include "store/base/checksum.h"
#include "store/base/coding.h"
#include "store/base/random.h"
#include "tests/fs/meta/metadata_test_support.h"
#include "tests/fs/meta/simulated_store.h"

namespace siltfs {
namespace {

using testing::At;
using testing::Contents;
using testing::Flip;
using testing::kLedgerPath;
using testing::kStorePath;
using testing::OpenFile;
using testing::Put;
using testing::Read;
using Mode = KvStoreOptions::Mode;
using Unsynced = CrashPolicy::Unsynced;

constexpr char kLog[] = "/000007.log";

void WriteAndSync(Env& env, const std::string& path, std::string_view text) {
  const auto file = OpenFile(env, path, OpenMode::kCreate);
  REQUIRE_OK(file->Write(0, AsBytes(text)));
  REQUIRE_OK(file->Sync());
  REQUIRE_OK(env.SyncDirectory("/"));
}

std::unique_ptr<SyncLedger> OpenLedger(Env& env) {
  auto ledger = SyncLedger::Open(env, kLedgerPath, "/");
  REQUIRE_OK(ledger);
  return std::move(ledger).value();
}

void TellSynced(SyncLedger& ledger, const std::string& path, std::string_view text) {
  REQUIRE_OK(ledger.Synced(path, text.size(), Checksum(AsBytes(text))));
}

Status Check(Env& env) { return CheckSyncLedger(env, kLedgerPath, "/").status(); }

// --- The encoding, by docs/format.md ("Sync ledger").

SyncLedgerState Golden() {
  return {0x0102030405060708,
          {{"000007.log", 4096, 0x1122334455667788}, {"MANIFEST-000005", 1, 0}}};
}

TEST_CASE("A slot of the sync ledger is encoded as documented") {
  std::string expected = "SILTFSSL";
  auto number = [&expected](std::initializer_list<int> bytes) {
    for (const int byte : bytes) expected.push_back(static_cast<char>(byte));
  };
  number({1, 0, 0, 0});
  number({2, 0, 0, 0});
  number({8, 7, 6, 5, 4, 3, 2, 1});
  expected += "000007.log" + std::string(22, '\0');
  number({0, 0x10, 0, 0, 0, 0, 0, 0});
  number({0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11});
  expected += "MANIFEST-000005" + std::string(17, '\0');
  number({1, 0, 0, 0, 0, 0, 0, 0});
  number({0, 0, 0, 0, 0, 0, 0, 0});
  expected.resize(4088);
  number({0x39, 0x9c, 0x85, 0x58, 0x85, 0x8a, 0x50, 0xec});
  REQUIRE(expected.size() == 4096);
  REQUIRE((EncodeSyncLedgerSlot(Golden()) == expected));
  const auto decoded = DecodeSyncLedgerSlot(AsBytes(expected));
  REQUIRE_OK(decoded);
  REQUIRE((*decoded == Golden()));
}

TEST_CASE("A slot that is damaged anywhere, or is another version's, is refused") {
  const std::string slot = EncodeSyncLedgerSlot(Golden());
  for (size_t i = 0; i < slot.size(); ++i) {
    std::string damaged = slot;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    REQUIRE_CODE(DecodeSyncLedgerSlot(AsBytes(damaged)), kCorruption);
  }
  REQUIRE_CODE(DecodeSyncLedgerSlot(AsBytes(slot).first(4095)), kCorruption);
  auto resealed = [&slot](size_t at, char byte) {
    std::string changed = slot.substr(0, 4088);
    changed[at] = byte;
    Encoder out;
    out.Raw(changed).U64(Checksum(AsBytes(changed)));
    return out.Take();
  };
  REQUIRE_CODE(DecodeSyncLedgerSlot(AsBytes(resealed(8, 2))), kNeedsNewer);
  REQUIRE_CODE(DecodeSyncLedgerSlot(AsBytes(resealed(12, 85))), kCorruption);
  REQUIRE_CODE(DecodeSyncLedgerSlot(AsBytes(resealed(24, '\0'))), kCorruption);
  REQUIRE_CODE(DecodeSyncLedgerSlot(AsBytes(resealed(24, '/'))), kCorruption);
}

TEST_CASE("Logs are recognized by their names") {
  for (const char* name : {"/kv/000012.log", "/kv/1234567.log", "MANIFEST-000001"}) {
    REQUIRE(SyncLedger::IsLog(name));
  }
  for (const char* name : {"/kv/000012.sst", "/kv/CURRENT", "/000001.log/a", "/kv/.log",
                           "/kv/x.log", "/kv/MANIFEST-", "/kv/MANIFEST-1x", "/kv/OPTIONS-000007",
                           "/kv/LOCK", "/kv/000000000000000000000000000000000001.log"}) {
    CAPTURE(name);
    REQUIRE_FALSE(SyncLedger::IsLog(name));
  }
}

// --- The ledger on a device.

TEST_CASE("Changed or missing synced bytes are damage; later bytes are not") {
  SimEnv env;
  const std::string text = "synced text";
  WriteAndSync(env, kLog, text + " and a torn tail");
  TellSynced(*OpenLedger(env), kLog, text);
  REQUIRE_OK(Check(env));
  for (size_t at = 0; at < text.size() + 10; ++at) {
    Flip(env, kLog, at);
    const Status status = Check(env);
    if (at < text.size()) {
      REQUIRE_CODE(status, kCorruption);
      REQUIRE(status.path() == kLog);
    } else {
      REQUIRE_OK(status);
    }
    Flip(env, kLog, at);
  }
  REQUIRE_OK(OpenFile(env, kLog, OpenMode::kReadWrite)->Truncate(text.size()));
  REQUIRE_OK(Check(env));
  REQUIRE_OK(OpenFile(env, kLog, OpenMode::kReadWrite)->Truncate(text.size() - 1));
  REQUIRE_CODE(Check(env), kCorruption);
  REQUIRE_OK(env.RemoveFile(kLog));
  REQUIRE_OK(Check(env));
}

TEST_CASE("The previous slot replaces a torn one; without a whole slot nothing is checked") {
  SimEnv env;
  WriteAndSync(env, kLog, "one two");
  {
    const auto ledger = OpenLedger(env);
    TellSynced(*ledger, kLog, "one");
    TellSynced(*ledger, kLog, "one two");
  }
  const auto third = DecodeSyncLedgerSlot(AsBytes(Contents(env, kLedgerPath)).subspan(8192, 4096));
  REQUIRE_OK(third);
  const uint64_t newest = third->entries[0].length == 7 ? 8192 : 12288;
  Flip(env, kLog, 5);
  REQUIRE_CODE(Check(env), kCorruption);
  Flip(env, kLedgerPath, newest + 2000);
  REQUIRE_OK(Check(env));  // the older state covers three bytes, and they are right
  Flip(env, kLog, 1);
  REQUIRE_CODE(Check(env), kCorruption);
  Flip(env, kLedgerPath, 8192 + 12288 - newest + 2000);
  REQUIRE_OK(Check(env));
  // Opening rewrites the slot.
  OpenLedger(env);
  const std::string ledger = Contents(env, kLedgerPath);
  for (size_t slot = 0; slot < 4; ++slot)
    REQUIRE_OK(DecodeSyncLedgerSlot(AsBytes(ledger).subspan(slot * 4096, 4096)));
  REQUIRE_OK(env.RemoveFile(kLedgerPath));
  REQUIRE_OK(Check(env));
}

TEST_CASE("The ledger's size is constant for any number of logs") {
  SimEnv env;
  const auto ledger = OpenLedger(env);
  for (int i = 0; i < 200; ++i) TellSynced(*ledger, std::to_string(100000 + i) + ".log", "text");
  REQUIRE(Contents(env, kLedgerPath).size() == 4 * 4096 + 8);
  WriteAndSync(env, "/100199.log", "test");
  REQUIRE_CODE(Check(env), kCorruption);
}

TEST_CASE("A MANIFEST's synced length is durable in the ledger after any power cut") {
  const std::string manifest = "/MANIFEST-000003";
  std::set<uint64_t> lengths;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    SimEnv env;
    WriteAndSync(env, manifest, "1234567890");
    WriteAndSync(env, kLog, "12345678901234567890");
    const auto ledger = OpenLedger(env);
    TellSynced(*ledger, manifest, "1234");
    TellSynced(*ledger, manifest, "12345");
    for (size_t length = 1; length < 12; ++length)
      TellSynced(*ledger, kLog, std::string("12345678901234567890").substr(0, length));
    // Cut the power while the next slot is written.
    env.CutAtCall(1 + seed % 2);
    REQUIRE_CODE(ledger->Synced(manifest, 6, Checksum(AsBytes("123456"))), kIoError);
    env.Reboot({Unsynced::kGarble, seed});
    const auto state = CheckSyncLedger(env, kLedgerPath, "/");
    REQUIRE_OK(state);
    const auto entry = std::find_if(state->entries.begin(), state->entries.end(),
                                    [](const SyncLedgerEntry& e) { return e.name[0] == 'M'; });
    REQUIRE(entry != state->entries.end());
    lengths.insert(entry->length);
  }
  REQUIRE(lengths == std::set<uint64_t>{5, 6});
}

TEST_CASE("A clean close leaves the ledger on the device") {
  SimEnv env;
  WriteAndSync(env, kLog, "text");
  const auto ledger = OpenLedger(env);
  TellSynced(*ledger, kLog, "text");
  ledger->MakeDurable();
  env.PowerCut();
  Flip(env, kLog, 0);
  REQUIRE_CODE(Check(env), kCorruption);
}

Result<std::vector<uint64_t>> DamagedSlots(Env& env) { return FindDamagedSlots(env, kLedgerPath); }

TEST_CASE("A damaged slot in a closed ledger is reported until the ledger is opened again") {
  SimEnv env;
  WriteAndSync(env, kLog, "text");
  {
    const auto ledger = OpenLedger(env);
    TellSynced(*ledger, kLog, "text");
    CHECK(DamagedSlots(env)->empty());
    ledger->Close();
  }
  CHECK(Contents(env, kLedgerPath).substr(16384) == "SILTFSLC");
  CHECK(DamagedSlots(env)->empty());
  for (const uint64_t slot : {0u, 4096u, 8192u, 12288u}) {
    Flip(env, kLedgerPath, slot + 3000);
    CHECK(*DamagedSlots(env) == std::vector<uint64_t>{slot});
    Flip(env, kLedgerPath, slot + 3000);
  }
  Flip(env, kLedgerPath, 9000);
  const auto ledger = OpenLedger(env);
  CHECK(Contents(env, kLedgerPath).substr(16384) == "SILTFSLO");
  ledger->Close();
  CHECK(DamagedSlots(env)->empty());
}

TEST_CASE(
    "A power cut while a ledger is closed, opened and closed again is not reported as damage") {
  uint64_t torn = 0;
  for (const Unsynced unsynced : {Unsynced::kDrop, Unsynced::kKeep, Unsynced::kPrefix,
                                  Unsynced::kSubset, Unsynced::kGarble}) {
    for (uint64_t cut = 1;; ++cut) {
      CAPTURE(static_cast<int>(unsynced), cut);
      SimEnv env;
      WriteAndSync(env, kLog, "text");
      OpenLedger(env)->Close();
      env.CutAtCall(cut);
      if (auto opened = SyncLedger::Open(env, kLedgerPath, "/"); opened.ok()) {
        (*opened)->Synced(kLog, 4, Checksum(AsBytes("text"))).IgnoreError("the power may be gone");
        (*opened)->MakeDurable();
        (*opened)->Close();
      }
      const bool done = env.PowerIsOn();
      env.Reboot({unsynced, cut});
      REQUIRE(DamagedSlots(env)->empty());
      const std::string ledger = Contents(env, kLedgerPath);
      for (size_t slot = 0; slot < 4; ++slot) {
        if (!DecodeSyncLedgerSlot(AsBytes(ledger).subspan(slot * 4096, 4096)).ok()) ++torn;
      }
      if (done) break;
    }
  }
  REQUIRE(torn > 0);
}

TEST_CASE("A reused name is never compared with an earlier file of that name") {
  for (const Unsynced unsynced :
       {Unsynced::kDrop, Unsynced::kKeep, Unsynced::kPrefix, Unsynced::kSubset}) {
    for (uint64_t seed = 0; seed < 20; ++seed) {
      CAPTURE(static_cast<int>(unsynced), seed);
      SimEnv env;
      WriteAndSync(env, kLog, "the first");
      auto ledger = OpenLedger(env);
      TellSynced(*ledger, kLog, "the first");
      ledger->MakeDurable();
      ledger->Removed(kLog);
      REQUIRE_OK(env.RemoveFile(kLog));
      REQUIRE_OK(env.SyncDirectory("/"));
      // The removal reached one slot; the other still has the entry.
      if (seed % 2 == 1) TellSynced(*ledger, "/000008.log", "x");
      // Withdraw in the same session, or in the next one.
      if (seed % 3 == 0) ledger = OpenLedger(env);
      REQUIRE_OK(ledger->Withdraw(kLog));
      WriteAndSync(env, kLog, "another");
      TellSynced(*ledger, kLog, "another");
      env.PowerCut({unsynced, seed});
      REQUIRE_OK(Check(env));
    }
  }
}

TEST_CASE("A name is not used again if its entry cannot be withdrawn") {
  SimEnv env;
  WriteAndSync(env, kLog, "text");
  const auto ledger = OpenLedger(env);
  TellSynced(*ledger, kLog, "text");
  env.FailCall({.calls = SimCall::kSync, .path_part = kLedgerPath});
  REQUIRE_CODE(ledger->Withdraw(kLog), kIoError);
  REQUIRE_CODE(ledger->Withdraw(kLog), kIoError);  // a later file of this name must not be compared
                                                   // with the entry
  REQUIRE_OK(ledger->Withdraw("/000008.log"));     // never in the ledger
}

TEST_CASE("After a sync found the disk full the ledger continues in a new file") {
  const std::string manifest = "/MANIFEST-000003";
  SimEnv env;
  WriteAndSync(env, manifest, "1234567890");
  const auto ledger = OpenLedger(env);
  TellSynced(*ledger, manifest, "123");
  env.FailCall({.calls = SimCall::kSync, .code = StatusCode::kNoSpace, .path_part = kLedgerPath});
  REQUIRE_CODE(ledger->Synced(manifest, 4, Checksum(AsBytes("1234"))), kNoSpace);
  TellSynced(*ledger, manifest, "12345");
  env.PowerCut();
  const auto state = CheckSyncLedger(env, kLedgerPath, "/");
  REQUIRE_OK(state);
  REQUIRE(state->entries.size() == 1);
  REQUIRE(state->entries[0].length == 5);
}

// --- Under the store.

std::string Key(int number) { return "key " + std::to_string(1000 + number); }

// A store with `count` synced writes in its log, as left by a killed process.
void MakeKilled(SimEnv& env, int count) {
  auto store = OpenRocksDbStore(env, At(Mode::kCreate));
  REQUIRE_OK(store);
  for (int i = 0; i < count; ++i) REQUIRE_OK((*store)->Write({Put(Key(i), std::to_string(i))}));
  env.PowerCut({Unsynced::kKeep});  // so that destroying the store writes nothing
}

std::vector<std::string> Logs(Env& env) {
  auto entries = env.ListDirectory(kStorePath);
  REQUIRE_OK(entries);
  std::vector<std::string> logs;
  for (const DirectoryEntry& entry : *entries) {
    const std::string path = JoinPath(kStorePath, entry.name);
    if (SyncLedger::IsLog(path) && !Contents(env, path).empty()) logs.push_back(path);
  }
  return logs;
}

TEST_CASE("A store with any flipped byte in a log's synced part is refused and left unchanged") {
  SimEnv env;
  MakeKilled(env, 60);
  const std::vector<std::string> logs = Logs(env);
  REQUIRE(logs.size() == 2);  // the log and the manifest
  Random random(1);
  for (const std::string& log : logs) {
    const size_t size = Contents(env, log).size();
    REQUIRE(size > 50);
    for (size_t at = 0; at < size; ++at) {
      CAPTURE(log, at);
      const auto bits = static_cast<uint8_t>(1u << random.Below(8));
      Flip(env, log, at, bits);
      const uint64_t changes = env.Calls(SimCall::kMutating);
      for (const Mode mode : {Mode::kReadOnly, Mode::kOpen, Mode::kCreate}) {
        const auto opened = OpenRocksDbStore(env, At(mode));
        REQUIRE_CODE(opened, kCorruption);
        REQUIRE(opened.status().path() == log);
      }
      REQUIRE(env.Calls(SimCall::kMutating) == changes);
      Flip(env, log, at, bits);
    }
  }
  for (const Mode mode : {Mode::kReadOnly, Mode::kOpen}) {
    const auto store = OpenRocksDbStore(env, At(mode));
    REQUIRE_OK(store);
    REQUIRE(Read(**store, Key(59)) == "59");
  }
}

TEST_CASE("A damaged ledger does not lose commits") {
  SimEnv env;
  MakeKilled(env, 10);
  {
    auto store = OpenRocksDbStore(env, At(Mode::kOpen));
    REQUIRE_OK(store);
    REQUIRE_OK((*store)->Write({Put("last", "1")}));
    REQUIRE_OK((*store)->CloseCleanly());
  }
  for (size_t at = 5; at < Contents(env, kLedgerPath).size(); at += 511) {
    CAPTURE(at);
    const auto rotten = env.Fork();
    Flip(*rotten, kLedgerPath, at);
    const auto store = OpenRocksDbStore(*rotten, At(Mode::kOpen));
    REQUIRE_OK(store);
    REQUIRE(Read(**store, "last") == "1");
  }
}

TEST_CASE("Bytes above a MANIFEST's synced length do not prevent opening") {
  SimEnv env;
  MakeKilled(env, 10);
  Random random(3);
  for (const std::string& log : Logs(env)) {
    if (log.ends_with(".log")) continue;
    for (const size_t extra : {1, 7, 20, 5000, 40'000}) {
      CAPTURE(extra);
      for (const Mode mode : {Mode::kReadOnly, Mode::kOpen}) {
        const auto torn = env.Fork();
        Bytes garbage(extra);
        if (extra != 20) random.Fill(garbage);
        auto file = torn->OpenFile(log, {.mode = OpenMode::kReadWrite});
        REQUIRE_OK(file);
        REQUIRE_OK((*file)->Write(*(*file)->Size(), garbage));
        const auto store = OpenRocksDbStore(*torn, At(mode));
        REQUIRE_OK(store);
        REQUIRE(Read(**store, Key(9)) == "9");
      }
    }
  }
}

TEST_CASE("A cleanly closed store is compared with its manifest, too") {
  SimEnv env;
  {
    auto store = OpenRocksDbStore(env, At(Mode::kCreate));
    REQUIRE_OK(store);
    REQUIRE_OK(env.SyncDirectory("/"));
    REQUIRE_OK((*store)->Write({Put("a", "1")}));
    REQUIRE_OK((*store)->CloseCleanly());
  }
  env.PowerCut();
  int manifests = 0;
  for (const std::string& log : Logs(env)) {
    if (log.ends_with(".log")) continue;  // a log that is no longer needed
    ++manifests;
    const size_t size = Contents(env, log).size();
    for (size_t at = 0; at < size; ++at) {
      Flip(env, log, at);
      REQUIRE_CODE(OpenRocksDbStore(env, At(Mode::kOpen)), kCorruption);
      Flip(env, log, at);
    }
  }
  REQUIRE(manifests == 1);
  REQUIRE_OK(OpenRocksDbStore(env, At(Mode::kOpen)));
}

TEST_CASE("A store is not refused for any bytes after the synced part of a log") {
  Random random(2);
  for (int round = 0; round < 60; ++round) {
    CAPTURE(round);
    SimEnv env;
    MakeKilled(env, 20);
    for (const std::string& log : Logs(env)) {
      if (!log.ends_with(".log")) continue;
      Bytes tail(1 + random.Below(200));
      random.Fill(tail);
      if (round % 3 == 0) std::fill(tail.begin(), tail.end(), 0);
      const uint64_t size = Contents(env, log).size();
      REQUIRE_OK(OpenFile(env, log, OpenMode::kReadWrite)->Write(size, tail));
    }
    for (const Mode mode : {Mode::kReadOnly, Mode::kOpen}) {
      const auto store = OpenRocksDbStore(env, At(mode));
      REQUIRE_OK(store);
      for (int i = 0; i < 20; ++i) REQUIRE(Read(**store, Key(i)) == std::to_string(i));
      if (mode == Mode::kOpen) {
        // Recover from the torn end, write, and cut again.
        REQUIRE_OK((*store)->Write({Put(Key(20), "20")}));
        env.PowerCut({static_cast<Unsynced>(round % 3), static_cast<uint64_t>(round)});
      }
    }
    const auto store = OpenRocksDbStore(env, At(Mode::kOpen));
    REQUIRE_OK(store);
    REQUIRE(Read(**store, Key(20)) == "20");
  }
}

TEST_CASE("Repeated power cuts, at any call and under any policy, report no log as damaged") {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    Random random(seed);
    SimEnv env;
    {
      const auto store = OpenRocksDbStore(env, At(Mode::kCreate));
      REQUIRE_OK(store);
      REQUIRE_OK(env.SyncDirectory("/"));
    }
    int promised = 0;
    int attempted = 0;
    for (int round = 0; round < 12; ++round) {
      CAPTURE(seed, round);
      const auto unsynced = static_cast<Unsynced>(random.Below(4));
      env.CutAtCall(1 + random.Below(90));
      {
        auto store = OpenRocksDbStore(env, At(Mode::kOpen));
        REQUIRE((store.ok() || !env.PowerIsOn()));
        for (int i = 0; store.ok() && i < 20 && env.PowerIsOn(); ++i) {
          ++attempted;
          if ((*store)->Write({Put("last", std::to_string(attempted))}).ok()) promised = attempted;
        }
        if (store.ok() && env.PowerIsOn() && random.OneIn(3)) {
          (*store)->CloseCleanly().IgnoreError("it may be cut too");
        }
        env.Reboot({unsynced, random.Below(1000)});
      }
      CAPTURE(static_cast<int>(unsynced));
      REQUIRE_OK(CheckSyncLedger(env, kLedgerPath, kStorePath));
      const auto store = OpenRocksDbStore(env, At(Mode::kReadOnly));
      REQUIRE_OK(store);
      const std::string last = Read(**store, "last");
      const int count = last == "(none)" ? 0 : std::stoi(last);
      REQUIRE(count >= promised);
      REQUIRE(count <= attempted);
      promised = attempted = count;
    }
  }
}

}  // namespace
}  // namespace siltfs
