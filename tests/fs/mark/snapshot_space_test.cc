// The space of snapshots, compared with the sets of chunks that views of the snapshots refer to.
#include "fs/mark/snapshot_space.h"

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fs/mark/reference_sorter.h"
#include "fs/recipe/recipe_reader.h"
#include "fs/records/overlay_extent.h"
#include "fs/versions/snapshot_view.h"
#include "fs/versions/version_release.h"
#include "store/base/random.h"
#include "store/env/files.h"
#include "tests/fs/mark/mark_fixture.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

// Chunks and their lengths.
using Chunks = std::map<ChunkName, uint64_t>;

constexpr size_t kLittleMemory = 4096;

uint64_t LengthOf(uint64_t number) { return 1000 + number % 5000; }

RecipeEntry NumberedEntry(uint64_t number) {
  return RecipeEntry::Chunk(NumberedName(number), LengthOf(number));
}

// Files, their versions and snapshots, which a seed decides.
class History {
 public:
  explicit History(uint64_t seed) : random_(seed), kv_(OpenMemoryKvStore(disk_)) {}

  void Step() {
    const uint64_t kind = random_.Below(20);
    if (kind < 3) {
      MakeFile(1 + random_.Below(30));
    } else if (kind < 4) {
      MakeFile(500 + random_.Below(2000));
    } else if (kind < 9) {
      ChangePart();
    } else if (kind < 11) {
      Share();
    } else if (kind < 13) {
      RemoveAny();
    } else if (kind < 15) {
      ChangeOverlay();
    } else if (kind < 19) {
      TakeSnapshot();
    } else {
      DeleteSnapshot();
    }
  }

  // Returns the inode.
  uint64_t MakeFile(uint64_t chunks) {
    Save(next_inode_, Build(nodes_, SomeEntries(chunks)));
    return next_inode_++;
  }
  void Copy(uint64_t inode) { Save(next_inode_++, Recipe(files_.at(inode))); }
  void Remove(uint64_t inode) {
    Write({{InodeKey(inode), std::nullopt}});
    files_.erase(inode);
  }

  void TakeSnapshot() { snapshots_.push_back({++newest_, next_inode_}); }

  void DeleteSnapshot() {
    if (!snapshots_.empty()) Delete(random_.Below(snapshots_.size()));
  }
  void Delete(size_t place) {
    const SnapshotNumber number = snapshots_[place].number;
    snapshots_.erase(snapshots_.begin() + static_cast<ptrdiff_t>(place));
    // Sometimes the versions are still there, as while a removal runs.
    if (random_.OneIn(3)) return;
    VersionRelease release(number, kLiveLineage, snapshots_, newest_);
    for (bool more = true; more;) {
      std::vector<Mutation> batch;
      const auto next = release.Next(*kv_->Snapshot(), 50, batch);
      REQUIRE_OK(next);
      REQUIRE_OK(kv_->Write(batch));
      more = *next;
    }
  }

  SnapshotSpaces Measure(Env& env, const SnapshotSpaceOptions& options) {
    auto spaces = MeasureSnapshots(env, *kv_->Snapshot(), nodes_, snapshots_, options);
    REQUIRE_OK(spaces);
    return *spaces;
  }

  // What views and sets say.
  std::vector<SnapshotBytes> Expected(const std::set<ChunkName>& kept = {}) {
    std::vector<Chunks> shown;
    for (const SnapshotBounds& snapshot : snapshots_)
      shown.push_back(ChunksOf(*MakeSnapshotView(kv_->Snapshot(), snapshot)));
    shown.push_back(ChunksOf(*kv_->Snapshot()));
    std::map<ChunkName, size_t> users;
    for (const Chunks& chunks : shown) {
      for (const auto& [name, length] : chunks) ++users[name];
    }
    std::vector<SnapshotBytes> expected(snapshots_.size());
    Chunks older;
    for (size_t i = 0; i < snapshots_.size(); ++i) {
      for (const auto& [name, length] : shown[i]) {
        if (older.emplace(name, length).second) expected[i].new_bytes += length;
        if (users[name] == 1 && !kept.contains(name)) expected[i].freed_bytes += length;
      }
    }
    return expected;
  }

  const std::vector<SnapshotBounds>& snapshots() const { return snapshots_; }
  MemoryNodeStore& nodes() { return nodes_; }
  // The nodes to which the snapshots and the live files refer.
  size_t DistinctNodes() {
    std::set<ChunkName> nodes;
    std::vector<std::shared_ptr<const KvSnapshot>> states{kv_->Snapshot()};
    for (const SnapshotBounds& snapshot : snapshots_)
      states.push_back(MakeSnapshotView(kv_->Snapshot(), snapshot));
    for (const auto& state : states) {
      for (const auto& [name, length] : ChunksOf(*state)) {
        if (nodes_.nodes.contains(name)) nodes.insert(name);
      }
    }
    return nodes.size();
  }
  std::unique_ptr<KvStore>& kv() { return kv_; }

 private:
  Entries SomeEntries(uint64_t count) {
    Entries entries;
    // Runs of numbers that other files have, too, at other places.
    while (entries.size() < count) {
      if (random_.OneIn(10)) entries.push_back(RecipeEntry::Hole(1 + random_.Below(9000)));
      uint64_t number = random_.OneIn(3) ? random_.Below(5000) : 10'000 + 40 * next_number_++;
      for (uint64_t run = 1 + random_.Below(40); run > 0 && entries.size() < count; --run)
        entries.push_back(NumberedEntry(number++));
    }
    return Merged(entries);
  }

  void Write(const std::vector<Mutation>& changes) {
    std::vector<std::string_view> changed;
    for (const Mutation& change : changes) changed.push_back(change.key);
    std::vector<Mutation> all = changes;
    REQUIRE_OK(VersionKeeper(snapshots_).Keep(*kv_->Snapshot(), changed, all));
    REQUIRE_OK(kv_->Write(all));
  }
  void Save(uint64_t inode, const Recipe& recipe) {
    Write({{InodeKey(inode), FileOf(recipe).Encode()}});
    files_[inode] = recipe;
  }
  uint64_t AnyFile() {
    auto file = files_.begin();
    std::advance(file, static_cast<ptrdiff_t>(random_.Below(files_.size())));
    return file->first;
  }

  // Overwrites some chunks in the middle, or cuts the end off.
  void ChangePart() {
    if (files_.empty()) return;
    const uint64_t inode = AnyFile();
    const Recipe& old = files_[inode];
    RecipeReader reader(nodes_, old);
    std::vector<uint64_t> offsets;
    for (reader.Seek(0); reader.Valid(); reader.Next()) offsets.push_back(reader.entry_offset());
    offsets.push_back(old.size());
    const uint64_t first = random_.Below(offsets.size());
    Splice splice{offsets[first], old.size(), {}};
    if (!random_.OneIn(5)) {
      splice.end = offsets[std::min(offsets.size() - 1, first + random_.Below(20))];
      splice.entries = SomeEntries(1 + random_.Below(20));
    }
    const auto changed = SpliceRecipe(nodes_, old, {splice});
    REQUIRE_OK(changed);
    Save(inode, *changed);
  }
  // A file gets the content of another one.
  void Share() {
    if (files_.empty()) return;
    const Recipe content = files_[AnyFile()];
    Save(random_.OneIn(2) ? next_inode_++ : AnyFile(), content);
  }
  void RemoveAny() {
    if (!files_.empty()) Remove(AnyFile());
  }
  void ChangeOverlay() {
    if (files_.empty()) return;
    const std::string key = OverlayKey(AnyFile(), random_.Below(2));
    if (random_.OneIn(3)) return Write({{key, std::nullopt}});
    OverlayExtent extent;
    extent.kind = OverlayExtent::Kind::kChunks;
    for (uint64_t i = 1 + random_.Below(3); i-- > 0;) {
      const uint64_t number = random_.Below(6000);
      extent.slices.push_back({.name = NumberedName(number),
                               .chunk_length = static_cast<uint32_t>(LengthOf(number)),
                               .skip = 3,
                               .length = 50});
      extent.length += 50;
    }
    Write({{key, extent.Encode()}});
  }

  Chunks ChunksOf(const KvSnapshot& state) {
    Chunks chunks;
    const auto walk = [&](Table table, const std::function<void(std::string_view)>& add) {
      const KeyRange range = RangeOf(table);
      const auto iterator = state.NewIteratorBelow(range.end);
      for (iterator->Seek(range.begin); iterator->Valid(); iterator->Next()) add(iterator->value());
      REQUIRE_OK(iterator->status());
    };
    walk(Table::kInode, [&](std::string_view value) {
      const auto record = InodeRecord::Decode(value);
      REQUIRE_OK(record);
      REQUIRE_OK(ForEachNode(nodes_, record->recipe, [&](const RecipeChild& node, uint8_t) {
        chunks[node.name] = node.node_bytes;
        return true;
      }));
      REQUIRE_OK(ForEachChunk(nodes_, record->recipe,
                              [&](const ChunkName& name, uint64_t length, uint64_t) {
                                chunks[name] = length;
                                return Status::Ok();
                              }));
    });
    walk(Table::kOverlay, [&](std::string_view value) {
      const auto extent = OverlayExtent::Decode(value);
      REQUIRE_OK(extent);
      for (const ChunkSlice& slice : extent->slices) chunks[slice.name] = slice.chunk_length;
    });
    return chunks;
  }

  Random random_;
  MemoryDisk disk_;
  std::unique_ptr<KvStore> kv_;
  MemoryNodeStore nodes_;
  std::vector<SnapshotBounds> snapshots_;
  SnapshotNumber newest_ = 0;
  std::map<uint64_t, Recipe> files_;
  uint64_t next_inode_ = 2;
  uint64_t next_number_ = 0;
};

SnapshotSpaceOptions Options(size_t memory_bytes = kLittleMemory) {
  SnapshotSpaceOptions options;
  options.spill_directory = kSpill;
  options.memory_bytes = memory_bytes;
  options.minimum_free_bytes = 0;
  return options;
}

std::vector<std::string> FilesIn(Env& env) {
  std::vector<std::string> names;
  const auto listed = env.ListDirectory(kSpill);
  if (!listed.ok()) return names;
  for (const DirectoryEntry& entry : *listed) names.push_back(entry.name);
  return names;
}

}  // namespace

TEST_CASE("new and freed bytes are those of the sets of chunks, in any history") {
  const uint64_t seed = GENERATE(range(uint64_t{1}, uint64_t{7}));
  History history(seed);
  SimEnv env;
  bool has_new = false;
  bool has_freed = false;
  for (int step = 1; step <= 80; ++step) {
    history.Step();
    if (step % 20 != 0) continue;
    INFO("seed " << seed << ", step " << step);
    const auto expected = history.Expected();
    // With little memory, references are sorted in files.
    const SnapshotSpaces spilled = history.Measure(env, Options());
    REQUIRE(spilled.snapshots == expected);
    REQUIRE(history.Measure(env, Options(16u << 20)).snapshots == expected);
    for (const SnapshotBytes& bytes : expected) {
      has_new = has_new || bytes.new_bytes > 0;
      has_freed = has_freed || bytes.freed_bytes > 0;
    }
  }
  CHECK(has_new);
  CHECK(has_freed);
}

TEST_CASE("little memory makes all references and nodes go through files, which have no names") {
  History history(3);
  for (int i = 0; i < 4; ++i) {
    history.MakeFile(10'000);
    history.TakeSnapshot();
  }
  SimEnv env;
  bool named = false;
  SnapshotSpaceOptions options = Options();
  options.pace = [&] {
    named = named || !FilesIn(env).empty();
    return Status::Ok();
  };
  const SnapshotSpaces spaces = history.Measure(env, options);
  CHECK(spaces.snapshots == history.Expected());
  CHECK(spaces.spilled_bytes > 4 * 10'000 * sizeof(TwoWords));
  CHECK_FALSE(named);
  CHECK(FilesIn(env).empty());
  CHECK(history.Measure(env, Options(16u << 20)).spilled_bytes == 0);
}

TEST_CASE("each node is read once, whatever number of files and snapshots share it") {
  History history(5);
  history.MakeFile(30'000);
  for (int step = 0; step < 100; ++step) history.Step();
  REQUIRE(history.snapshots().size() > 10);
  SimEnv env;
  history.nodes().ResetCounts();
  const SnapshotSpaces spaces = history.Measure(env, Options());
  CHECK(spaces.nodes == history.nodes().gets);
  CHECK(spaces.nodes > 200);
  CHECK(spaces.nodes == history.DistinctNodes());
}

TEST_CASE("the nodes of a file are read in the order in which they lie in the file") {
  // Passes nodes on, and notes their order.
  class NotedNodes final : public NodeStore {
   public:
    explicit NotedNodes(NodeStore& nodes) : nodes_(nodes) {}
    Result<ChunkName> PutNode(ByteView node) override { return nodes_.PutNode(node); }
    Result<std::shared_ptr<const Bytes>> GetNode(const ChunkName& name, uint32_t length) override {
      read.push_back(name);
      return nodes_.GetNode(name, length);
    }
    std::vector<ChunkName> read;

   private:
    NodeStore& nodes_;
  };
  History history(13);
  const uint64_t file = history.MakeFile(3000);
  history.TakeSnapshot();
  history.Copy(file);
  const auto record = InodeRecord::Decode(**history.kv()->Get(InodeKey(file)));
  REQUIRE_OK(record);
  REQUIRE(record->recipe.height == 1);
  std::vector<ChunkName> leaves;
  for (const RecipeChild& child : record->recipe.children) leaves.push_back(child.name);
  REQUIRE(leaves.size() > 10);
  NotedNodes nodes(history.nodes());
  SimEnv env;
  REQUIRE_OK(
      MeasureSnapshots(env, *history.kv()->Snapshot(), nodes, history.snapshots(), Options()));
  CHECK(nodes.read == leaves);
}

TEST_CASE("chunks that garbage collection keeps for another reason are not freed") {
  History history(7);
  for (int i = 0; i < 3; ++i) {
    const uint64_t file = history.MakeFile(1000);
    history.TakeSnapshot();
    history.Remove(file);
  }
  std::set<ChunkName> kept;
  for (uint64_t number = 0; number < 12'000; number += 3) kept.insert(NumberedName(number));
  SimEnv env;
  SnapshotSpaceOptions options = Options();
  options.more = [&](const std::function<Status(const ChunkName&)>& visit) {
    for (const ChunkName& name : kept) SILTFS_RETURN_IF_ERROR(visit(name));
    return Status::Ok();
  };
  const auto spaces = history.Measure(env, options).snapshots;
  CHECK(spaces == history.Expected(kept));
  CHECK(spaces != history.Expected());
}

TEST_CASE("a store without snapshots is not read") {
  History history(1);
  history.MakeFile(5000);
  SimEnv env;
  history.nodes().ResetCounts();
  const SnapshotSpaces spaces = history.Measure(env, Options());
  CHECK(spaces.snapshots.empty());
  CHECK(history.nodes().gets == 0);
}

TEST_CASE(
    "the deletion of a snapshot leaves the others' new bytes with the next one that has them") {
  History history(11);
  history.MakeFile(2000);
  history.TakeSnapshot();
  history.TakeSnapshot();
  SimEnv env;
  const auto before = history.Measure(env, Options()).snapshots;
  CHECK(before[0].new_bytes > 0);
  CHECK(before[1] == SnapshotBytes{});
  history.Delete(0);
  const auto after = history.Measure(env, Options()).snapshots;
  CHECK(after == std::vector<SnapshotBytes>{{before[0].new_bytes, 0}});
}

TEST_CASE("a measurement ends with the error of its pace, of a node, or of a full disk") {
  History history(2);
  history.MakeFile(30'000);
  history.TakeSnapshot();
  SimEnv env;
  const auto measure = [&](const SnapshotSpaceOptions& options) {
    return MeasureSnapshots(env, *history.kv()->Snapshot(), history.nodes(), history.snapshots(),
                            options)
        .status();
  };
  for (int calls = 0;; ++calls) {
    int left = calls;
    SnapshotSpaceOptions options = Options();
    options.pace = [&] {
      return left-- > 0 ? Status::Ok() : Status(StatusCode::kInterrupted, "enough");
    };
    const Status outcome = measure(options);
    if (outcome.ok()) {
      CHECK(calls > 10);
      break;
    }
    REQUIRE(outcome.Is(StatusCode::kInterrupted));
  }
  history.nodes().ResetCounts();
  history.nodes().failing_get = 100;
  REQUIRE_CODE(measure(Options()), kIoError);
  history.nodes().failing_get.reset();
  env.SetCapacity(100u << 10);
  REQUIRE_CODE(measure(Options()), kNoSpace);
  CHECK(FilesIn(env).empty());
  REQUIRE_OK(measure(Options(16u << 20)));
}

TEST_CASE("a malformed record or version ends a measurement with the name of its inode") {
  History history(2);
  history.MakeFile(10);
  history.TakeSnapshot();
  SimEnv env;
  REQUIRE_OK(history.kv()->Write({{InodeKey(77), "malformed"}}));
  const Status outcome = MeasureSnapshots(env, *history.kv()->Snapshot(), history.nodes(),
                                          history.snapshots(), Options())
                             .status();
  REQUIRE_CODE(outcome, kCorruption);
  CHECK(outcome.ToString().find("inode 77") != std::string::npos);
  REQUIRE_OK(history.kv()->Write(
      {{InodeKey(77), std::nullopt}, {VersionKey(InodeKey(2), 1), std::string(1, '\x07')}}));
  REQUIRE_CODE(MeasureSnapshots(env, *history.kv()->Snapshot(), history.nodes(),
                                history.snapshots(), Options()),
               kCorruption);
}

}  // namespace siltfs::testing
