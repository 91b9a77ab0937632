// The new and freed bytes of snapshots in a real store: they are what the contents of all snapshots
// say, and what a collection frees.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "chunker/chunk_namer.h"
#include "fs/interface/content_source.h"
#include "fs/interface/entry_store.h"
#include "fs/interface/snapshots.h"
#include "store/base/random.h"
#include "tests/fs/core/garbage_store.h"
#include "tests/fs/recipe/recipe_test_support.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

// Names nodes as a store does.
class NamedNodes final : public NodeStore {
 public:
  NamedNodes() {
    auto namer = ChunkNamer::Create({});
    REQUIRE_OK(namer);
    namer_.emplace(std::move(*namer));
  }
  Result<ChunkName> PutNode(ByteView node) override {
    const ChunkName name = namer_->NameOf(node);
    lengths[name] = node.size();
    return name;
  }
  Result<std::shared_ptr<const Bytes>> GetNode(const ChunkName&, uint32_t) override {
    return Status(StatusCode::kUnsupported, "nodes are only named");
  }

  std::map<ChunkName, uint64_t> lengths;

 private:
  std::optional<ChunkNamer> namer_;
};

// What a tree refers to.
struct Contents {
  std::map<ChunkName, uint64_t> chunks;
  std::map<ChunkName, uint64_t> nodes;
};

void AddTree(FileSystem& fs, InodeNumber directory, const std::string& path, Contents& contents) {
  for (const std::string& name : ListNames(fs, directory)) {
    const std::string below = path.empty() ? name : path + "/" + name;
    const InodeNumber inode = RequireInode(fs, below);
    const auto attributes = fs.GetAttributes(inode);
    REQUIRE_OK(attributes);
    if ((attributes->mode & 0170000) == 0040000) {
      AddTree(fs, inode, below, contents);
      continue;
    }
    Entries entries;
    bool whole = true;
    REQUIRE_OK(fs.contents().Visit(inode, 0, [&](const ContentPiece& piece) {
      whole = whole && piece.kind != ContentPiece::Kind::kOther;
      if (piece.kind == ContentPiece::Kind::kHole) {
        entries.push_back(RecipeEntry::Hole(piece.length));
      } else {
        entries.push_back(RecipeEntry::Chunk(piece.chunk.name, piece.chunk.length));
        contents.chunks[piece.chunk.name] = piece.chunk.length;
      }
      return true;
    }));
    REQUIRE(whole);
    NamedNodes nodes;
    Build(nodes, entries);
    contents.nodes.insert(nodes.lengths.begin(), nodes.lengths.end());
  }
}

Contents ContentsOf(FileSystem& fs, const std::string& path) {
  Contents contents;
  AddTree(fs, path.empty() ? kRootInode : RequireInode(fs, path), path, contents);
  return contents;
}

struct ExpectedSpace {
  uint64_t new_bytes = 0;
  uint64_t freed_bytes = 0;
  uint64_t freed_data_bytes = 0;  // without nodes
  uint64_t freed_chunks = 0;      // with nodes
};

// By the names of snapshots.
std::map<std::string, ExpectedSpace> ExpectedSpaces(FileSystem& fs) {
  std::vector<std::string> names;
  std::vector<Contents> states;
  for (const SnapshotInfo& snapshot : fs.snapshots().List()) {
    names.push_back(snapshot.name);
    states.push_back(ContentsOf(fs, ".snapshots/" + snapshot.name));
  }
  states.push_back(ContentsOf(fs, ""));
  std::map<ChunkName, size_t> users;
  for (const Contents& state : states) {
    for (const auto& [name, length] : state.chunks) ++users[name];
    for (const auto& [name, length] : state.nodes) ++users[name];
  }
  std::map<std::string, ExpectedSpace> spaces;
  std::set<ChunkName> older;
  for (size_t i = 0; i < names.size(); ++i) {
    ExpectedSpace& space = spaces[names[i]];
    const auto add = [&](const ChunkName& name, uint64_t length, bool data) {
      if (older.insert(name).second) space.new_bytes += length;
      if (users[name] != 1) return;
      space.freed_bytes += length;
      ++space.freed_chunks;
      if (data) space.freed_data_bytes += length;
    };
    for (const auto& [name, length] : states[i].chunks) add(name, length, true);
    for (const auto& [name, length] : states[i].nodes) add(name, length, false);
  }
  return spaces;
}

// Random changes of a store with small segments.
class RandomStore {
 public:
  explicit RandomStore(uint64_t seed) : random_(seed), store_(32u << 10) {
    store_.Begin();
    MakeDir(fs(), kRootInode, "d");
  }

  FileSystem& fs() { return *store_.fs; }
  GarbageStore& store() { return store_; }

  void Step() {
    const uint64_t kind = random_.Below(16);
    if (kind < 3) {
      Write(NewName(), RandomBytes(random_.Next(), 1 + random_.Below(60'000)));
    } else if (kind < 4) {
      Write(NewName(), RandomBytes(random_.Next(), 600'000));
    } else if (files_.empty()) {
      return;
    } else if (kind < 8) {
      Overwrite();
    } else if (kind < 9) {
      Write(NewName(), files_[AnyFile()]);
    } else if (kind < 10) {
      Clone();
    } else if (kind < 12) {
      Rename();
    } else if (kind < 13) {
      Link();
    } else if (kind < 14) {
      Truncate();
    } else {
      Unlink();
    }
  }
  void TakeSnapshot() { REQUIRE_OK(fs().snapshots().Create(fmt::format("s{}", next_snapshot_++))); }
  bool DeleteSnapshot() {
    const auto list = fs().snapshots().List();
    if (list.empty()) return false;
    Delete(list[random_.Below(list.size())].name);
    return true;
  }
  void Delete(const std::string& snapshot) {
    REQUIRE_OK(fs().snapshots().Remove(snapshot));
    REQUIRE_OK(fs().snapshots().AwaitRemovals());
  }
  // Requires the bytes that the contents of all snapshots say.
  void RequireSpaces() {
    const auto expected = ExpectedSpaces(fs());
    const auto measured = fs().snapshots().Measure({});
    REQUIRE_OK(measured);
    REQUIRE(measured->size() == expected.size());
    for (const SnapshotSpace& space : *measured) {
      INFO(space.snapshot.name);
      const ExpectedSpace& bytes = expected.at(space.snapshot.name);
      REQUIRE(space.new_bytes == bytes.new_bytes);
      REQUIRE(space.freed_bytes == bytes.freed_bytes);
    }
  }
  GarbageReport Collect() { return store_.SealAndCollect(); }

 private:
  std::string NewName() { return fmt::format("{}f{}", random_.OneIn(3) ? "d/" : "", next_file_++); }
  std::string AnyFile() {
    auto file = files_.begin();
    std::advance(file, static_cast<ptrdiff_t>(random_.Below(files_.size())));
    return file->first;
  }
  std::pair<InodeNumber, std::string> Split(const std::string& path) {
    if (!path.starts_with("d/")) return {kRootInode, path};
    return {RequireInode(fs(), "d"), path.substr(2)};
  }
  void WriteAt(const std::string& path, uint64_t offset, ByteView data) {
    const InodeNumber inode = RequireInode(fs(), path);
    REQUIRE_OK(fs().OpenFile(inode, false));
    REQUIRE_OK(fs().Write(inode, offset, data));
    fs().ReleaseFile(inode);
  }
  void Write(const std::string& path, const Bytes& data) {
    const auto [directory, name] = Split(path);
    MakeFile(fs(), directory, name);
    WriteAt(path, 0, data);
    files_[path] = data;
  }
  void Overwrite() {
    const std::string path = AnyFile();
    Bytes& content = files_[path];
    const uint64_t offset = random_.Below(content.size() + 20'000);
    const Bytes data = RandomBytes(random_.Next(), 1 + random_.Below(40'000));
    WriteAt(path, offset, data);
    content.resize(std::max<size_t>(content.size(), offset + data.size()));
    std::copy(data.begin(), data.end(), content.begin() + static_cast<ptrdiff_t>(offset));
  }
  void Clone() {
    const std::string path = AnyFile();
    const std::string name = fmt::format("c{}", next_file_++);
    REQUIRE_OK(fs().entries().Clone(
        {.source = RequireInode(fs(), path), .parent = kRootInode, .name = name}));
    files_[name] = files_[path];
  }
  void Rename() {
    const std::string from = AnyFile();
    const std::string to = NewName();
    const auto [old_directory, old_name] = Split(from);
    const auto [directory, name] = Split(to);
    REQUIRE_OK(fs().Rename(old_directory, old_name, directory, name, RenameMode::kReplace));
    files_[to] = std::move(files_[from]);
    files_.erase(from);
  }
  // The second name is not written to, so the model need not know that it is one.
  void Link() {
    const auto linked =
        fs().Link(RequireInode(fs(), AnyFile()), kRootInode, fmt::format("l{}", next_file_++));
    REQUIRE_OK(linked);
    fs().Forget(linked->inode, 1);
  }
  void Truncate() {
    const std::string path = AnyFile();
    const InodeNumber inode = RequireInode(fs(), path);
    const uint64_t size = random_.Below(files_[path].size() + 1);
    REQUIRE_OK(fs().OpenFile(inode, false));
    AttributeChange change;
    change.size = size;
    REQUIRE_OK(fs().SetAttributes(inode, change));
    REQUIRE_OK(fs().Write(inode, size, AsBytes("end")));
    fs().ReleaseFile(inode);
    files_[path].resize(size);
    for (const char byte : {'e', 'n', 'd'}) files_[path].push_back(static_cast<uint8_t>(byte));
  }
  void Unlink() {
    const std::string path = AnyFile();
    const auto [directory, name] = Split(path);
    REQUIRE_OK(fs().Unlink(directory, name));
    files_.erase(path);
  }

  Random random_;
  GarbageStore store_;
  std::map<std::string, Bytes> files_;
  uint64_t next_file_ = 0;
  uint64_t next_snapshot_ = 1;
};

}  // namespace

TEST_CASE("new and freed bytes are those of the contents, in any history of a store", "[race]") {
  const uint64_t seed = GENERATE(range(uint64_t{1}, uint64_t{5}));
  RandomStore store(seed);
  for (int step = 1; step <= 80; ++step) {
    INFO("seed " << seed << ", step " << step);
    store.Step();
    if (step % 8 == 0) store.TakeSnapshot();
    if (step % 20 == 0) store.DeleteSnapshot();
    if (step % 16 == 0) store.RequireSpaces();
  }
}

TEST_CASE("the deletion of a snapshot and a collection free as many bytes as were promised") {
  int rounds = 0;
  for (const uint64_t seed : {11, 12, 13, 14}) {
    RandomStore store(seed);
    for (int step = 1; step <= 60; ++step) {
      store.Step();
      if (step % 10 == 0) store.TakeSnapshot();
    }
    for (int round = 0; round < 3; ++round) {
      INFO("seed " << seed << ", round " << round);
      const GarbageReport left_before = store.Collect();
      store.RequireSpaces();
      const auto expected = ExpectedSpaces(store.fs());
      // The one that frees most.
      const auto most = std::ranges::max_element(
          expected, {}, [](const auto& named) { return named.second.freed_data_bytes; });
      // When files are folded in the background decides which chunks are left.
      if (most->second.freed_data_bytes == 0) break;
      const uint64_t before = store.store().Stats().unique_bytes;
      store.Delete(most->first);
      const GarbageReport left_after = store.Collect();
      const uint64_t after = store.store().Stats().unique_bytes;
      REQUIRE(left_before.live_chunks - left_after.live_chunks == most->second.freed_chunks);
      ++rounds;
      // The statistics are estimates if dead chunks are left in a segment.
      if (left_before.dead_chunks > 0 || left_after.dead_chunks > 0) continue;
      REQUIRE(before - after == most->second.freed_data_bytes);
    }
  }
  CHECK(rounds >= 6);
}

TEST_CASE("sizes are counted in a read-only store, too") {
  RandomStore store(21);
  for (int step = 1; step <= 40; ++step) {
    store.Step();
    if (step % 10 == 0) store.TakeSnapshot();
  }
  store.Collect();
  const auto expected = ExpectedSpaces(store.fs());
  store.store().End();
  auto opened = store.store().Open(store.store().env, /*read_only=*/true);
  REQUIRE_OK(opened);
  const auto measured = (*opened)->snapshots().Measure({});
  REQUIRE_OK(measured);
  REQUIRE(measured->size() == 4);
  for (const SnapshotSpace& space : *measured) {
    CHECK(space.new_bytes == expected.at(space.snapshot.name).new_bytes);
    CHECK(space.freed_bytes == expected.at(space.snapshot.name).freed_bytes);
  }
  REQUIRE_OK((*opened)->Close());
}

TEST_CASE("a snapshot that is being removed is not listed, and its chunks belong to the others") {
  GarbageStore store;
  store.Begin();
  store.WriteRandom(1, 100'000);
  REQUIRE_OK(store.fs->snapshots().Create("a"));
  REQUIRE_OK(store.fs->snapshots().Create("b"));
  store.Delete("random 1");
  auto spaces = store.fs->snapshots().Measure({});
  REQUIRE_OK(spaces);
  CHECK((*spaces)[0].new_bytes >= 100'000);
  CHECK((*spaces)[0].freed_bytes == 0);
  CHECK((*spaces)[1].freed_bytes == 0);
  REQUIRE_OK(store.fs->snapshots().Remove("b"));  // the removal goes on in the background
  const uint64_t bytes = (*spaces)[0].new_bytes;
  spaces = store.fs->snapshots().Measure({});
  REQUIRE_OK(spaces);
  REQUIRE(spaces->size() == 1);
  CHECK((*spaces)[0].snapshot.name == "a");
  CHECK((*spaces)[0].new_bytes == bytes);
  CHECK((*spaces)[0].freed_bytes == bytes);
  REQUIRE_OK(store.fs->snapshots().Remove("a"));
  spaces = store.fs->snapshots().Measure({});
  REQUIRE_OK(spaces);
  CHECK(spaces->empty());
  store.End();
}

TEST_CASE("an open file without a name is live, and its bytes are not promised") {
  GarbageStore store;
  store.Begin();
  store.WriteRandom(1, 100'000);
  const InodeNumber inode = RequireInode(*store.fs, "random 1");
  REQUIRE_OK(store.fs->OpenFile(inode, false));
  REQUIRE_OK(store.fs->snapshots().Create("a"));
  store.Delete("random 1");
  auto spaces = store.fs->snapshots().Measure({});
  REQUIRE_OK(spaces);
  CHECK((*spaces)[0].freed_bytes == 0);
  store.fs->ReleaseFile(inode);
  spaces = store.fs->snapshots().Measure({});
  REQUIRE_OK(spaces);
  CHECK((*spaces)[0].freed_bytes >= 100'000);
  store.End();
}

TEST_CASE("a measurement ends with the error of its check, and when the store is closed",
          "[race]") {
  GarbageStore store(256u << 10);
  store.Begin();
  for (uint64_t i = 0; i < 20; ++i) store.WriteRandom(i, 600'000);
  REQUIRE_OK(store.fs->snapshots().Create("a"));
  int calls = 0;
  REQUIRE_CODE(store.fs->snapshots().Measure([&] {
    ++calls;
    return Status(StatusCode::kAborted, "enough");
  }),
               kAborted);
  CHECK(calls == 1);
  Status closed;
  std::thread closing([&] { closed = store.fs->Close(); });
  Status outcome;
  while (outcome.ok()) outcome = store.fs->snapshots().Measure({}).status();
  closing.join();
  REQUIRE_OK(closed);
  CHECK(outcome.Is(StatusCode::kInterrupted));
}

}  // namespace siltfs::testing
