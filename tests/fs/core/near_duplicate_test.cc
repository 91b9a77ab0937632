// A store that is made with deltas: recompression finds resembling chunks by itself, and garbage
// collection, damage and lost files never cost a byte of another chunk.
#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "fs/check/check_store.h"
#include "fs/interface/store_maintenance.h"
#include "fs/open/make_store.h"
#include "fs/open/rebuild_index.h"
#include "fs/open/store_layout.h"
#include "fs/repair/repair_store.h"
#include "store/base/random.h"
#include "store/superblock/superblock.h"
#include "tests/fs/core/directory_tree.h"
#include "tests/fs/core/recount_store.h"
#include "tests/fs/core/store_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/memory_segments.h"

namespace siltfs::testing {
namespace {

constexpr size_t kFileBytes = 1'000'000;
constexpr uint32_t kSegmentBytes = 128U << 10;

// Text of few letters, which compresses by about a third, so that blocks are worth rewriting.
Bytes TextOf(uint64_t seed) {
  Bytes text = RandomBytes(seed, kFileBytes);
  for (uint8_t& byte : text) byte = static_cast<uint8_t>('a' + byte % 32);
  return text;
}

// Another version of a text: a byte of each 1,500 is different, so that nearly every chunk is.
Bytes VersionOf(const Bytes& text, uint8_t version) {
  Bytes other = text;
  for (size_t at = 700; at < other.size(); at += 1500)
    other[at] = static_cast<uint8_t>('0' + version);
  return other;
}

MakeStoreOptions WithDeltas() {
  MakeStoreOptions options;
  options.index_memory = 4u << 20;
  options.chunk_min = 512;
  options.chunk_avg = 2048;
  options.chunk_max = 16384;
  options.deltas = true;
  return options;
}

struct DeltaStore {
  explicit DeltaStore(uint32_t segment_bytes = kSegmentBytes) : store(WithDeltas()) {
    auto state = ReadSuperblock(store.env(), store.path());
    REQUIRE_OK(state);
    state->superblock.segment_bytes = segment_bytes;
    REQUIRE_OK(WriteSuperblock(store.env(), store.path(), state->superblock));
    store.Open();
  }
  void Write(const std::string& name, const Bytes& content) {
    WriteFile(store.fs(), name, content);
    files[name] = content;
  }
  void Remove(const std::string& name) {
    REQUIRE_OK(store.fs().Unlink(kRootInode, name));
    files.erase(name);
  }
  // Returns the chunks that became deltas.
  uint64_t Settle() {
    REQUIRE_OK(store.fs().SyncAll());
    auto report = store.fs().maintenance().Recompress();
    REQUIRE_OK(report);
    CHECK(report->segments_left == 0);
    return report->delta_chunks;
  }
  void Collect() {
    REQUIRE_OK(store.fs().SyncAll());
    REQUIRE_OK(store.fs().maintenance().CollectGarbage(/*dry_run=*/false).status());
  }
  void RequireFiles() {
    for (const auto& [name, content] : files) {
      INFO(name);
      auto inode = Resolve(store.fs(), name);
      REQUIRE_OK(inode);
      auto bytes = ReadFile(store.fs(), *inode);
      REQUIRE_OK(bytes);
      REQUIRE((*bytes == content));
    }
  }
  std::set<std::string> Findings() {
    std::set<std::string> codes;
    CheckOptions options;
    options.store = store.path();
    options.segments = SealedSegments(store.env());
    options.data = true;
    options.on_finding = [&](const Finding& finding) {
      UNSCOPED_INFO(finding.code << ": " << finding.message);
      codes.insert(finding.code);
    };
    REQUIRE_OK(CheckStore(store.env(), options));
    return codes;
  }
  // Opens the store again, and reads and checks everything.
  void RequireWhole() {
    store.Close();
    REQUIRE(Findings().empty());
    RecountStore(store.path());
    store.Open();
    RequireFiles();
  }

  StoreFixture store;
  std::map<std::string, Bytes> files;
};

}  // namespace

TEST_CASE("recompression stores resembling chunks as deltas") {
  // Small segments, because the last one of each version is not full, and so not recompressed.
  DeltaStore deltas(48U << 10);
  const Bytes text = TextOf(1);
  deltas.Write("old", text);
  CHECK(deltas.Settle() == 0);
  const uint64_t before = deltas.store.Stats().stored_bytes;
  deltas.Write("new", VersionOf(text, 1));
  CHECK(deltas.Settle() > 200);
  const FileSystemStats stats = deltas.store.Stats();
  REQUIRE(stats.deltas);
  CHECK(stats.deltas->segments > 0);
  CHECK(stats.deltas->deltas > 200);
  CHECK(stats.deltas->saved_bytes > before / 2);
  CHECK(stats.deltas->offered >= stats.deltas->deltas);
  REQUIRE(stats.deltas->lsh);
  CHECK(stats.deltas->lsh->lookups > 0);
  // The second version takes a small part of the space of the first one.
  CHECK(stats.stored_bytes < before + before / 3);
  deltas.RequireFiles();
  deltas.RequireWhole();
}

TEST_CASE("resembling chunks of one segment become deltas, too") {
  DeltaStore deltas(512U << 10);
  const Bytes text = TextOf(2);
  const Bytes first(text.begin(), text.begin() + 100'000);
  deltas.Write("first", first);
  deltas.Write("between", Bytes(text.begin() + 100'000, text.begin() + 600'000));  // other blocks
  deltas.Write("second", VersionOf(first, 1));
  deltas.Write("rest", TextOf(3));  // fills the segment, so that it is sealed
  CHECK(deltas.Settle() > 20);
  CHECK(deltas.store.Stats().deltas->segments == 1);
  deltas.RequireWhole();
}

TEST_CASE("the choice of bases goes on after a mount, and no base becomes a delta") {
  DeltaStore deltas;
  const Bytes text = TextOf(3);
  deltas.Write("0", text);
  deltas.Settle();
  for (uint8_t version = 1; version <= 3; ++version) {
    deltas.RequireWhole();
    deltas.Write(fmt::format("{}", version), VersionOf(text, version));
    CHECK(deltas.Settle() > 200);
  }
  // These chunks resemble bases, and the bases are written once more.
  deltas.Remove("0");
  deltas.Collect();
  deltas.Write("0 again", text);
  deltas.Settle();
  deltas.RequireWhole();
}

TEST_CASE("garbage collection keeps a base as long as a delta needs it") {
  DeltaStore deltas;
  const Bytes text = TextOf(4);
  deltas.Write("old", text);
  deltas.Settle();
  deltas.Write("new", VersionOf(text, 1));
  REQUIRE(deltas.Settle() > 200);
  deltas.Remove("old");
  deltas.Collect();
  deltas.Collect();
  deltas.RequireFiles();
  deltas.RequireWhole();
  deltas.Remove("new");
  for (int i = 0; i < 3; ++i) deltas.Collect();
  CHECK(deltas.store.Stats().deltas->segments == 0);
  deltas.RequireWhole();
  // Segments that are not sealed are not collected: those of new chunks, of moved chunks and of
  // recipe nodes. With its bases, either version took more.
  CHECK(deltas.store.Stats().stored_bytes < 3 * kSegmentBytes);
}

TEST_CASE("a store whose index is lost finds its deltas and bases again") {
  DeltaStore deltas;
  const Bytes text = TextOf(5);
  deltas.Write("old", text);
  deltas.Settle();
  deltas.Write("new", VersionOf(text, 1));
  REQUIRE(deltas.Settle() > 200);
  deltas.store.Close();
  SECTION("removed") { std::filesystem::remove_all(IndexPath(deltas.store.path())); }
  SECTION("rebuilt") {
    IndexRebuildOptions options;
    options.store = deltas.store.path();
    options.segments = SealedSegments(deltas.store.env());
    REQUIRE_OK(RebuildIndex(deltas.store.env(), options));
  }
  deltas.store.Open();
  deltas.RequireFiles();
  deltas.RequireWhole();
}

TEST_CASE("super-features are expendable") {
  const bool repair = GENERATE(false, true);
  DeltaStore deltas;
  const Bytes text = TextOf(6);
  deltas.Write("old", text);
  deltas.Settle();
  deltas.store.Close();
  const std::string directory = LshPath(deltas.store.path());
  bool remembers = false;
  std::set<std::string> findings;
  SECTION("as they were") { remembers = true; }
  SECTION("removed") { std::filesystem::remove_all(directory); }
  SECTION("a file") {
    std::filesystem::remove_all(directory);
    WriteText(directory, "what?");
    findings = {"lsh"};
  }
  SECTION("damaged") {
    for (const auto& file : std::filesystem::directory_iterator(directory)) {
      std::string bytes = ReadText(file.path().string());
      for (size_t at = 100; at < bytes.size(); at += 4096) bytes[at] ^= 1;
      WriteText(file.path().string(), bytes);
    }
    findings = {"lsh"};
  }
  SECTION("on a faulty disk") {
    deltas.store.env().Fail(FaultEnv::Call::kOpen, "index.lsh", StatusCode::kIoError);
  }
  SECTION("on a full disk") {
    std::filesystem::remove_all(directory);
    deltas.store.env().Fail(FaultEnv::Call::kChange, "index.lsh", StatusCode::kNoSpace);
  }
  if (!findings.empty()) {
    CHECK(deltas.Findings() == findings);
    if (repair) {
      RepairOptions options;
      options.check.store = deltas.store.path();
      options.check.segments = SealedSegments(deltas.store.env());
      REQUIRE_OK(RepairStore(deltas.store.env(), options));
      CHECK(deltas.Findings().empty());
    }
  }
  deltas.store.Open();
  deltas.Write("new", VersionOf(text, 1));
  // The last segment of the first version was not sealed before.
  CHECK((deltas.Settle() > 200) == remembers);
  deltas.RequireFiles();
  deltas.store.Close();
  deltas.store.env().Heal();
  deltas.store.Open();
  deltas.Write("newer", VersionOf(text, 2));
  deltas.Settle();
  deltas.Write("newest", VersionOf(text, 3));
  CHECK(deltas.Settle() > 200);
  deltas.RequireWhole();
}

TEST_CASE("a store without deltas has none, and deltas need compression") {
  StoreFixture store;
  store.Open();
  const Bytes text = TextOf(7);
  WriteFile(store.fs(), "old", text);
  WriteFile(store.fs(), "new", VersionOf(text, 1));
  REQUIRE_OK(store.fs().SyncAll());
  REQUIRE_OK(store.fs().maintenance().Recompress().status());
  CHECK_FALSE(store.Stats().deltas);
  CHECK_FALSE(std::filesystem::exists(LshPath(store.path())));
  store.Close();

  MakeStoreOptions options = WithDeltas();
  options.path = store.path() + ".other";
  options.compression_level = 0;
  REQUIRE_CODE(MakeStore(store.env(), options), kInvalidArgument);
  CHECK_FALSE(std::filesystem::exists(options.path));
}

}  // namespace siltfs::testing
