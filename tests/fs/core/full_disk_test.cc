// A disk that the store and its neighbours have filled to the last byte: new data is refused,
// acknowledged data stays, and deleting still works and frees space.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "fs/check/check_store.h"
#include "fs/interface/snapshots.h"
#include "fs/interface/store_maintenance.h"
#include "fs/open/store_layout.h"
#include "store/env/files.h"
#include "store/env/sim_env.h"
#include "store/env/space_reserve.h"
#include "tests/fs/core/store_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/memory_segments.h"
#include "tests/support/test_scale.h"

namespace siltfs::testing {
namespace {

constexpr uint64_t kDiskBytes = 96u << 20;
// On a disk of this size, the reserve has a part that is only for opening the store
// (SpaceReserve::Phase).
constexpr uint64_t kDiskWithRoomToOpen = 180u << 20;
constexpr size_t kFileBytes = 300'000;
const std::string kStore = "/store";
const std::string kNeighbour = "/neighbour";

struct FullDisk {
  explicit FullDisk(uint64_t seed = 1, uint64_t disk_bytes = kDiskBytes)
      : disk(std::make_unique<SimEnv>(seed)) {
    disk->SetCapacity(disk_bytes);
    MakeStoreOptions options;
    options.path = kStore;
    ForgetSegments(*disk, kStore);
    REQUIRE_OK(MakeStore(*disk, options));
    Open();
  }
  void Open() {
    FileSystemOptions options;
    options.store = kStore;
    options.segments = SealedSegments(*disk);
    options.keep_reserve = true;
    options.commit_interval = std::chrono::hours(1);
    auto opened = FileSystem::Open(*disk, options);
    REQUIRE_OK(opened);
    fs = std::move(*opened);
  }
  void Close() {
    REQUIRE_OK(fs->Close());
    fs.reset();
  }
  // Simulates a power cut; synced data must still be there.
  void Crash(uint64_t seed) {
    fs.reset();
    disk->PowerCut({.unsynced = CrashPolicy::Unsynced::kSubset, .seed = seed});
    Open();
  }
  uint64_t Available() const {
    const auto space = disk->GetDiskSpace("/");
    REQUIRE_OK(space);
    return space->available_bytes;
  }
  uint64_t ReserveBytes() const {
    const auto stats = fs->maintenance().GetStats();
    REQUIRE_OK(stats);
    return stats->reserve_bytes;
  }
  // Writes a new file and syncs it; adds it to `synced`.
  Status TryWrite(const std::string& name, size_t size = kFileBytes) {
    Bytes content = RandomBytes(std::hash<std::string>()(name), size);
    auto created = fs->CreateFile(kRootInode, name, 0644, kCaller);
    if (!created.ok()) return std::move(created).status();
    fs->Forget(created->inode, 1);
    Status written;
    constexpr size_t kPiece = 128u << 10;
    for (size_t at = 0; at < size && written.ok(); at += kPiece) {
      written =
          fs->Write(created->inode, at, ByteView(content).subspan(at, std::min(kPiece, size - at)));
    }
    if (written.ok()) written = fs->Fsync(created->inode);
    fs->ReleaseFile(created->inode);
    if (written.ok()) {
      synced[name] = std::move(content);
    } else if (written.Is(StatusCode::kNoSpace)) {
      REQUIRE_OK(fs->Unlink(kRootInode, name));
    }
    return written;
  }
  // Writes files until the store accepts no more.
  void Fill(const std::string& prefix) {
    for (int i = 0;; ++i) {
      const Status written = TryWrite(fmt::format("{} {}", prefix, i));
      if (written.ok()) continue;
      REQUIRE_CODE(written, kNoSpace);
      return;
    }
  }
  // Fills the disk so that not a byte is free.
  void FillByNeighbour() {
    auto file = disk->OpenFile(kNeighbour, {.mode = OpenMode::kCreate});
    if (file.status().Is(StatusCode::kAlreadyExists))
      file = disk->OpenFile(kNeighbour, {.mode = OpenMode::kReadWrite});
    REQUIRE_OK(file);
    // The store's threads may free or take space at any time. So repeat this until no space is
    // free.
    bool full = false;
    for (int i = 0; i < 1000 && !full; ++i) {
      (*file)->Write(*(*file)->Size(), Bytes(Available() + 4096, 1)).IgnoreError("it must fail");
      full = Available() == 0;
    }
    REQUIRE(full);
  }
  void Delete(const std::string& name) {
    REQUIRE_OK(fs->Unlink(kRootInode, name));
    synced.erase(name);
  }
  void RequireSynced() const {
    for (const auto& [name, content] : synced) {
      INFO(name);
      const auto inode = Resolve(*fs, name);
      REQUIRE_OK(inode);
      const auto read = ReadFile(*fs, *inode);
      REQUIRE_OK(read);
      REQUIRE(*read == content);
    }
  }
  void RequireSound() const {
    CheckOptions options;
    options.store = kStore;
    options.segments = SealedSegments(*disk);
    options.data = true;
    std::vector<std::string> findings;
    options.on_finding = [&findings](const Finding& finding) { findings.push_back(finding.code); };
    REQUIRE_OK(CheckStore(*disk, options));
    REQUIRE(findings == std::vector<std::string>{});
  }

  std::unique_ptr<SimEnv> disk;
  std::unique_ptr<FileSystem> fs;
  std::map<std::string, Bytes> synced;
};

struct FilledDisk : FullDisk {
  explicit FilledDisk(uint64_t disk_bytes = kDiskBytes) : FullDisk(1, disk_bytes) {
    Fill("file");
    FillByNeighbour();
  }
};

}  // namespace

TEST_CASE("most of a disk can be filled without using the reserve") {
  FullDisk at;
  const uint64_t reserve = at.ReserveBytes();
  CHECK(reserve > kDiskBytes / 20);
  at.Fill("file");
  CHECK(at.ReserveBytes() == reserve);
  CHECK(at.fs->maintenance().GetStats()->stored_bytes > kDiskBytes / 4 * 3);
  CHECK(at.fs->GetSpace()->available_bytes == 0);
  CHECK(at.fs->NearlyFull());
  at.RequireSynced();
  at.Close();
  at.RequireSound();
}

TEST_CASE("on a full disk new names and data are refused, and leave nothing behind") {
  FilledDisk at;
  FileSystem& fs = *at.fs;
  const InodeNumber file = *Resolve(fs, "file 0");
  const auto names = ListNames(fs, kRootInode);
  CHECK(fs.GetSpace()->available_bytes == 0);
  REQUIRE_CODE(fs.Write(file, 0, Bytes(10, 1)), kNoSpace);
  REQUIRE_CODE(fs.Write(file, kFileBytes, Bytes(10, 1)), kNoSpace);
  REQUIRE_CODE(fs.CreateFile(kRootInode, "new", 0644, kCaller), kNoSpace);
  REQUIRE_CODE(fs.MakeNode(kRootInode, "new", 0100644, 0, kCaller), kNoSpace);
  REQUIRE_CODE(fs.MakeDirectory(kRootInode, "new", 0755, kCaller), kNoSpace);
  REQUIRE_CODE(fs.MakeSymlink(kRootInode, "new", "to", kCaller), kNoSpace);
  REQUIRE_CODE(fs.MakeTemporaryFile(kRootInode, 0644, kCaller), kNoSpace);
  REQUIRE_CODE(fs.Link(file, kRootInode, "new"), kNoSpace);
  REQUIRE_CODE(fs.SetXattr(file, "user.a", "b", XattrMode::kSet), kNoSpace);
  REQUIRE_CODE(fs.CopyRange(file, 0, *Resolve(fs, "file 1"), 0, 1000), kNoSpace);
  REQUIRE_CODE(fs.Allocate(file, AllocateMode::kReserve, 0, kFileBytes + 1, false), kNoSpace);
  CHECK(ListNames(fs, kRootInode) == names);
  at.RequireSynced();
}

TEST_CASE("on a full disk files are renamed, truncated and deleted, and commits are durable") {
  FilledDisk at;
  FileSystem& fs = *at.fs;
  REQUIRE_OK(fs.Rename(kRootInode, "file 0", kRootInode, "renamed", RenameMode::kReplace));
  at.synced["renamed"] = at.synced["file 0"];
  at.synced.erase("file 0");
  AttributeChange mode;
  mode.mode = 0600;
  REQUIRE_OK(fs.SetAttributes(*Resolve(fs, "file 1"), mode));
  AttributeChange size;
  size.size = 123'456;
  REQUIRE_OK(fs.SetAttributes(*Resolve(fs, "file 2"), size));
  at.synced["file 2"].resize(123'456);
  at.Delete("file 3");
  REQUIRE_OK(fs.SyncAll());
  at.RequireSynced();
  at.Crash(7);  // the disk stays as full as before
  at.RequireSynced();
  CHECK(at.fs->GetAttributes(*Resolve(*at.fs, "file 1"))->mode % 01000 == 0600);
  REQUIRE_CODE(Resolve(*at.fs, "file 3"), kNotFound);
  at.Close();
  at.RequireSound();
}

TEST_CASE("space of files deleted from a full disk can be collected and reused at once") {
  FilledDisk at;
  const auto reserve = SpaceReserve::For(kDiskBytes);
  const uint64_t whole = reserve.pieces * reserve.piece_bytes;
  for (int i = 0; i < 120; ++i) at.Delete(fmt::format("file {}", i * 2));
  REQUIRE_OK(at.fs->SyncAll());
  const auto collected = at.fs->maintenance().CollectGarbage(false);
  REQUIRE_OK(collected);
  CHECK(collected->bytes_freed > 30'000'000);
  // The reserve gets the freed space first, then writers get space.
  CHECK(at.ReserveBytes() == whole);
  CHECK(at.fs->GetSpace()->available_bytes > 10'000'000);
  at.RequireSynced();
  REQUIRE_OK(at.TryWrite("more"));
  at.Fill("again");
  at.FillByNeighbour();
  at.RequireSynced();
  at.Close();
  at.RequireSound();
  at.Open();
  at.RequireSynced();
}

TEST_CASE("a small disk that is full can be emptied, unmounted and used again") {
  const uint64_t disk_bytes = GENERATE(40u << 20, 48u << 20, 64u << 20);
  CAPTURE(disk_bytes);
  FullDisk at(1, disk_bytes);
  at.Fill("file");
  if (GENERATE(false, true)) at.FillByNeighbour();
  at.RequireSynced();
  while (!at.synced.empty()) at.Delete(std::string(at.synced.begin()->first));
  REQUIRE_OK(at.fs->SyncAll());
  REQUIRE_OK(at.fs->maintenance().CollectGarbage(false));
  CHECK(at.fs->maintenance().GetStats()->stored_bytes < disk_bytes / 10);
  REQUIRE_OK(at.TryWrite("more"));
  at.Close();
  at.RequireSound();
  at.Open();
  at.RequireSynced();
  at.Fill("again");
  at.RequireSynced();
  at.Close();
  at.RequireSound();
}

TEST_CASE("a little garbage is collected on a disk without room for anything new") {
  FullDisk at;
  // Every segment gets a small file, which is deleted below. With room on the disk, about 3 % of
  // garbage is not worth collecting.
  int last = 0;
  for (;; ++last) {
    const Status written =
        at.TryWrite(fmt::format("file {}", last), last % 5 == 0 ? 40'000 : kFileBytes);
    if (written.Is(StatusCode::kNoSpace)) break;
    REQUIRE_OK(written);
  }
  at.FillByNeighbour();
  for (int i = 0; i < last; i += 5) at.Delete(fmt::format("file {}", i));
  REQUIRE_OK(at.fs->SyncAll());
  const auto collected = at.fs->maintenance().CollectGarbage(false);
  REQUIRE_OK(collected);
  CHECK(collected->bytes_freed > 900'000);
  at.RequireSynced();
}

TEST_CASE("a rollback that may not fit on the disk is refused, and changes nothing") {
  FullDisk at;
  REQUIRE_OK(at.fs->snapshots().Create("before"));
  constexpr int kNames = 4000;
  const std::string target(2000, 't');
  for (int i = 0; i < kNames; ++i) {
    const auto made = at.fs->MakeSymlink(kRootInode, fmt::format("link {}", i), target, kCaller);
    REQUIRE_OK(made);
    at.fs->Forget(made->inode, 1);
  }
  REQUIRE_OK(at.fs->SyncAll());
  // There is room for other changes, but less than for three times the targets of all links.
  constexpr uint64_t kRoom = uint64_t{8} << 20;
  const uint64_t before = at.fs->GetSpace()->available_bytes;
  REQUIRE(before > 2 * kRoom);
  auto neighbour = at.disk->OpenFile(kNeighbour, {.mode = OpenMode::kCreate});
  REQUIRE_OK(neighbour);
  REQUIRE_OK((*neighbour)->Write(0, Bytes(before - kRoom, 1)));
  const auto refused = at.fs->snapshots().RollBack("before", "kept");
  REQUIRE_CODE(refused, kNoSpace);
  CHECK(refused.status().cause().find("deleting other snapshots") != std::string_view::npos);
  CHECK(at.fs->snapshots().List().size() == 1);
  CHECK(ListNames(*at.fs, kRootInode).size() == kNames);
  REQUIRE_OK(at.TryWrite("small", 1000));

  neighbour->reset();  // an open file keeps its space
  REQUIRE_OK(at.disk->RemoveFile(kNeighbour));
  REQUIRE_OK(at.fs->snapshots().RollBack("before", "kept"));
  CHECK(ListNames(*at.fs, kRootInode).empty());
  at.Close();
  at.RequireSound();
}

TEST_CASE("wholly dead segments are removed even if nothing can be copied") {
  FullDisk at;
  for (int i = 0; i < 60; ++i) REQUIRE_OK(at.TryWrite(fmt::format("file {}", i)));
  for (int i = 0; i < 30; ++i) at.Delete(fmt::format("file {}", i));
  for (int i = 30; i < 60; i += 3) at.Delete(fmt::format("file {}", i));
  REQUIRE_OK(at.fs->SyncAll());
  const uint64_t stored = at.fs->maintenance().GetStats()->stored_bytes;
  at.disk->FailCall({.calls = SimCall::kCreate | SimCall::kWrite,
                     .code = StatusCode::kNoSpace,
                     .sticky = true,
                     .path_part = ".seg"});
  REQUIRE_CODE(at.fs->maintenance().CollectGarbage(false), kNoSpace);
  const uint64_t left = at.fs->maintenance().GetStats()->stored_bytes;
  CHECK(left + 20 * kFileBytes < stored);
  CHECK(left > 20 * kFileBytes);
  at.disk->ClearFaults();
  REQUIRE_OK(at.fs->maintenance().CollectGarbage(false));
  CHECK(at.fs->maintenance().GetStats()->stored_bytes < left);
  at.RequireSynced();
  at.Close();
  at.RequireSound();
}

TEST_CASE("a store that was closed while there was room is mounted on a full disk") {
  FullDisk at;
  for (int i = 0; i < 80; ++i) REQUIRE_OK(at.TryWrite(fmt::format("file {}", i)));
  at.Close();
  CHECK(*SpaceReserve::BytesIn(*at.disk, ReservePath(kStore)) == 256u << 10);
  at.FillByNeighbour();
  at.Open();
  at.RequireSynced();
  REQUIRE_CODE(at.TryWrite("new"), kNoSpace);
  // The only room for copies is the space of segments whose chunks are all dead.
  for (int i = 0; i < 70; ++i) at.Delete(fmt::format("file {}", i));
  REQUIRE_OK(at.fs->SyncAll());
  REQUIRE_OK(at.fs->maintenance().CollectGarbage(false));
  REQUIRE_OK(at.TryWrite("new", 1000));
  at.RequireSynced();
  at.Close();
  at.RequireSound();
}

TEST_CASE("a power cut at any time on a full disk keeps synced files") {
  for (uint64_t seed = 1; seed <= std::max<uint64_t>(2, Share(8)); ++seed) {
    INFO("seed " << seed);
    FullDisk at(seed, kDiskWithRoomToOpen);
    at.Fill("file");
    if (seed % 2 == 0) at.FillByNeighbour();
    for (int i = 0; i < 100; ++i) at.Delete(fmt::format("file {}", i * 2 + 1));
    REQUIRE_OK(at.fs->SyncAll());
    at.disk->CutAtCall(seed * seed * 7);
    at.fs->maintenance().CollectGarbage(false).status().IgnoreError(
        "the power fails during it or after it");
    at.fs.reset();
    at.disk->Reboot({.unsynced = CrashPolicy::Unsynced::kSubset, .seed = seed});
    at.Open();
    at.RequireSynced();
    const auto collected = at.fs->maintenance().CollectGarbage(false);
    if (seed % 2 == 0 && collected.status().Is(StatusCode::kNoSpace)) {
      // The interrupted collection had used up its share of the reserve, and the neighbour left no
      // space.
      REQUIRE_OK(at.disk->RemoveFile(kNeighbour));
      REQUIRE_OK(at.fs->maintenance().CollectGarbage(false));
    } else {
      REQUIRE_OK(collected);
    }
    at.RequireSynced();
    REQUIRE_OK(at.TryWrite("new"));
    at.Close();
    at.RequireSound();
  }
}

TEST_CASE("a store with a used-up reserve can be opened after a power cut") {
  FilledDisk at(kDiskWithRoomToOpen);
  // Renaming uses the reserve up, except for the part that is only for opening the store. The
  // neighbour takes all other space.
  constexpr int kNames = 100;
  Status synced;
  int rounds = 0;
  for (; synced.ok() && rounds < 1000; ++rounds) {
    const auto name = [&](int i, int round) {
      return round == 0 ? fmt::format("file {}", i)
                        : fmt::format("{} {} {}", i, round, std::string(230, 'n'));
    };
    for (int i = 0; i < kNames; ++i) {
      REQUIRE_OK(at.fs->Rename(kRootInode, name(i, rounds), kRootInode, name(i, rounds + 1),
                               RenameMode::kReplace));
      auto content = at.synced.extract(name(i, rounds));
      content.key() = name(i, rounds + 1);
      at.synced.insert(std::move(content));
    }
    synced = at.fs->SyncAll();
    at.FillByNeighbour();
  }
  REQUIRE_CODE(synced, kNoSpace);
  INFO(rounds);
  CHECK(rounds > 10);
  CHECK(at.ReserveBytes() > 0);
  at.Crash(5);
  // The names are those of the last round, which was not acknowledged, or those of the round
  // before.
  const auto names = ListNames(*at.fs, kRootInode);
  CHECK(names.size() == at.synced.size());
  REQUIRE_OK(at.fs->Unlink(kRootInode, names.back()));
  at.Close();
  at.RequireSound();
}

TEST_CASE("a disk that fails is not taken for a full one") {
  FullDisk at;
  REQUIRE_OK(at.TryWrite("file"));
  const uint64_t reserve = at.ReserveBytes();
  at.disk->FailCall({.calls = SimCall::kWrite, .code = StatusCode::kIoError, .path_part = ".seg"});
  const Status failed = at.TryWrite("more");
  REQUIRE_CODE(failed, kReadOnly);
  CHECK(failed.cause().find("a fault was injected") != std::string_view::npos);
  CHECK(at.ReserveBytes() == reserve);
  at.RequireSynced();
}

TEST_CASE("data accepted before others filled the disk is kept, even without a reserve") {
  FullDisk at;
  REQUIRE_OK(at.TryWrite("file"));
  auto created = at.fs->CreateFile(kRootInode, "waiting", 0644, kCaller);
  REQUIRE_OK(created);
  const Bytes content = RandomBytes(99, kFileBytes);
  REQUIRE_OK(at.fs->Write(created->inode, 0, content));
  // Another program takes the space of the reserve.
  const auto pieces = at.disk->ListDirectory(ReservePath(kStore));
  REQUIRE_OK(pieces);
  for (const DirectoryEntry& piece : *pieces)
    REQUIRE_OK(at.disk->RemoveFile(JoinPath(ReservePath(kStore), piece.name)));
  at.FillByNeighbour();
  REQUIRE_CODE(at.fs->Fsync(created->inode), kNoSpace);
  REQUIRE_CODE(at.fs->Fsync(created->inode), kNoSpace);
  at.RequireSynced();
  const auto read = ReadFile(*at.fs, created->inode);
  REQUIRE_OK(read);
  CHECK(*read == content);
  REQUIRE_OK(at.disk->RemoveFile(kNeighbour));
  REQUIRE_OK(at.fs->Fsync(created->inode));
  at.synced["waiting"] = content;
  at.fs->ReleaseFile(created->inode);
  at.fs->Forget(created->inode, 1);
  at.Crash(3);
  at.RequireSynced();
}

}  // namespace siltfs::testing
