// A chunk store on a simulated device, with the parts that a mount adds to it: index, recovery and
// id ranges. A few values in memory take the place of metadata. A commit changes them atomically,
// and power cuts do not affect them.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "fs/chunks/chunk_store.h"
#include "fs/core/maintenance_jobs.h"
#include "fs/meta/id_allocator.h"
#include "fs/recovery/block_replay.h"
#include "fs/recovery/segment_recovery.h"
#include "store/env/sim_env.h"
#include "store/env/space_reserve.h"
#include "store/segment/base_chooser.h"
#include "store/segment/directory_segment_store.h"
#include "tests/fs/chunks/hint_index.h"

namespace siltfs::testing {

enum class TestIndex : uint8_t {
  kMap,
  kSilt,       // with LogStores so small that they are converted often
  kLargeSilt,  // as in a real store
};

struct StoreSettings {
  TestIndex index = TestIndex::kMap;
  uint32_t segment_bytes = 64u << 10;
  uint32_t block_plain_bytes = 16u << 10;
  uint32_t chunk_max = 64u << 10;
  Compression compression;
  size_t worker_threads = 2;
  size_t pipeline_bytes = 256u << 10;
  size_t idle_block_plain_bytes = 0;
  size_t block_cache_bytes = 256u << 10;
  size_t footer_cache_bytes = 256u << 10;
  uint64_t minimum_free_bytes = 0;
  // If set, the store may have deltas, with bases that this chooser offers.
  BaseChooser* chooser = nullptr;
};

// The metadata of the store.
struct CommittedState {
  uint64_t last_commit = 0;
  uint64_t collisions = 0;
  IdRanges ids;
  std::map<SegmentId, SegmentRecord> segments;
  std::map<SegmentId, SegmentRecord> replacements;
  std::map<std::pair<SegmentId, uint32_t>, DamagedBlock> damage;
  std::set<SegmentId> secondary;
  std::set<SegmentId> victims;  // the segments of `secondary` that were victims of GC

  void Apply(const std::vector<Mutation>& mutations);
};

class StoreUnderTest : private CommitPort {
 public:
  explicit StoreUnderTest(StoreSettings settings = {});
  ~StoreUnderTest() override;

  SimEnv& env() { return env_; }
  SegmentStore& segments() { return segments_; }
  const std::string& path() const { return path_; }
  CommittedState& committed() { return committed_; }
  ChunkStore& chunks() { return *chunks_; }
  Recompressor& recompressor() { return jobs_->recompressor(); }
  HintIndex& index() { return *index_; }
  bool is_open() const { return chunks_ != nullptr; }
  std::vector<std::string>& findings() { return findings_; }
  StoreIdentity identity() const;
  SegmentId first_segment() const { return ids_->first_segment(); }
  uint64_t first_sequence() const { return ids_->first_sequence(); }

  // Like a mount: recovery after an unclean end, index, replay, id ranges, chunk store.
  Status TryOpen(bool read_only = false);
  void Open(bool read_only = false);
  // Makes one commit, as metadata does. After a failure nothing is committed.
  Status TryCommit();
  void Commit();
  // Like an unmount.
  Status TryClose();
  void Close();
  void Reopen() {
    Close();
    Open();
  }
  // Ends the process; the device stays as it is.
  void Kill();
  // Ends the process, and cuts the power.
  void Crash(CrashPolicy policy = {});
  void RemoveIndex();

 private:
  Status CommitNow() override { return TryCommit(); }
  // No test collects garbage or scrubs on this store.
  std::shared_ptr<const KvSnapshot> CommittedSnapshot() const override { return nullptr; }
  Status WriteThrough(const std::vector<Mutation>& mutations) override {
    committed_.Apply(mutations);
    return Status::Ok();
  }

  const StoreSettings settings_;
  const std::string path_ = "/store";
  SimEnv env_;
  DirectorySegmentStore segments_{env_, path_};
  CommittedState committed_;
  Superblock superblock_;
  std::vector<std::string> findings_;
  std::unique_ptr<SpaceReserve> reserve_;
  std::unique_ptr<IdAllocator> ids_;
  std::unique_ptr<HintIndex> index_;
  std::unique_ptr<ChunkParts> parts_;
  std::unique_ptr<ChunkStore> chunks_;
  std::unique_ptr<MaintenanceJobs> jobs_;  // null when read-only
};

// --- Helpers of tests

// Incompressible bytes, different for each seed.
Bytes RandomChunk(uint64_t seed, size_t size = 2000);
// Bytes that compress to very few bytes.
Bytes DullChunk(uint64_t seed, size_t size = 2000);

// Chunks that were put, and their names.
struct PutChunks {
  std::vector<Bytes> chunks;
  std::vector<ChunkName> names;

  void Append(const PutChunks& others);
};
Status TryPut(ChunkStore& store, PutChunks& batch);
ChunkName PutOne(ChunkStore& store, ByteView chunk);
// Puts `count` chunks in one call. Their seeds are `first_seed`, first_seed + 1, ...
PutChunks PutMany(ChunkStore& store, uint64_t first_seed, size_t count, size_t size = 2000);

// Chunks that compress better the more of them are compressed together.
PutChunks PutRepetitive(ChunkStore& store, size_t count, size_t size);

// True if Get returns the chunk byte for byte.
bool ComesBack(ChunkStore& store, const ChunkName& name, ByteView chunk);
void RequireAll(ChunkStore& store, const PutChunks& put);

// A block in a segment file: its place and its chunk table.
struct FoundBlock {
  SegmentId segment;
  uint32_t offset;
  SegmentKind kind;
  BlockHead head;
};
std::vector<FoundBlock> AllBlocks(StoreUnderTest& store);
// Where the chunk lies; the last place if there are several.
std::optional<Location> Find(StoreUnderTest& store, const ChunkName& name);
// Returns the number of copies of the chunk.
size_t CountCopies(StoreUnderTest& store, const ChunkName& name);
// Changes one byte of a file, durably.
void FlipByte(StoreUnderTest& store, const std::string& path, uint64_t offset);

}  // namespace siltfs::testing
