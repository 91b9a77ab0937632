// The contract of the store on RocksDB beyond kv_store_test.cc: its files on disk, damage, and full
// or failing disks.
#include "fs/rocksdb/rocksdb_store.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <thread>

#include "store/base/checksum.h"
#include "store/base/random.h"
#include "store/base/thread_annotations.h"
#include "store/env/posix_env.h"
#include "tests/fs/meta/metadata_test_support.h"
#include "tests/support/fault_env.h"
#include "tests/support/temporary_directory.h"

namespace siltfs {
namespace {

namespace fs = std::filesystem;
using testing::FaultEnv;
using testing::Put;
using testing::Read;
using testing::TemporaryDirectory;
using Call = FaultEnv::Call;
using Mode = KvStoreOptions::Mode;

KvStoreOptions At(const std::string& path, Mode mode) {
  KvStoreOptions options;
  options.path = path;
  options.mode = mode;
  return options;
}

// The machine's file system.
Env& PlainEnv() {
  static const std::unique_ptr<Env> env = NewPosixEnv();
  return *env;
}

std::unique_ptr<KvStore> OpenOk(const KvStoreOptions& options, Env& env = PlainEnv()) {
  auto store = OpenRocksDbStore(env, options);
  REQUIRE_OK(store);
  return std::move(store).value();
}

std::string Contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

void Replace(const fs::path& path, const std::string& contents) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << contents;
}

// The size, the checksum and the modification time of each file, and of the directory.
std::map<std::string, std::string> Fingerprint(const std::string& directory) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(directory)) {
    const std::string contents = Contents(entry.path());
    files[entry.path().filename()] =
        std::to_string(contents.size()) + " " + std::to_string(Checksum(AsBytes(contents))) + " " +
        std::to_string(entry.last_write_time().time_since_epoch().count());
  }
  files["."] = std::to_string(fs::last_write_time(directory).time_since_epoch().count());
  return files;
}

std::vector<fs::path> Logs(const std::string& directory) {
  std::vector<fs::path> logs;
  for (const auto& entry : fs::directory_iterator(directory)) {
    if (entry.path().extension() == ".log") logs.push_back(entry.path());
  }
  return logs;
}

uint64_t LogBytes(const std::string& directory) {
  uint64_t bytes = 0;
  for (const fs::path& log : Logs(directory)) bytes += fs::file_size(log);
  return bytes;
}

// Copies an open store's files as a crash would leave them; no write may be running.
void CopyAsAfterCrash(const std::string& from, const std::string& to) {
  fs::create_directory(to);
  for (const auto& entry : fs::directory_iterator(from)) {
    if (entry.path().filename() == "LOCK") continue;
    std::error_code error;
    fs::copy(entry.path(), to, error);
    // In the background, RocksDB removes a table that it could not write.
    const bool gone = error == std::errc::no_such_file_or_directory;
    REQUIRE((!error || (gone && entry.path().extension() == ".sst")));
  }
}

std::string Key(int i) { return "key " + std::to_string(1000000 + i); }

// A store whose log holds `count` synced writes of one key each, as a crash leaves it; the last key
// is `Key(count - 1)`.
void MakeCrashed(const TemporaryDirectory& directory, const std::string& path, int count) {
  const std::string live = directory / "live";
  const auto store = OpenOk(At(live, Mode::kCreate));
  for (int i = 0; i < count; ++i) REQUIRE_OK(store->Write({Put(Key(i), std::to_string(i))}));
  CopyAsAfterCrash(live, path);
}

int CountKeys(const KvStore& store) {
  int count = 0;
  const auto snapshot = store.Snapshot();
  const auto iterator = snapshot->NewIterator();
  for (iterator->Seek(""); iterator->Valid(); iterator->Next()) ++count;
  REQUIRE_OK(iterator->status());
  return count;
}

TEST_CASE("A store is created only once, and opened only if it exists") {
  TemporaryDirectory directory;
  const std::string path = directory / "kv";
  REQUIRE_CODE(OpenRocksDbStore(PlainEnv(), At(path, Mode::kOpen)), kNotFound);
  REQUIRE_CODE(OpenRocksDbStore(PlainEnv(), At(path, Mode::kReadOnly)), kNotFound);
  REQUIRE_FALSE(fs::exists(fs::path(path) / "CURRENT"));
  OpenOk(At(path, Mode::kCreate));
  const auto again = OpenRocksDbStore(PlainEnv(), At(path, Mode::kCreate));
  REQUIRE_CODE(again, kAlreadyExists);
  REQUIRE(again.status().path() == path);
  OpenOk(At(path, Mode::kOpen));
  OpenOk(At(path, Mode::kReadOnly));
}

TEST_CASE("A store that is filled logs nothing, and has everything when it is closed") {
  TemporaryDirectory directory;
  const std::string path = directory / "kv";
  constexpr int kKeys = 2000;
  {
    const auto store = OpenOk(At(path, Mode::kFill));
    for (int i = 0; i < kKeys; ++i) {
      REQUIRE_OK(store->Write({Put(Key(i), std::string(10000, 'a')), Put(Key(kKeys / 2), "last")}));
    }
    REQUIRE(LogBytes(path) == 0);
    REQUIRE(CountKeys(*store) == kKeys);
    REQUIRE_OK(store->CloseCleanly());
  }
  REQUIRE_CODE(OpenRocksDbStore(PlainEnv(), At(path, Mode::kFill)), kAlreadyExists);
  const auto store = OpenOk(At(path, Mode::kOpen));
  REQUIRE(CountKeys(*store) == kKeys);
  REQUIRE(store->Get(Key(kKeys / 2)).value() == "last");
  REQUIRE_OK(store->VerifyChecksums());
  REQUIRE_OK(store->Write({Put("more", "1")}));
  REQUIRE(LogBytes(path) > 0);
}

TEST_CASE("A cleanly closed store has only empty logs, and never an info log") {
  TemporaryDirectory directory;
  const std::string path = directory / "kv";
  for (int round = 0; round < 3; ++round) {
    const auto store = OpenOk(At(path, round == 0 ? Mode::kCreate : Mode::kOpen));
    for (int i = 0; i < 50; ++i) REQUIRE_OK(store->Write({Put(Key(i), std::to_string(round))}));
    REQUIRE(LogBytes(path) > 0);
    REQUIRE_OK(store->CloseCleanly());
    REQUIRE(LogBytes(path) == 0);
    for (const auto& entry : fs::directory_iterator(path)) {
      REQUIRE(entry.path().filename().string().find("LOG") == std::string::npos);
    }
  }
  // Everything is there without any log file, so a read-only open recovers nothing.
  for (const fs::path& log : Logs(path)) fs::remove(log);
  REQUIRE(Read(*OpenOk(At(path, Mode::kReadOnly)), Key(49)) == "2");
}

TEST_CASE("Opening read-only after a crash shows everything and writes nothing") {
  TemporaryDirectory directory;
  const std::string path = directory / "kv";
  MakeCrashed(directory, path, 200);
  REQUIRE(LogBytes(path) > 0);
  const auto before = Fingerprint(path);
  {
    const auto store = OpenOk(At(path, Mode::kReadOnly));
    REQUIRE(CountKeys(*store) == 200);
    REQUIRE(Read(*store, Key(199)) == "199");
    REQUIRE_CODE(store->Write({Put("k", "v")}), kReadOnly);
    REQUIRE_OK(store->CloseCleanly());
  }
  REQUIRE(Fingerprint(path) == before);
}

TEST_CASE("Opening a log with a torn end read-only writes nothing") {
  TemporaryDirectory directory;
  const std::string path = directory / "kv";
  MakeCrashed(directory, path, 200);
  REQUIRE(Logs(path).size() == 1);
  const fs::path log = Logs(path)[0];
  fs::resize_file(log, fs::file_size(log) - 5);
  const auto before = Fingerprint(path);
  REQUIRE(CountKeys(*OpenOk(At(path, Mode::kReadOnly))) == 199);
  REQUIRE(Fingerprint(path) == before);
}

TEST_CASE("A torn end of the log loses only the torn write, which never returned") {
  TemporaryDirectory directory;
  const std::string crashed = directory / "crashed";
  MakeCrashed(directory, crashed, 20);
  REQUIRE(Logs(crashed).size() == 1);
  const std::string log_name = Logs(crashed)[0].filename();
  const uint64_t size = LogBytes(crashed);
  // Records of these writes are longer than 30 bytes.
  for (uint64_t cut = 1; cut <= 30; cut += 3) {
    CAPTURE(cut);
    const std::string path = directory / ("cut " + std::to_string(cut));
    fs::copy(crashed, path);
    fs::resize_file(fs::path(path) / log_name, size - cut);
    REQUIRE(CountKeys(*OpenOk(At(path, Mode::kOpen))) == 19);
    // Recovery has made the rest durable.
    REQUIRE(CountKeys(*OpenOk(At(path, Mode::kOpen))) == 19);
  }
}

// This measurement is the reason for I5 (docs/crash-model.md): RocksDB takes a flipped byte in the
// middle of its log for the end of the log.
TEST_CASE("Without a ledger a flipped byte in the log silently loses all later writes") {
  TemporaryDirectory directory;
  const std::string crashed = directory / "crashed";
  MakeCrashed(directory, crashed, 1000);
  REQUIRE(Logs(crashed).size() == 1);
  const std::string log_name = Logs(crashed)[0].filename();
  std::string log = Contents(fs::path(crashed) / log_name);
  log[log.size() * 3 / 10] ^= 0x20;
  for (const Mode mode : {Mode::kReadOnly, Mode::kOpen}) {
    const std::string path = directory / ("damaged " + std::to_string(static_cast<int>(mode)));
    fs::copy(crashed, path);
    Replace(fs::path(path) / log_name, log);
    // RocksDB reports no error; only the ledger and the commit number show the damage.
    const int left = CountKeys(*OpenOk(At(path, mode)));
    REQUIRE(left > 250);
    REQUIRE(left < 350);
  }
}

std::vector<fs::path> Tables(const std::string& directory) {
  std::vector<fs::path> tables;
  for (const auto& entry : fs::directory_iterator(directory)) {
    if (entry.path().extension() == ".sst") tables.push_back(entry.path());
  }
  return tables;
}

// When it opens a table, RocksDB reads the filter of a table made by a flush, but not of one made
// by a compaction.
TEST_CASE("Verifying checksums finds a flipped byte anywhere in a table, filters included") {
  TemporaryDirectory directory;
  const std::string path = directory / "kv";
  OpenOk(At(path, Mode::kCreate));
  bool compacted = false;
  for (int session = 0; !compacted && session < 200; ++session) {
    const auto store = OpenOk(At(path, Mode::kOpen));
    const size_t tables = Tables(path).size();
    std::vector<Mutation> keys;
    for (int i = 0; i < 2000; ++i) keys.push_back(Put(Key(i), std::to_string(session)));
    REQUIRE_OK(store->Write(keys));
    REQUIRE_OK(store->CloseCleanly());
    compacted = Tables(path).size() < tables;
  }
  REQUIRE(compacted);
  REQUIRE_OK(OpenOk(At(path, Mode::kReadOnly))->VerifyChecksums());
  for (const fs::path& table : Tables(path)) {
    const std::string whole = Contents(table);
    for (size_t at = 0; at < whole.size(); at += 197) {
      std::string damaged = whole;
      damaged[at] ^= 1;
      Replace(table, damaged);
      INFO("byte " << at << " of " << whole.size());
      const auto store = OpenRocksDbStore(PlainEnv(), At(path, Mode::kReadOnly));
      REQUIRE_CODE(store.ok() ? (*store)->VerifyChecksums() : store.status(), kCorruption);
    }
    Replace(table, whole);
  }
}

TEST_CASE("A missing log is noticed") {
  TemporaryDirectory directory;
  const std::string path = directory / "kv";
  // If tables cannot be written, a full log is kept in addition to the next one. The write that
  // begins the next log may fail before the log exists: then try again with a new store.
  for (int attempt = 0; !fs::exists(path); ++attempt) {
    REQUIRE(attempt < 100);
    FaultEnv env(NewPosixEnv());
    KvStoreOptions options = At(directory / ("live " + std::to_string(attempt)), Mode::kCreate);
    const auto store = OpenOk(options, env);
    env.Fail(Call::kWrite, ".sst", StatusCode::kNoSpace);
    Status status;
    for (int i = 0; i < 1000 && status.ok() && Logs(options.path).size() < 2; ++i) {
      status = store->Write({Put(Key(i), std::string(1u << 17, 'x'))});
    }
    REQUIRE((status.ok() || status.Is(StatusCode::kNoSpace)));
    if (status.ok()) CopyAsAfterCrash(options.path, path);
  }
  std::vector<fs::path> logs = Logs(path);
  REQUIRE(logs.size() == 2);
  OpenOk(At(path, Mode::kReadOnly));
  fs::remove(std::min(logs[0], logs[1]));
  REQUIRE_CODE(OpenRocksDbStore(PlainEnv(), At(path, Mode::kReadOnly)), kCorruption);
  REQUIRE_CODE(OpenRocksDbStore(PlainEnv(), At(path, Mode::kOpen)), kCorruption);
}

TEST_CASE("Reading a damaged table gives kCorruption, never wrong bytes") {
  TemporaryDirectory directory;
  const std::string path = directory / "kv";
  auto value_of = [](int i) { return std::string(20000, static_cast<char>('a' + i % 26)); };
  {
    const auto store = OpenOk(At(path, Mode::kCreate));
    for (int i = 0; i < 100; ++i) REQUIRE_OK(store->Write({Put(Key(i), value_of(i))}));
    REQUIRE_OK(store->CloseCleanly());
  }
  int tables = 0;
  for (const auto& entry : fs::directory_iterator(path)) {
    if (entry.path().extension() != ".sst") continue;
    ++tables;
    std::string table = Contents(entry.path());
    for (size_t at = table.size() / 10; at < table.size() / 2; at += 1000) table[at] ^= 1;
    Replace(entry.path(), table);
  }
  REQUIRE(tables == 1);
  const auto store = OpenOk(At(path, Mode::kReadOnly));
  int damaged = 0;
  for (int i = 0; i < 100; ++i) {
    const auto value = store->Get(Key(i));
    if (value.ok()) {
      REQUIRE(value->value_or("") == value_of(i));
    } else {
      REQUIRE_CODE(value, kCorruption);
      ++damaged;
    }
  }
  REQUIRE(damaged > 0);
  REQUIRE(damaged < 100);
}

TEST_CASE("A write on a full disk fails with kNoSpace, and the next one works when there is room") {
  TemporaryDirectory directory;
  FaultEnv env(NewPosixEnv());
  KvStoreOptions options = At(directory / "kv", Mode::kCreate);
  const auto store = OpenOk(options, env);
  REQUIRE_OK(store->Write({Put("a", "1")}));

  const int fault = GENERATE(0, 1, 2);
  for (int round = 0; round < 3; ++round) {
    if (fault == 0) env.Fail(Call::kWrite, "", StatusCode::kNoSpace);
    if (fault == 1) env.FailHalfWay("", StatusCode::kNoSpace);
    if (fault == 2) env.Fail(Call::kSync, "", StatusCode::kNoSpace);
    REQUIRE_CODE(store->Write({Put("b", std::to_string(round))}), kNoSpace);
    REQUIRE_CODE(store->Write({Put("b", std::to_string(round))}), kNoSpace);
    REQUIRE(Read(*store, "a") == "1");
    env.Heal();
    REQUIRE_OK(store->Write({Put("b", std::to_string(round))}));
    REQUIRE(Read(*store, "b") == std::to_string(round));
    REQUIRE_OK(store->Write({Put("c", std::to_string(round))}));
  }
  // All acknowledged writes are there after a crash.
  CopyAsAfterCrash(directory / "kv", directory / "copy");
  const auto recovered = OpenOk(At(directory / "copy", Mode::kOpen));
  REQUIRE(Read(*recovered, "a") == "1");
  REQUIRE(Read(*recovered, "b") == "2");
  REQUIRE(Read(*recovered, "c") == "2");
  REQUIRE_OK(store->CloseCleanly());
  REQUIRE(LogBytes(directory / "kv") == 0);
}

TEST_CASE("A batch too large for the free space can be retried repeatedly") {
  TemporaryDirectory directory;
  FaultEnv env(NewPosixEnv());
  KvStoreOptions options = At(directory / "kv", Mode::kCreate);
  const auto store = OpenOk(options, env);
  // With an earlier entry in memory, there is something to flush. Small tables still fit, so the
  // flush succeeds. In both cases the torn log must be replaced.
  const bool something_before = GENERATE(false, true);
  if (something_before) REQUIRE_OK(store->Write({Put("a", "1")}));
  env.Fail(Call::kWrite, ".log", StatusCode::kNoSpace);
  for (int i = 0; i < 3; ++i) REQUIRE_CODE(store->Write({Put("b", "refused")}), kNoSpace);
  env.Heal();
  REQUIRE_OK(store->Write({Put("b", "2")}));
  REQUIRE_OK(store->Write({Put("c", "2")}));
  // There are too few tables for a compaction, which could interfere.
  CopyAsAfterCrash(directory / "kv", directory / "copy");
  const auto recovered = OpenOk(At(directory / "copy", Mode::kOpen));
  REQUIRE(Read(*recovered, "a") == (something_before ? "1" : "(none)"));
  REQUIRE(Read(*recovered, "b") == "2");
  REQUIRE(Read(*recovered, "c") == "2");
  REQUIRE(CountKeys(*recovered) == (something_before ? 3 : 2));
}

TEST_CASE("After a background flush met a full disk, the store can be written again") {
  TemporaryDirectory directory;
  FaultEnv env(NewPosixEnv());
  KvStoreOptions options = At(directory / "kv", Mode::kCreate);
  const auto store = OpenOk(options, env);
  // Tables cannot be written, the log can: the flush of the first full write buffer fails.
  env.Fail(Call::kWrite, ".sst", StatusCode::kNoSpace);
  int written = 0;
  Status status;
  while (status.ok()) {
    REQUIRE(written < 1000);
    status = store->Write({Put(Key(written), std::string(1u << 17, 'x'))});
    if (status.ok()) ++written;
  }
  REQUIRE_CODE(status, kNoSpace);
  env.Heal();
  REQUIRE_OK(store->Write({Put("after", "v")}));
  REQUIRE(CountKeys(*store) == written + 1);
  REQUIRE_OK(store->CloseCleanly());
}

// Calls `before_creating` before a file is created whose name ends in `suffix`.
class WatchedEnv final : public FaultEnv {
 public:
  WatchedEnv(std::string suffix, std::function<void()> before_creating)
      : FaultEnv(NewPosixEnv()),
        suffix_(std::move(suffix)),
        before_creating_(std::move(before_creating)) {}

  Result<std::unique_ptr<File>> OpenFile(const std::string& path, OpenOptions options) override {
    if (options.mode == OpenMode::kCreate && path.ends_with(suffix_)) before_creating_();
    return FaultEnv::OpenFile(path, options);
  }

 private:
  const std::string suffix_;
  const std::function<void()> before_creating_;
};

TEST_CASE("A disk that is full for one moment does not fail a close") {
  TemporaryDirectory directory;
  int tables = 0;
  FaultEnv* that = nullptr;
  WatchedEnv env(".sst", [&] {
    if (++tables == 1) {
      that->Fail(Call::kWrite, ".sst", StatusCode::kNoSpace);
    } else {
      that->Heal();
    }
  });
  that = &env;
  const auto store = OpenOk(At(directory / "kv", Mode::kCreate), env);
  REQUIRE_OK(store->Write({Put("a", "1")}));
  REQUIRE_OK(store->CloseCleanly());
  REQUIRE(tables == 2);
  REQUIRE(LogBytes(directory / "kv") == 0);
}

// Blocks callers of Pass until it is opened.
class Gate {
 public:
  void Pass() {
    MutexLock lock(mutex_);
    reached_ = true;
    changed_.NotifyAll();
    while (!open_) changed_.Wait(mutex_);
  }
  void WaitUntilReached() {
    MutexLock lock(mutex_);
    while (!reached_) changed_.Wait(mutex_);
  }
  void Open() {
    MutexLock lock(mutex_);
    open_ = true;
    changed_.NotifyAll();
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool reached_ SILTFS_GUARDED_BY(mutex_) = false;
  bool open_ SILTFS_GUARDED_BY(mutex_) = false;
};

TEST_CASE("A log that meets a full disk before a flush has begun leaves the store usable") {
  TemporaryDirectory directory;
  // Another store blocks the flush thread, which stores share, until the log fails.
  Gate gate;
  WatchedEnv busy_env(".sst", [&] { gate.Pass(); });
  const auto busy = OpenOk(At(directory / "busy", Mode::kCreate), busy_env);
  REQUIRE_OK(busy->Write({Put("a", "1")}));
  int logs = 0;
  FaultEnv* that = nullptr;
  WatchedEnv env(".log", [&] {
    if (++logs != 2) return;
    that->Fail(Call::kWrite, ".log", StatusCode::kNoSpace);
    gate.Open();
  });
  that = &env;
  const auto store = OpenOk(At(directory / "kv", Mode::kCreate), env);

  Status closed;
  std::thread closing([&] { closed = busy->CloseCleanly(); });
  gate.WaitUntilReached();
  int written = 0;
  Status status;
  while (status.ok() && written < 1000) {
    status = store->Write({Put(Key(written), std::string(1u << 17, 'x'))});
    if (status.ok()) ++written;
  }
  gate.Open();
  closing.join();
  REQUIRE_OK(closed);
  REQUIRE_CODE(status, kNoSpace);
  REQUIRE(logs == 2);
  env.Heal();
  REQUIRE_OK(store->Write({Put("after", "v")}));
  REQUIRE(CountKeys(*store) == written + 1);
  REQUIRE_OK(store->CloseCleanly());
}

TEST_CASE("A failed sync ends all writing, and the device is not called again") {
  TemporaryDirectory directory;
  FaultEnv env(NewPosixEnv());
  KvStoreOptions options = At(directory / "kv", Mode::kCreate);
  const auto store = OpenOk(options, env);
  REQUIRE_OK(store->Write({Put("a", "1")}));
  env.Fail(Call::kSync, "", StatusCode::kIoError);
  const Status failed = store->Write({Put("a", "2")});
  REQUIRE_CODE(failed, kIoError);
  REQUIRE(failed.path() == directory / "kv");
  env.Heal();
  const uint64_t changes = env.Count(Call::kChange, "");
  REQUIRE_CODE(store->Write({Put("a", "3")}), kIoError);
  REQUIRE_CODE(store->CloseCleanly(), kIoError);
  REQUIRE(env.Count(Call::kChange, "") == changes);
  REQUIRE(Read(*store, "a") == "1");
}

TEST_CASE("The size on disk counts the log, and tables after it") {
  TemporaryDirectory directory;
  const auto store = OpenOk(At(directory / "kv", Mode::kCreate));
  REQUIRE(store->DiskBytes() < 100000);
  std::string noise(1u << 20, '\0');
  Random random(3);
  for (int i = 0; i < 10; ++i) {
    random.Fill({reinterpret_cast<uint8_t*>(noise.data()), noise.size()});
    REQUIRE_OK(store->Write({Put(Key(i), noise)}));
    REQUIRE(store->DiskBytes() >= static_cast<uint64_t>(i + 1) << 20);
  }
  REQUIRE(CountKeys(*store) == 10);
}

}  // namespace
}  // namespace siltfs
