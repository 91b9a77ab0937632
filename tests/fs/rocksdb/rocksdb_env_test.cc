// RocksDB on Env: single calls, and the store on a device that loses power, is full or fails at
// every call of a run.
#include "fs/rocksdb/rocksdb_env.h"

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include <algorithm>
#include <functional>

#include "tests/fs/meta/metadata_test_support.h"
#include "tests/fs/meta/simulated_store.h"
#include "tests/support/crash_points.h"

namespace siltfs {
namespace {

using testing::At;
using testing::CallStep;
using testing::FirstCall;
using testing::Put;
using testing::Read;
using Mode = KvStoreOptions::Mode;
using Unsynced = CrashPolicy::Unsynced;

constexpr Unsynced kPolicies[] = {Unsynced::kDrop, Unsynced::kKeep, Unsynced::kPrefix,
                                  Unsynced::kSubset};

// --- The calls.

class RocksDbFiles {
 public:
  RocksDbFiles() : rocksdb_env_(NewRocksDbEnv(env_)) {}

  SimEnv& env() { return env_; }
  rocksdb::Env& operator*() { return *rocksdb_env_; }
  rocksdb::Env* operator->() { return rocksdb_env_.get(); }

  void Write(const std::string& path, const std::string& text, bool sync = false) {
    std::unique_ptr<rocksdb::WritableFile> file;
    REQUIRE(rocksdb_env_->NewWritableFile(path, &file, {}).ok());
    REQUIRE(file->Append(text).ok());
    if (sync) REQUIRE(file->Sync().ok());
    REQUIRE(file->Close().ok());
  }
  std::string Contents(const std::string& path) {
    std::string text;
    REQUIRE(rocksdb::ReadFileToString(rocksdb_env_.get(), path, &text).ok());
    return text;
  }

 private:
  SimEnv env_;
  const std::unique_ptr<rocksdb::Env> rocksdb_env_;
};

TEST_CASE("RocksDB's files are written from their beginning or from their end") {
  RocksDbFiles files;
  files.Write("/a", "long text");
  REQUIRE(files.Contents("/a") == "long text");
  files.Write("/a", "text");
  REQUIRE(files.Contents("/a") == "text");
  std::unique_ptr<rocksdb::WritableFile> file;
  REQUIRE(files->ReopenWritableFile("/a", &file, {}).ok());
  REQUIRE(file->GetFileSize() == 4);
  REQUIRE(file->Append(", more").ok());
  REQUIRE(file->GetFileSize() == 10);
  REQUIRE(file->Truncate(7).ok());
  REQUIRE(file->Append("!").ok());
  REQUIRE(file->IsSyncThreadSafe());
  REQUIRE(files->ReopenWritableFile("/new", &file, {}).ok());
  REQUIRE(files.Contents("/a") == "text, m!");
  REQUIRE(files.Contents("/new").empty());
}

TEST_CASE("RocksDB reads anywhere, up to the end") {
  RocksDbFiles files;
  files.Write("/a", "0123456789");
  char scratch[8];
  rocksdb::Slice got;
  std::unique_ptr<rocksdb::RandomAccessFile> random;
  REQUIRE(files->NewRandomAccessFile("/a", &random, {}).ok());
  REQUIRE(random->Read(3, 4, &got, scratch).ok());
  REQUIRE(got.ToString() == "3456");
  REQUIRE(random->Read(8, 8, &got, scratch).ok());
  REQUIRE(got.ToString() == "89");
  REQUIRE(random->Read(100, 8, &got, scratch).ok());
  REQUIRE(got.empty());
  std::unique_ptr<rocksdb::SequentialFile> sequential;
  REQUIRE(files->NewSequentialFile("/a", &sequential, {}).ok());
  REQUIRE(sequential->Read(3, &got, scratch).ok());
  REQUIRE(got.ToString() == "012");
  REQUIRE(sequential->Skip(4).ok());
  REQUIRE(sequential->Read(8, &got, scratch).ok());
  REQUIRE(got.ToString() == "789");
  REQUIRE(sequential->Read(8, &got, scratch).ok());
  REQUIRE(got.empty());
}

// A log record without a valid checksum, which is not verified here.
std::string LogRecord(int type, const std::string& text) {
  return std::string(4, 'c') + static_cast<char>(text.size() % 256) +
         static_cast<char>(text.size() / 256) + static_cast<char>(type) + text;
}

TEST_CASE("RocksDB's reader does not see a record on which it would loop for ever") {
  const std::string block = LogRecord(1, "one") + LogRecord(2, std::string(32768 - 7 - 10, '2'));
  REQUIRE(block.size() == 32768);
  char scratch[32768];
  for (const int type : {1, 4, 5, 6, 7, 8, 9, 10, 11, 12}) {
    CAPTURE(type);
    const bool kept = type < 5 || type == 9 || type == 10 || type == 12;
    RocksDbFiles files;
    // A recycled record in the third block, and data after it.
    const std::string tail = LogRecord(1, "x") + LogRecord(type, "y") + LogRecord(1, "z");
    for (const char* path : {"/000007.log", "/MANIFEST-000007", "/other"}) {
      files.Write(path, block + block + tail);
      std::unique_ptr<rocksdb::SequentialFile> file;
      REQUIRE(files->NewSequentialFile(path, &file, {}).ok());
      rocksdb::Slice got;
      for (int i = 0; i < 2; ++i) {
        REQUIRE(file->Read(sizeof scratch, &got, scratch).ok());
        REQUIRE((got == block));
      }
      REQUIRE(file->Read(sizeof scratch, &got, scratch).ok());
      REQUIRE(got.ToString() == (kept || path[1] == 'o' ? tail : LogRecord(1, "x")));
      REQUIRE(file->Read(sizeof scratch, &got, scratch).ok());
      REQUIRE(got.empty());
    }
  }
}

TEST_CASE("RocksDB reads a log block with senseless lengths unchanged") {
  RocksDbFiles files;
  for (const std::string& text :
       {std::string("short"), std::string(7, '\0') + LogRecord(5, "after zeros"),
        LogRecord(1, "x").substr(0, 7), "cccc\xff\xff\x01" + LogRecord(5, "too long"),
        LogRecord(1, "whole")}) {
    files.Write("/000007.log", text);
    REQUIRE(files.Contents("/000007.log") == text);
  }
}

TEST_CASE("RocksDB finds, lists, renames and removes names") {
  RocksDbFiles files;
  REQUIRE(files->CreateDir("/d").ok());
  REQUIRE(files->CreateDir("/d").IsIOError());
  REQUIRE(files->CreateDirIfMissing("/d").ok());
  files.Write("/d/a", "aa");
  REQUIRE(files->CreateDirIfMissing("/d/a").IsIOError());
  files.Write("/d/b", "bbb");
  REQUIRE(files->RenameFile("/d/a", "/d/c").ok());
  REQUIRE(files->FileExists("/d/a").IsNotFound());
  REQUIRE(files->FileExists("/d/c/below").IsNotFound());
  REQUIRE(files->FileExists("/d/c").ok());
  std::vector<std::string> names;
  REQUIRE(files->GetChildren("/d", &names).ok());
  std::sort(names.begin(), names.end());
  REQUIRE(names == std::vector<std::string>{"b", "c"});
  REQUIRE(files->GetChildren("/none", &names).IsNotFound());
  uint64_t size = 0;
  REQUIRE(files->GetFileSize("/d/b", &size).ok());
  REQUIRE(size == 3);
  REQUIRE(files->Truncate("/d/b", 1).ok());
  REQUIRE(files.Contents("/d/b") == "b");
  bool is_directory = false;
  REQUIRE(files->IsDirectory("/d", &is_directory).ok());
  REQUIRE(is_directory);
  REQUIRE(files->IsDirectory("/d/b", &is_directory).ok());
  REQUIRE_FALSE(is_directory);
  REQUIRE(files->DeleteDir("/d").IsIOError());
  REQUIRE(files->DeleteFile("/d/b").ok());
  REQUIRE(files->DeleteFile("/d/c").ok());
  REQUIRE(files->DeleteDir("/d").ok());
  REQUIRE(files->FileExists("/d").IsNotFound());
  std::unique_ptr<rocksdb::Directory> directory;
  REQUIRE(files->NewDirectory("/d", &directory).IsPathNotFound());
}

TEST_CASE("Exactly the files that RocksDB synced survive a power cut") {
  RocksDbFiles files;
  REQUIRE(files->CreateDir("/d").ok());
  files.Write("/d/synced", "text", /*sync=*/true);
  files.Write("/d/not synced", "text");
  for (const char* path : {"/", "/d"}) {
    std::unique_ptr<rocksdb::Directory> directory;
    REQUIRE(files->NewDirectory(path, &directory).ok());
    REQUIRE(directory->Fsync().ok());
    REQUIRE(directory->Close().ok());
  }
  files.Write("/d/no name", "text", /*sync=*/true);
  files.env().PowerCut();
  REQUIRE(files.Contents("/d/synced") == "text");
  REQUIRE(files.Contents("/d/not synced").empty());
  REQUIRE(files->FileExists("/d/no name").IsNotFound());
}

TEST_CASE("RocksDB gets failures as its own status codes") {
  RocksDbFiles files;
  std::unique_ptr<rocksdb::SequentialFile> reader;
  REQUIRE(files->NewSequentialFile("/a", &reader, {}).IsPathNotFound());
  std::unique_ptr<rocksdb::WritableFile> file;
  REQUIRE(files->NewWritableFile("/a", &file, {}).ok());
  files.env().FailCall({.calls = SimCall::kWrite, .code = StatusCode::kNoSpace});
  const rocksdb::Status full = file->Append("text");
  REQUIRE(full.IsNoSpace());
  REQUIRE(file->GetFileSize() == 0);
  REQUIRE(full.ToString().find("/a") != std::string::npos);
  files.env().FailCall({.calls = SimCall::kSync, .code = StatusCode::kIoError});
  const rocksdb::Status failed = file->Sync();
  REQUIRE(failed.IsIOError());
  REQUIRE_FALSE(failed.IsNoSpace());

  rocksdb::FileLock* lock = nullptr;
  REQUIRE(files->LockFile("/lock", &lock).ok());
  rocksdb::FileLock* second = nullptr;
  REQUIRE(files->LockFile("/lock", &second).IsIOError());
  REQUIRE(second == nullptr);
  REQUIRE(files->UnlockFile(lock).ok());
  REQUIRE(files->LockFile("/lock", &lock).ok());
  REQUIRE(files->UnlockFile(lock).ok());

  files.env().SetCapacity(1u << 20);
  uint64_t bytes = 0;
  REQUIRE(files->GetFreeSpace("/", &bytes).ok());
  REQUIRE(bytes <= 1u << 20);
}

// --- The store: numbered writes, each of several keys.

constexpr int kParts = 4;

std::string PartKey(int number, int part) {
  return std::to_string(100 + number) + "/" + std::to_string(part);
}

// The values of writes with numbers divisible by 5 are large: three such writes fill a write
// buffer.
std::string PartValue(int number, int part) {
  return std::string(number % 5 == 0 ? 400'000 : 30, static_cast<char>('a' + part)) +
         std::to_string(number);
}

std::vector<Mutation> NumberedWrite(int number) {
  std::vector<Mutation> mutations = {Put("last", std::to_string(number))};
  for (int part = 0; part < kParts; ++part) {
    mutations.push_back(Put(PartKey(number, part), PartValue(number, part)));
  }
  return mutations;
}

// Checks that the store holds the writes 1 to the returned number, each whole.
int CheckPrefix(const KvStore& store) {
  const std::string last = Read(store, "last");
  const int count = last == "(none)" ? 0 : std::stoi(last);
  int number = 1;
  int part = 0;
  const auto snapshot = store.Snapshot();
  const auto iterator = snapshot->NewIteratorBelow("last");
  for (iterator->Seek(""); iterator->Valid(); iterator->Next()) {
    REQUIRE(iterator->key() == PartKey(number, part));
    REQUIRE((iterator->value() == PartValue(number, part)));
    if (++part == kParts) part = 0, ++number;
  }
  REQUIRE_OK(iterator->status());
  REQUIRE(part == 0);
  REQUIRE(number == count + 1);
  return count;
}

// Runs a store through its whole life: it is created, written to until buffers are flushed, closed,
// opened, left as by a crash, opened, closed. The run ends at the first failure. Only a step that
// fails with kNoSpace is repeated once and then must succeed.
class Run {
 public:
  explicit Run(Env& env) : env_(env) {}

  int attempted() const { return attempted_; }  // writes begun
  int promised() const { return promised_; }    // writes that returned OK
  bool made() const { return made_; }
  const std::optional<Status>& failure() const { return failure_; }
  // Whether the failure is that RocksDB did not resume after kNoSpace.
  bool gave_up() const { return gave_up_; }

  void Make() {
    Open(Mode::kCreate);
    if (!failure_) Step([&] { return env_.SyncDirectory("/"); });
    made_ = !failure_;
    Write(12);
    Close();
  }
  void GoOn() {
    Open(Mode::kOpen);
    Write(14);
    store_.reset();
    Open(Mode::kOpen);
    Write(3);
    Close();
  }
  void Abandon() { store_.reset(); }

 private:
  static bool GaveUp(const Status& status) {
    return status.cause().find("cannot be written again") != status.cause().npos;
  }
  void Step(const std::function<Status()>& step) {
    if (failure_) return;
    Status status = step();
    if (status.Is(StatusCode::kNoSpace)) {
      status = step();
      INFO("after kNoSpace: " << status.ToString());
      const bool succeeds = status.ok() || GaveUp(status);
      REQUIRE(succeeds);
    }
    if (status.ok()) return;
    gave_up_ = GaveUp(status);
    failure_ = std::move(status);
    failure_->IgnoreError("returned by failure()");
  }
  void Open(Mode mode) {
    Step([&] {
      auto store = OpenRocksDbStore(env_, At(mode));
      if (store.ok()) store_ = std::move(store).value();
      return store.status();
    });
  }
  void Write(int count) {
    for (int i = 0; i < count && !failure_; ++i) {
      ++attempted_;
      Step([&] { return store_->Write(NumberedWrite(attempted_)); });
      if (!failure_) promised_ = attempted_;
    }
  }
  void Close() {
    Step([&] { return store_->CloseCleanly(); });
    store_.reset();
  }

  Env& env_;
  std::unique_ptr<KvStore> store_;
  std::optional<Status> failure_;
  int attempted_ = 0;
  int promised_ = 0;
  bool made_ = false;
  bool gave_up_ = false;
};

// Checks that the run left a prefix with all acknowledged writes, and that the store can be written
// to and survives another power cut.
void CheckWhatIsLeft(SimEnv& env, const Run& run) {
  if (!run.made()) return;  // the creation failed: nothing to check
  int count = 0;
  {
    auto read_only = OpenRocksDbStore(env, At(Mode::kReadOnly));
    REQUIRE_OK(read_only);
    count = CheckPrefix(**read_only);
  }
  REQUIRE(count >= run.promised());
  REQUIRE(count <= run.attempted());
  {
    auto store = OpenRocksDbStore(env, At(Mode::kOpen));
    REQUIRE_OK(store);
    REQUIRE(CheckPrefix(**store) == count);
    REQUIRE_OK((*store)->Write(NumberedWrite(++count)));
    env.PowerCut();
  }
  auto store = OpenRocksDbStore(env, At(Mode::kOpen));
  REQUIRE_OK(store);
  REQUIRE(CheckPrefix(**store) == count);
}

TEST_CASE("Acknowledged writes survive repeated power cuts") {
  for (const Unsynced unsynced : kPolicies) {
    for (uint64_t seed = 0; seed < 5; ++seed) {
      CAPTURE(static_cast<int>(unsynced), seed);
      SimEnv env;
      int written = 0;
      for (int round = 0; round < 4; ++round) {
        auto store = OpenRocksDbStore(env, At(round == 0 ? Mode::kCreate : Mode::kOpen));
        REQUIRE_OK(store);
        if (round == 0) REQUIRE_OK(env.SyncDirectory("/"));
        REQUIRE(CheckPrefix(**store) == written);
        for (int i = 0; i < 13; ++i) REQUIRE_OK((*store)->Write(NumberedWrite(++written)));
        env.PowerCut({unsynced, seed});
      }
      const auto store = OpenRocksDbStore(env, At(Mode::kOpen));
      REQUIRE_OK(store);
      REQUIRE(CheckPrefix(**store) == written);
    }
  }
}

TEST_CASE("A power cut at any call leaves a prefix with all acknowledged writes") {
  const Unsynced unsynced =
      GENERATE(Unsynced::kDrop, Unsynced::kKeep, Unsynced::kPrefix, Unsynced::kSubset);
  int cuts = 0;
  int torn = 0;
  for (uint64_t call = FirstCall(static_cast<uint64_t>(unsynced));; call += CallStep()) {
    CAPTURE(static_cast<int>(unsynced), call);
    SimEnv env;
    env.CutAtCall(call);
    Run run(env);
    run.Make();
    run.GoOn();
    const bool cut = !env.PowerIsOn();
    if (!run.failure() && !cut) break;
    ++cuts;
    if (run.attempted() > run.promised()) ++torn;
    run.Abandon();
    env.Reboot({unsynced, call});
    CheckWhatIsLeft(env, run);
  }
  REQUIRE(cuts > 100 / static_cast<int>(CallStep()));
  REQUIRE(torn > 25 / static_cast<int>(CallStep()));
}

TEST_CASE("After kNoSpace at any call the store is usable when there is room again") {
  int strikes = 0;
  int given_up = 0;
  for (uint64_t nth = 1;; nth += CallStep()) {
    CAPTURE(nth);
    SimEnv env;
    env.SetCapacity(40u << 20);  // room for everything, but little enough that free space is
                                 // checked
    Run run(env);
    run.Make();
    REQUIRE_FALSE(run.failure());
    env.FailCall({.calls = SimCall::kWrite | SimCall::kSync | SimCall::kCreate,
                  .nth = nth,
                  .code = StatusCode::kNoSpace,
                  .bytes_written = nth % 3 * 10});
    const uint64_t calls = env.Calls(SimCall::kWrite | SimCall::kSync | SimCall::kCreate);
    run.GoOn();
    INFO(run.failure().value_or(Status()).ToString());
    if (run.gave_up()) {
      // RocksDB has forgotten a flush (rocksdb_resume.h). The next opening has every promised
      // write.
      ++given_up;
      run.Abandon();
      env.ClearFaults();
      env.PowerCut();
      CheckWhatIsLeft(env, run);
      continue;
    }
    REQUIRE_FALSE(run.failure());
    REQUIRE(run.promised() == run.attempted());
    const bool struck =
        env.Calls(SimCall::kWrite | SimCall::kSync | SimCall::kCreate) - calls >= nth;
    env.ClearFaults();
    env.PowerCut();
    CheckWhatIsLeft(env, run);
    if (!struck) break;
    ++strikes;
  }
  REQUIRE(strikes > 50 / static_cast<int>(CallStep()));
  CHECK(given_up <= 2);
}

TEST_CASE("A failure of any call loses no acknowledged write and invents none") {
  int strikes = 0;
  for (uint64_t nth = 1;; nth += CallStep()) {
    CAPTURE(nth);
    SimEnv env;
    Run run(env);
    run.Make();
    REQUIRE_FALSE(run.failure());
    const uint64_t calls = env.Calls(SimCall::kAny);
    env.FailCall({.nth = nth});
    run.GoOn();
    const bool struck = env.Calls(SimCall::kAny) - calls >= nth;
    if (run.failure()) {
      // When opening, RocksDB reports a table that it cannot check as damage. If a file could be
      // opened only at the second attempt, it reports invalid options.
      CAPTURE(run.failure()->ToString());
      REQUIRE((run.failure()->Is(StatusCode::kIoError) ||
               run.failure()->Is(StatusCode::kCorruption) ||
               run.failure()->Is(StatusCode::kInvalidArgument)));
    }
    run.Abandon();
    env.ClearFaults();
    if (nth % 2 == 0) env.PowerCut();
    CheckWhatIsLeft(env, run);
    if (!struck) break;
    ++strikes;
  }
  REQUIRE(strikes > 100 / static_cast<int>(CallStep()));
}

}  // namespace
}  // namespace siltfs
