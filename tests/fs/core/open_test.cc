// Opening stores in every state: in use, damaged, older than they should be, left by a crash,
// without an index, read-only.
#include <fmt/format.h>

#include <filesystem>

#include "fs/open/store_index.h"
#include "fs/open/store_layout.h"
#include "fs/open/store_stats.h"
#include "store/base/checksum.h"
#include "store/base/coding.h"
#include "store/base/random.h"
#include "store/env/posix_env.h"
#include "store/segment/segment_files.h"
#include "store/superblock/superblock.h"
#include "tests/fs/core/directory_tree.h"
#include "tests/fs/core/recount_store.h"
#include "tests/fs/core/store_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/memory_segments.h"

namespace siltfs::testing {
namespace {

// A copy of metadata and superblocks, to be restored later.
class OldCopy {
 public:
  explicit OldCopy(const StoreFixture& store)
      : path_(store.path()), metadata_(ReadTree(MetadataPath(path_))) {
    for (int copy = 0; copy < 2; ++copy)
      superblocks_.push_back(ReadText(SuperblockPath(path_, copy)));
  }
  void RestoreMetadata() const { WriteTree(MetadataPath(path_), metadata_); }
  void RestoreSuperblocks() const {
    for (int copy = 0; copy < 2; ++copy)
      WriteText(SuperblockPath(path_, copy), superblocks_[static_cast<size_t>(copy)]);
  }

 private:
  std::string path_;
  DirectoryTree metadata_;
  std::vector<std::string> superblocks_;
};

// Writes a file and commits it.
InodeNumber WriteAndSync(StoreFixture& store, const std::string& name, uint64_t seed,
                         size_t size = 100'000) {
  const InodeNumber inode = WriteFile(store.fs(), name, RandomBytes(seed, size));
  REQUIRE_OK(store.fs().SyncAll());
  return inode;
}

void RequireFile(StoreFixture& store, const std::string& name, uint64_t seed,
                 size_t size = 100'000) {
  INFO(name);
  auto inode = Resolve(store.fs(), name);
  REQUIRE_OK(inode);
  auto bytes = ReadFile(store.fs(), *inode);
  REQUIRE_OK(bytes);
  REQUIRE((*bytes == RandomBytes(seed, size)));
}

// All files of the store.
DirectoryTree Contents(const StoreFixture& store) { return ReadTree(store.path()); }

// Whether this is a path of RocksDB's log or manifest.
bool MetadataLog(const std::string& name) {
  return name.starts_with("meta/") &&
         (name.ends_with(".log") || name.find("MANIFEST-") != std::string::npos);
}

// Requires that opening the store read-only, and then for writing, fails with this code. The first
// attempt must change nothing. The second may change only the files of metadata, because their log
// is replayed before they can be read.
void RequireRefused(StoreFixture& store, StatusCode code) {
  const DirectoryTree before = Contents(store);
  const Status read_only = store.TryOpen(true);
  INFO(read_only.ToString());
  REQUIRE(read_only.Is(code));
  const bool unchanged = Contents(store) == before;
  REQUIRE(unchanged);
  const Status writable = store.TryOpen();
  INFO(writable.ToString());
  REQUIRE(writable.Is(code));
  auto without_metadata = [](DirectoryTree tree) {
    std::erase_if(tree, [](const auto& file) {
      return file.first.starts_with("meta/") || file.first == "meta.ledger";
    });
    return tree;
  };
  const bool kept = without_metadata(Contents(store)) == without_metadata(before);
  REQUIRE(kept);
}

}  // namespace

TEST_CASE("a mount passes its options on to the index") {
  Superblock superblock;
  superblock.index_engine = static_cast<uint8_t>(IndexEngine::kSilt);
  superblock.index_memory = 9 << 20;
  superblock.index_parameters = {{"bucket_bits", 9}};
  FileSystemOptions options;
  options.store = "/store";
  const IndexOptions usual = IndexOptionsOf(superblock, options);
  CHECK(usual.directory == IndexPath("/store"));
  CHECK(usual.memory_limit == 9 << 20);
  CHECK(usual.parameters == superblock.index_parameters);
  CHECK_FALSE(usual.read_only);
  CHECK_FALSE(usual.synchronous);
  CHECK(usual.background_bytes_per_second == 0);
  options.read_only = true;
  options.index_memory = 5 << 20;
  options.index_sync = true;
  options.index_merge_rate = 3 << 20;
  const IndexOptions chosen = IndexOptionsOf(superblock, options);
  CHECK(chosen.memory_limit == 5 << 20);
  CHECK(chosen.read_only);
  CHECK(chosen.synchronous);
  CHECK(chosen.background_bytes_per_second == 3 << 20);
}

TEST_CASE("index_sync makes the index durable when a block is written") {
  const bool sync = GENERATE(true, false);
  StoreFixture store;
  FileSystemOptions options;
  options.store = store.path();
  options.segments = SealedSegments(store.env());
  options.commit_interval = std::chrono::hours(1);
  options.index_sync = sync;
  auto opened = FileSystem::Open(store.env(), options);
  REQUIRE_OK(opened);
  const uint64_t before = store.env().Count(FaultEnv::Call::kSync, IndexPath(store.path()));
  WriteFile(**opened, "file", RandomBytes(1, 3'000'000));
  REQUIRE_OK((*opened)->SyncAll());
  const uint64_t syncs = store.env().Count(FaultEnv::Call::kSync, IndexPath(store.path())) - before;
  CHECK((syncs > 0) == sync);
  REQUIRE_OK((*opened)->Close());
}

TEST_CASE("metadata older than the superblocks is refused and left unchanged") {
  StoreFixture store;
  store.Open();
  WriteAndSync(store, "a", 1);
  store.Close();
  const OldCopy old(store);
  store.Open();
  WriteAndSync(store, "b", 2);
  store.Close();
  old.RestoreMetadata();
  RequireRefused(store, StatusCode::kCorruption);
  REQUIRE(store.TryOpen().ToString().find("metadata was lost") != std::string::npos);
}

TEST_CASE("one superblock copy is enough to detect older metadata") {
  StoreFixture store;
  store.Open();
  WriteAndSync(store, "a", 1);
  store.Close();
  const OldCopy old(store);
  store.Open();
  WriteAndSync(store, "b", 2);
  store.Close();
  old.RestoreMetadata();
  std::filesystem::remove(SuperblockPath(store.path(), GENERATE(0, 1)));
  REQUIRE_CODE(store.TryOpen(), kCorruption);
}

TEST_CASE("metadata and superblocks that are older than the segments are refused") {
  const bool crashed_then = GENERATE(false, true);
  const bool crashed_now = GENERATE(false, true);
  const bool used_before = GENERATE(false, true);
  INFO("old copy after a crash: " << crashed_then << ", store after a crash: " << crashed_now
                                  << ", used before: " << used_before);
  StoreFixture store;
  store.Open();
  if (used_before) WriteAndSync(store, "a", 1);
  crashed_then ? store.Crash() : store.Close();
  const OldCopy old(store);
  store.Open();
  WriteAndSync(store, "b", 2);
  WriteAndSync(store, "c", 3);  // its blocks record the commit of "b"
  crashed_now ? store.Crash() : store.Close();
  old.RestoreMetadata();
  old.RestoreSuperblocks();
  RequireRefused(store, StatusCode::kCorruption);
}

TEST_CASE("a damaged byte in the metadata's logs prevents the mount, and nothing is changed") {
  StoreFixture store;
  store.Open();
  for (uint64_t i = 0; i < 20; ++i) WriteAndSync(store, "file " + std::to_string(i), i, 3000);
  const DirectoryTree killed = Contents(store);
  store.Crash();
  Random random(1);
  int logs = 0;
  for (const auto& [name, content] : killed) {
    if (!MetadataLog(name) || content.empty()) continue;
    ++logs;
    for (int i = 0; i < 40; ++i) {
      const size_t at = i == 0 ? 0 : i == 1 ? content.size() - 1 : random.Below(content.size());
      CAPTURE(name, at);
      DirectoryTree damaged = killed;
      damaged[name][at] = static_cast<char>(content[at] ^ (1 << random.Below(8)));
      WriteTree(store.path(), damaged);
      for (const bool read_only : {true, false}) {
        const Status status = store.TryOpen(read_only);
        REQUIRE_CODE(status, kCorruption);
        REQUIRE(status.path() == store.path() + "/" + name);
        const bool unchanged = Contents(store) == damaged;
        REQUIRE(unchanged);
      }
    }
  }
  REQUIRE(logs == 2);
  WriteTree(store.path(), killed);
  store.Open();
  for (uint64_t i = 0; i < 20; ++i) RequireFile(store, "file " + std::to_string(i), i, 3000);
  store.Close();
  RecountStore(store.path());
}

TEST_CASE("a crash's remains after the synced part of the metadata's log do not prevent a mount") {
  StoreFixture store;
  store.Open();
  for (uint64_t i = 0; i < 5; ++i) WriteAndSync(store, "file " + std::to_string(i), i, 3000);
  const DirectoryTree killed = Contents(store);
  store.Crash();
  for (uint64_t size : {1u, 20u, 500u}) {
    DirectoryTree torn = killed;
    const Bytes tail = RandomBytes(size, size);
    for (auto& [name, content] : torn) {
      if (name.ends_with(".log") && MetadataLog(name)) content += AsText(tail);
    }
    WriteTree(store.path(), torn);
    for (const bool read_only : {true, false}) {
      store.Open(read_only);
      for (uint64_t i = 0; i < 5; ++i) RequireFile(store, "file " + std::to_string(i), i, 3000);
      store.Close();
    }
    RecountStore(store.path());
  }
}

TEST_CASE("a store without metadata is damaged, not new") {
  StoreFixture store;
  store.Open();
  WriteAndSync(store, "a", 1);
  store.Close();
  SECTION("the directory is missing") { std::filesystem::remove_all(MetadataPath(store.path())); }
  SECTION("the directory is empty") {
    std::filesystem::remove_all(MetadataPath(store.path()));
    std::filesystem::create_directory(MetadataPath(store.path()));
  }
  RequireRefused(store, StatusCode::kCorruption);
}

TEST_CASE("a directory without superblocks is no store") {
  StoreFixture store;
  for (int copy = 0; copy < 2; ++copy) std::filesystem::remove(SuperblockPath(store.path(), copy));
  REQUIRE_CODE(store.TryOpen(), kNotFound);
  TemporaryDirectory empty;
  FileSystemOptions options;
  options.store = empty.path();
  options.segments = SealedSegments(store.env());
  REQUIRE_CODE(FileSystem::Open(store.env(), options), kNotFound);
  REQUIRE(std::filesystem::is_empty(empty.path()));
  options.store = empty / "nothing";
  REQUIRE_CODE(FileSystem::Open(store.env(), options), kNotFound);
}

TEST_CASE("a store with an unknown feature is refused for that reason") {
  StoreFixture store;
  for (int copy = 0; copy < 2; ++copy) {
    const std::string path = SuperblockPath(store.path(), copy);
    std::string bytes = ReadText(path);
    auto superblock = DecodeSuperblock(AsBytes(bytes));
    REQUIRE_OK(superblock);
    superblock->incompat_features = uint64_t{1} << 60;
    WriteText(path, EncodeSuperblock(*superblock));
  }
  RequireRefused(store, StatusCode::kNeedsNewer);
  REQUIRE_CODE(ReadStoreStats(store.env(), store.path()), kNeedsNewer);
}

TEST_CASE("a store of another format is refused for that reason, not as damaged") {
  StoreFixture store;
  for (int copy = 0; copy < 2; ++copy) {
    const std::string path = SuperblockPath(store.path(), copy);
    std::string bytes = ReadText(path);
    bytes[8] = 2;  // the version, after the magic number; the checksum covers it
    const size_t covered = kSuperblockSize - 8;
    const uint64_t checksum = Checksum(AsBytes(bytes).first(covered));
    bytes.replace(covered, 8, Encoder().U64(checksum).Take());
    WriteText(path, bytes);
  }
  RequireRefused(store, StatusCode::kNeedsNewer);
}

TEST_CASE("a store that this version may only read is opened read-only, and not for writing") {
  StoreFixture store;
  store.Open();
  WriteAndSync(store, "a", 1);
  store.Close();
  for (int copy = 0; copy < 2; ++copy) {
    const std::string path = SuperblockPath(store.path(), copy);
    auto superblock = DecodeSuperblock(AsBytes(ReadText(path)));
    REQUIRE_OK(superblock);
    superblock->ro_compat_features = 1u << 20;
    WriteText(path, EncodeSuperblock(*superblock));
  }
  REQUIRE_CODE(store.TryOpen(), kNeedsNewer);
  store.Open(true);
  RequireFile(store, "a", 1);
}

TEST_CASE("a store is open once at a time") {
  StoreFixture store;
  store.Open();
  WriteAndSync(store, "a", 1);
  REQUIRE_CODE(store.TryOpen(), kInUse);
  REQUIRE_CODE(store.TryOpen(true), kInUse);
  REQUIRE_CODE(ReadStoreStats(store.env(), store.path()), kInUse);
  WriteAndSync(store, "b", 2);  // the first mount continues undisturbed
  store.Close();
  store.Open(true);
  REQUIRE_CODE(store.TryOpen(), kInUse);
  RequireFile(store, "b", 2);
}

TEST_CASE("two stores are open in one process") {
  StoreFixture one;
  StoreFixture other;
  one.Open();
  other.Open();
  WriteAndSync(one, "a", 1);
  WriteAndSync(other, "a", 2);
  RequireFile(one, "a", 1);
  RequireFile(other, "a", 2);
  one.Close();
  RequireFile(other, "a", 2);
  other.Close();
}

TEST_CASE("a read-only mount after a crash reads all committed data and writes nothing") {
  StoreFixture store;
  store.Open();
  WriteAndSync(store, "a", 1, 600'000);
  store.Reopen();
  WriteAndSync(store, "b", 2, 600'000);
  // An unfolded overlay, and a file without a name.
  auto open = store.fs().CreateFile(kRootInode, "open", 0644, kCaller);
  REQUIRE_OK(open);
  REQUIRE_OK(store.fs().Write(open->inode, 5000, RandomBytes(3, 300'000)));
  auto orphan = store.fs().CreateFile(kRootInode, "orphan", 0644, kCaller);
  REQUIRE_OK(orphan);
  REQUIRE_OK(store.fs().Unlink(kRootInode, "orphan"));
  REQUIRE_OK(store.fs().SyncAll());
  WriteFile(store.fs(), "lost", RandomBytes(4, 200'000));
  store.Crash();

  const DirectoryTree before = Contents(store);
  store.Open(true);
  RequireFile(store, "a", 1, 600'000);
  RequireFile(store, "b", 2, 600'000);
  Bytes expected(5000, 0);
  const Bytes written = RandomBytes(3, 300'000);
  expected.insert(expected.end(), written.begin(), written.end());
  REQUIRE((*ReadFile(store.fs(), open->inode) == expected));
  REQUIRE_CODE(store.fs().Lookup(kRootInode, "lost"), kNotFound);
  REQUIRE(store.Stats().read_only);
  REQUIRE(store.Stats().files == 4);

  // A read-only mount refuses all changes.
  const InodeNumber a = *Resolve(store.fs(), "a");
  FileSystem& fs = store.fs();
  AttributeChange change;
  change.mode = 0;
  REQUIRE_CODE(fs.Write(a, 0, Bytes(1)), kReadOnly);
  REQUIRE_CODE(fs.SetAttributes(a, change), kReadOnly);
  REQUIRE_CODE(fs.CreateFile(kRootInode, "x", 0644, kCaller), kReadOnly);
  REQUIRE_CODE(fs.MakeDirectory(kRootInode, "x", 0644, kCaller), kReadOnly);
  REQUIRE_CODE(fs.MakeSymlink(kRootInode, "x", "y", kCaller), kReadOnly);
  REQUIRE_CODE(fs.MakeNode(kRootInode, "x", 0100644, 0, kCaller), kReadOnly);
  REQUIRE_CODE(fs.Link(a, kRootInode, "x"), kReadOnly);
  REQUIRE_CODE(fs.Unlink(kRootInode, "a"), kReadOnly);
  REQUIRE_CODE(fs.RemoveDirectory(kRootInode, "a"), kReadOnly);
  REQUIRE_CODE(fs.Rename(kRootInode, "a", kRootInode, "x", RenameMode::kReplace), kReadOnly);
  REQUIRE_CODE(fs.SetXattr(a, "user.x", "", XattrMode::kSet), kReadOnly);
  REQUIRE_CODE(fs.RemoveXattr(a, "user.x"), kReadOnly);
  REQUIRE_CODE(fs.OpenFile(a, true), kReadOnly);
  REQUIRE_OK(fs.OpenFile(a, false));
  fs.ReleaseFile(a);
  fs.Forget(a, 1);
  REQUIRE_OK(fs.Fsync(a));
  REQUIRE_OK(fs.SyncAll());
  store.Close();
  REQUIRE(ReadStoreStats(store.env(), store.path())->files == 4);
  REQUIRE((Contents(store) == before));

  // Afterwards the store recovers as if there had been no read-only mount.
  store.Open();
  RequireFile(store, "a", 1, 600'000);
  store.Close();
  REQUIRE(RecountStore(store.path()).orphans == 0);
}

TEST_CASE("a lost index loses no stored data") {
  const bool crash = GENERATE(false, true);
  INFO("after a crash: " << crash);
  StoreFixture store;
  store.Open();
  WriteAndSync(store, "a", 1, 400'000);
  store.Reopen();
  WriteAndSync(store, "b", 2, 400'000);
  const uint64_t chunks = store.Stats().chunks_unique;
  crash ? store.Crash() : store.Close();
  SECTION("its directory is gone") { std::filesystem::remove_all(IndexPath(store.path())); }
  SECTION("its directory is empty") {
    std::filesystem::remove_all(IndexPath(store.path()));
    std::filesystem::create_directory(IndexPath(store.path()));
  }
  SECTION("its files are damaged") {
    for (auto& entry : std::filesystem::recursive_directory_iterator(IndexPath(store.path()))) {
      if (!entry.is_regular_file()) continue;
      std::string bytes = ReadText(entry.path().string());
      for (char& byte : bytes) byte = static_cast<char>(byte ^ 0x55);
      WriteText(entry.path().string(), bytes);
    }
  }
  const DirectoryTree before = Contents(store);
  store.Open(true);
  RequireFile(store, "a", 1, 400'000);
  RequireFile(store, "b", 2, 400'000);
  store.Close();
  REQUIRE((Contents(store) == before));

  store.Open();
  RequireFile(store, "a", 1, 400'000);
  RequireFile(store, "b", 2, 400'000);
  // Stored chunks are found again: copies add no new chunks.
  WriteAndSync(store, "copy of a", 1, 400'000);
  WriteAndSync(store, "copy of b", 2, 400'000);
  REQUIRE(store.Stats().chunks_unique == chunks);
  store.Close();
  RecountStore(store.path());
}

TEST_CASE("a store is opened, used and closed many times over") {
  StoreFixture store;
  for (uint64_t i = 0; i < 8; ++i) {
    store.Open();
    for (uint64_t k = 0; k < i; ++k) RequireFile(store, fmt::format("f{}", k), k, 30'000);
    WriteAndSync(store, fmt::format("f{}", i), i, 30'000);
    i % 3 == 2 ? store.Crash() : store.Close();
  }
  RecountStore(store.path());
}

TEST_CASE("a damaged chunk makes its own bytes unreadable and no others") {
  StoreFixture store;
  store.Open();
  WriteAndSync(store, "a", 1, 400'000);
  store.Close();
  const auto listing = SegmentsOf(store.env(), store.path())->List();
  REQUIRE_OK(listing);
  SegmentId large = kNoSegment;
  for (const SegmentId id : listing->ids) {
    if (SegmentContent(store.env(), store.path(), id).size() > 300'000) large = id;
  }
  REQUIRE(large != kNoSegment);
  ChangeSegment(store.env(), store.path(), large,
                [](std::string& content) { content[content.size() / 2] ^= 1; });

  store.Open();
  const InodeNumber file = *Resolve(store.fs(), "a");
  const Bytes expected = RandomBytes(1, 400'000);
  int damaged = 0;
  for (size_t at = 0; at < expected.size(); at += 1000) {
    Bytes got(1000);
    auto count = store.fs().Read(file, at, got);
    if (count.ok()) {
      REQUIRE(std::equal(got.begin(), got.end(), expected.begin() + static_cast<ptrdiff_t>(at)));
    } else {
      REQUIRE_CODE(count, kCorruption);
      ++damaged;
    }
  }
  REQUIRE(damaged > 0);
  REQUIRE(damaged < 300);
  // Intact files can be used, damaged ones overwritten and removed.
  REQUIRE_OK(store.fs().Unlink(kRootInode, "a"));
  WriteAndSync(store, "b", 2);
  RequireFile(store, "b", 2);
  store.Close();
  RecountStore(store.path());
}

}  // namespace siltfs::testing
