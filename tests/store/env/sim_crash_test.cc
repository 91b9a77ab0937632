// The crash model of sim_env.h, rule by rule.
#include <algorithm>
#include <set>

#include "store/base/random.h"
#include "store/env/files.h"
#include "store/env/sim_env.h"
#include "tests/support/catch.h"

namespace siltfs {
namespace {

using Unsynced = CrashPolicy::Unsynced;

std::unique_ptr<File> Open(Env& env, const std::string& path, OpenMode mode) {
  auto file = env.OpenFile(path, {.mode = mode});
  REQUIRE_OK(file);
  return std::move(*file);
}

// A file with durable content and name.
std::unique_ptr<File> DurableFile(Env& env, const std::string& path, std::string_view text) {
  auto file = Open(env, path, OpenMode::kCreate);
  REQUIRE_OK(file->Write(0, AsBytes(text)));
  REQUIRE_OK(file->Sync());
  REQUIRE_OK(env.SyncDirectory(path.substr(0, std::max<size_t>(1, path.rfind('/')))));
  return file;
}

std::string Contents(Env& env, const std::string& path) {
  auto text = ReadWholeFile(env, path, 1 << 24);
  REQUIRE_OK(text);
  return *text;
}

bool Exists(Env& env, const std::string& path) {
  auto info = env.GetFileInfo(path);
  if (!info.ok()) REQUIRE_CODE(info, kNotFound);
  return info.ok();
}

TEST_CASE("C1: synced content survives, later writes do not") {
  SimEnv env;
  auto file = DurableFile(env, "/f", "synced");
  REQUIRE_OK(file->Write(0, AsBytes("SYNC")));
  REQUIRE_OK(file->Write(6, AsBytes(" not")));
  REQUIRE(Contents(env, "/f") == "SYNCed not");
  env.PowerCut();
  REQUIRE(Contents(env, "/f") == "synced");
}

TEST_CASE("C1: a truncation survives only if it was synced") {
  SimEnv env;
  auto file = DurableFile(env, "/f", std::string(10'000, 'a'));
  REQUIRE_OK(file->Truncate(3));
  env.PowerCut();
  REQUIRE(Contents(env, "/f") == std::string(10'000, 'a'));
  file = Open(env, "/f", OpenMode::kReadWrite);
  REQUIRE_OK(file->Truncate(3));
  REQUIRE_OK(file->Truncate(5'000));
  REQUIRE_OK(file->Sync());
  env.PowerCut();
  REQUIRE(Contents(env, "/f") == "aaa" + std::string(4'997, '\0'));
}

TEST_CASE("C1: random writes, truncations, syncs and cuts agree with a plain string") {
  SimEnv env;
  auto file = DurableFile(env, "/f", "");
  std::string current, durable;
  Random random(11);
  for (int step = 0; step < 3'000; ++step) {
    const uint64_t dice = random.Below(100);
    if (dice < 70) {
      const uint64_t offset = random.Below(40'000);
      Bytes data(random.Below(6'000));
      random.Fill(data);
      REQUIRE_OK(file->Write(offset, data));
      if (!data.empty() && current.size() < offset + data.size())
        current.resize(offset + data.size());
      std::copy(data.begin(), data.end(), current.begin() + static_cast<std::ptrdiff_t>(offset));
    } else if (dice < 82) {
      const uint64_t size = random.Below(46'000);
      REQUIRE_OK(file->Truncate(size));
      current.resize(size);
    } else if (dice < 95) {
      REQUIRE_OK(file->Sync());
      durable = current;
    } else {
      env.PowerCut();
      current = durable;
      file = Open(env, "/f", OpenMode::kReadWrite);
    }
    if (step % 7 == 0) REQUIRE(Contents(env, "/f") == current);
  }
}

TEST_CASE("C2: a file in an unsynced directory is gone, even with synced content") {
  SimEnv env;
  auto file = Open(env, "/f", OpenMode::kCreate);
  REQUIRE_OK(file->Write(0, AsBytes("text")));
  REQUIRE_OK(file->Sync());
  env.PowerCut();
  REQUIRE_FALSE(Exists(env, "/f"));
}

TEST_CASE("C2: a file in a synced directory exists, empty if its content was not synced") {
  SimEnv env;
  auto file = Open(env, "/f", OpenMode::kCreate);
  REQUIRE_OK(file->Write(0, AsBytes("text")));
  REQUIRE_OK(env.SyncDirectory("/"));
  env.PowerCut();
  REQUIRE(Contents(env, "/f").empty());
}

TEST_CASE("C2: a removed file is back with its synced content unless the directory was synced") {
  SimEnv env;
  auto file = DurableFile(env, "/f", "text");
  REQUIRE_OK(file->Write(0, AsBytes("TEXT")));
  REQUIRE_OK(env.RemoveFile("/f"));
  REQUIRE_FALSE(Exists(env, "/f"));
  env.PowerCut();
  REQUIRE(Contents(env, "/f") == "text");
  REQUIRE_OK(env.RemoveFile("/f"));
  REQUIRE_OK(env.SyncDirectory("/"));
  env.PowerCut();
  REQUIRE_FALSE(Exists(env, "/f"));
}

TEST_CASE("C2: syncing a directory does not sync its parent") {
  SimEnv env;
  REQUIRE_OK(env.CreateDirectory("/d"));
  DurableFile(env, "/d/f", "text");
  env.PowerCut();
  REQUIRE_FALSE(Exists(env, "/d"));
  REQUIRE_OK(env.CreateDirectory("/d"));
  DurableFile(env, "/d/f", "text");
  REQUIRE_OK(env.SyncDirectory("/"));
  env.PowerCut();
  REQUIRE(Contents(env, "/d/f") == "text");
}

TEST_CASE("C2: a removed directory is back with its durable contents") {
  SimEnv env;
  REQUIRE_OK(env.CreateDirectory("/d"));
  REQUIRE_OK(env.SyncDirectory("/"));
  DurableFile(env, "/d/f", "text");
  REQUIRE_OK(env.RemoveFile("/d/f"));
  REQUIRE_OK(env.RemoveDirectory("/d"));
  env.PowerCut();
  REQUIRE(Contents(env, "/d/f") == "text");
}

TEST_CASE("C3: a rename is undone as a whole unless the directory was synced") {
  SimEnv env;
  DurableFile(env, "/old", "old");
  DurableFile(env, "/new", "new");
  REQUIRE_OK(env.Rename("/new", "/old"));
  env.PowerCut();
  REQUIRE(Contents(env, "/old") == "old");
  REQUIRE(Contents(env, "/new") == "new");
  REQUIRE_OK(env.Rename("/new", "/old"));
  REQUIRE_OK(env.SyncDirectory("/"));
  env.PowerCut();
  REQUIRE(Contents(env, "/old") == "new");
  REQUIRE_FALSE(Exists(env, "/new"));
}

TEST_CASE("C3: a rename between directories is durable when both were synced") {
  SimEnv env;
  REQUIRE_OK(env.CreateDirectory("/a"));
  REQUIRE_OK(env.CreateDirectory("/b"));
  REQUIRE_OK(env.SyncDirectory("/"));
  DurableFile(env, "/a/f", "text");
  const std::string synced_alone = GENERATE("/a", "/b");
  REQUIRE_OK(env.Rename("/a/f", "/b/g"));
  REQUIRE_OK(env.SyncDirectory(synced_alone));
  env.PowerCut();
  REQUIRE(Contents(env, "/a/f") == "text");
  REQUIRE_FALSE(Exists(env, "/b/g"));
  REQUIRE_OK(env.Rename("/a/f", "/b/g"));
  REQUIRE_OK(env.SyncDirectory("/a"));
  REQUIRE_OK(env.SyncDirectory("/b"));
  env.PowerCut();
  REQUIRE(Contents(env, "/b/g") == "text");
  REQUIRE_FALSE(Exists(env, "/a/f"));
}

TEST_CASE("C3: a new file under the old name of a rename is durable only after the rename") {
  SimEnv env;
  REQUIRE_OK(env.CreateDirectory("/a"));
  REQUIRE_OK(env.CreateDirectory("/b"));
  REQUIRE_OK(env.SyncDirectory("/"));
  DurableFile(env, "/a/f", "first");
  REQUIRE_OK(env.Rename("/a/f", "/b/g"));
  DurableFile(env, "/a/f", "second");  // syncs /a, not /b
  env.PowerCut();
  REQUIRE(Contents(env, "/a/f") == "first");  // the rename is undone
  REQUIRE_FALSE(Exists(env, "/b/g"));
}

TEST_CASE("C4: open files and locks are dead permanently, and nothing is locked") {
  SimEnv env;
  auto file = DurableFile(env, "/f", "text");
  auto lock = env.LockFile("/lock");
  REQUIRE_OK(lock);
  REQUIRE_OK(env.SyncDirectory("/"));
  env.PowerCut();
  Bytes out(1);
  REQUIRE_CODE(file->Read(0, out), kIoError);
  REQUIRE_CODE(file->Write(0, AsBytes("TEXT")), kIoError);
  REQUIRE_CODE(file->Truncate(0), kIoError);
  REQUIRE_CODE(file->Sync(), kIoError);
  REQUIRE_CODE(file->Size(), kIoError);
  REQUIRE_CODE(file->Close(), kIoError);
  REQUIRE(Contents(env, "/f") == "text");
  auto relocked = env.LockFile("/lock");
  REQUIRE_OK(relocked);
  lock->reset();  // releasing the lock from before the cut keeps the new lock
  REQUIRE_CODE(env.LockFile("/lock"), kInUse);
}

TEST_CASE("C4: a dead file's failed sync does not harm the live one") {
  SimEnv env;
  auto dead = DurableFile(env, "/f", "text");
  env.PowerCut();
  auto alive = Open(env, "/f", OpenMode::kReadWrite);
  REQUIRE_OK(alive->Write(0, AsBytes("TEXT")));
  REQUIRE_CODE(dead->Sync(), kIoError);
  REQUIRE_OK(alive->Sync());
  env.PowerCut();
  REQUIRE(Contents(env, "/f") == "TEXT");
}

TEST_CASE("C5: a sync after a failed one succeeds, but the bytes are lost") {
  SimEnv env;
  auto file = DurableFile(env, "/f", std::string(20'000, 'a'));
  REQUIRE_OK(file->Write(0, AsBytes(std::string(4'096, 'b'))));
  env.FailCall({.calls = SimCall::kSync});
  REQUIRE_CODE(file->Sync(), kIoError);
  REQUIRE_OK(file->Write(8'192, AsBytes(std::string(4'096, 'c'))));
  REQUIRE_OK(file->Sync());
  REQUIRE(Contents(env, "/f").substr(0, 4'096) ==
          std::string(4'096, 'b'));  // readers still see the new bytes
  const Unsynced unsynced = GENERATE(Unsynced::kDrop, Unsynced::kKeep, Unsynced::kSubset);
  env.PowerCut({unsynced, 1});
  REQUIRE(Contents(env, "/f") ==
          std::string(8'192, 'a') + std::string(4'096, 'c') + std::string(7'712, 'a'));
}

TEST_CASE("C5: bytes written again after a failed sync are synced by the next one") {
  SimEnv env;
  auto file = DurableFile(env, "/f", "aaaa");
  REQUIRE_OK(file->Write(0, AsBytes("bbbb")));
  env.FailCall({.calls = SimCall::kSync});
  REQUIRE_CODE(file->Sync(), kIoError);
  REQUIRE_OK(file->Write(0, AsBytes("bbbb")));
  REQUIRE_OK(file->Sync());
  env.PowerCut();
  REQUIRE(Contents(env, "/f") == "bbbb");
}

TEST_CASE("C6: from the chosen call on every call fails until the reboot") {
  SimEnv env;
  auto file = DurableFile(env, "/f", "text");
  env.CutAtCall(3);
  REQUIRE_OK(file->Write(0, AsBytes("T")));
  REQUIRE_OK(env.GetFileInfo("/f"));  // changes nothing, so it does not count
  REQUIRE_OK(env.ListDirectory("/"));
  REQUIRE_OK(file->Write(1, AsBytes("E")));
  REQUIRE(env.PowerIsOn());
  REQUIRE_CODE(file->Sync(), kIoError);
  REQUIRE_FALSE(env.PowerIsOn());
  Bytes out(1);
  REQUIRE_CODE(file->Read(0, out), kIoError);
  REQUIRE_CODE(env.OpenFile("/f", {}), kIoError);
  REQUIRE_CODE(env.CreateDirectory("/d"), kIoError);
  REQUIRE_CODE(env.ListDirectory("/"), kIoError);
  REQUIRE_CODE(env.RemoveFile("/f"), kIoError);
  REQUIRE_CODE(env.Rename("/f", "/g"), kIoError);
  REQUIRE_CODE(env.SyncDirectory("/"), kIoError);
  REQUIRE_CODE(env.GetFileInfo("/f"), kIoError);
  REQUIRE_CODE(env.GetDiskSpace("/f"), kIoError);
  REQUIRE_CODE(env.LockFile("/lock"), kIoError);
  REQUIRE_CODE(env.FillRandom(out), kIoError);
  env.Reboot();
  REQUIRE(Contents(env, "/f") == "text");
  REQUIRE_FALSE(Exists(env, "/d"));
}

TEST_CASE("C6: the call at the cut may have had its effect") {
  SimEnv env;
  DurableFile(env, "/f", "text");
  env.CutAtCall(1);
  REQUIRE_CODE(env.RemoveFile("/f"), kIoError);
  const Unsynced unsynced = GENERATE(Unsynced::kDrop, Unsynced::kKeep);
  env.Reboot({unsynced, 0});
  REQUIRE(Exists(env, "/f") == (unsynced == Unsynced::kDrop));
}

TEST_CASE("C6: a directory sync at the cut makes nothing durable") {
  SimEnv env;
  auto file = Open(env, "/f", OpenMode::kCreate);
  env.CutAtCall(1);
  REQUIRE_CODE(env.SyncDirectory("/"), kIoError);
  env.Reboot();
  REQUIRE_FALSE(Exists(env, "/f"));
}

TEST_CASE("a reboot disarms a cut that has not struck") {
  SimEnv env;
  env.CutAtCall(1);
  env.Reboot();
  REQUIRE_OK(env.CreateDirectory("/d"));
}

TEST_CASE("under kKeep everything survives") {
  SimEnv env;
  auto file = DurableFile(env, "/f", "text");
  REQUIRE_OK(file->Write(4, AsBytes(" and more")));
  REQUIRE_OK(env.CreateDirectory("/d"));
  REQUIRE_OK(env.Rename("/f", "/d/g"));
  env.PowerCut({Unsynced::kKeep, 0});
  REQUIRE(Contents(env, "/d/g") == "text and more");
  REQUIRE_FALSE(Exists(env, "/f"));
}

TEST_CASE("under kSubset each 512-byte sector is old or new, and every mixture occurs") {
  std::set<std::string> seen;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SimEnv env;
    auto file = DurableFile(env, "/f", std::string(2'048, 'a'));
    // Not aligned: the first sector is new only from byte 100 on.
    REQUIRE_OK(file->Write(100, AsBytes(std::string(1'436, 'b'))));
    env.PowerCut({Unsynced::kSubset, seed});
    const std::string text = Contents(env, "/f");
    REQUIRE(text.size() == 2'048);
    REQUIRE(text.substr(0, 100) == std::string(100, 'a'));
    std::string mixture;
    for (auto [from, to] : {std::pair{100, 512}, {512, 1'024}, {1'024, 1'536}}) {
      REQUIRE(std::count(text.begin() + from, text.begin() + to, text[static_cast<size_t>(from)]) ==
              to - from);
      mixture += text[static_cast<size_t>(from)];
    }
    REQUIRE(text.substr(1'536) == std::string(512, 'a'));
    seen.insert(mixture);
  }
  REQUIRE(seen.size() == 8);
}

TEST_CASE("under kSubset a later write may survive without an earlier one, under kPrefix never") {
  const Unsynced unsynced = GENERATE(Unsynced::kSubset, Unsynced::kPrefix);
  std::set<std::string> seen;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SimEnv env;
    auto file = DurableFile(env, "/f", "..");
    REQUIRE_OK(file->Write(0, AsBytes("1")));
    REQUIRE_OK(file->Write(1, AsBytes("2")));
    env.PowerCut({unsynced, seed});
    seen.insert(Contents(env, "/f"));
  }
  std::set<std::string> expected = {"..", "1.", "12"};
  if (unsynced == Unsynced::kSubset) expected.insert(".2");
  REQUIRE(seen == expected);
}

TEST_CASE("under kPrefix and kSubset a prefix of the name changes survives") {
  const Unsynced unsynced = GENERATE(Unsynced::kSubset, Unsynced::kPrefix);
  std::set<int> seen;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SimEnv env;
    for (int i = 0; i < 5; ++i) REQUIRE_OK(env.CreateDirectory("/" + std::to_string(i)));
    env.PowerCut({unsynced, seed});
    int there = 0;
    while (there < 5 && Exists(env, "/" + std::to_string(there))) ++there;
    for (int i = there; i < 5; ++i) REQUIRE_FALSE(Exists(env, "/" + std::to_string(i)));
    seen.insert(there);
  }
  REQUIRE(seen == std::set<int>{0, 1, 2, 3, 4, 5});
}

TEST_CASE("an unsynced append may leave the new size with zeros, a part, or nothing") {
  std::set<size_t> sizes;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SimEnv env;
    auto file = DurableFile(env, "/f", "");
    REQUIRE_OK(file->Write(0, AsBytes(std::string(1'024, 'a'))));
    env.PowerCut({Unsynced::kSubset, seed});
    const std::string text = Contents(env, "/f");
    for (char c : text) REQUIRE((c == 'a' || c == '\0'));
    sizes.insert(text.size());
  }
  REQUIRE(sizes == std::set<size_t>{0, 512, 1'024});
}

TEST_CASE("the same seed gives the same crash") {
  auto crash = [](uint64_t seed) {
    SimEnv env;
    auto file = DurableFile(env, "/f", "");
    for (uint64_t i = 0; i < 50; ++i)
      REQUIRE_OK(file->Write(i * 700, Bytes(2'000, static_cast<uint8_t>(i + 1))));
    env.PowerCut({Unsynced::kSubset, seed});
    return Contents(env, "/f");
  };
  REQUIRE(crash(3) == crash(3));
  REQUIRE(crash(3) != crash(4));
}

TEST_CASE("a second cut loses nothing more") {
  SimEnv env;
  auto file = DurableFile(env, "/f", "text");
  REQUIRE_OK(file->Write(0, AsBytes(std::string(5'000, 'x'))));
  env.PowerCut({Unsynced::kSubset, 5});
  const std::string text = Contents(env, "/f");
  env.PowerCut();
  REQUIRE(Contents(env, "/f") == text);
}

}  // namespace
}  // namespace siltfs
