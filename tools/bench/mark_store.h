// A store for the benchmark of the mark: real metadata, real recipe trees in real segments, and a
// real index, for chunks that were never stored. All of it is computed from numbers, so the live
// chunks are known without a list.
//
// Numbers [0, entries) are chunks in segments of kSegmentChunks, each with an entry in the index.
// One in kDeadEvery has no reference. The others form files: large ones, each followed by small
// ones that together hold a tenth of it. One in kCopyEvery large files exists twice, with the same
// tree. The chunks of one in kOverlayEvery small files are in its overlay.
//
// Errors: throws BenchFailure. Thread-safety: one thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fs/dedup/chunk_store.h"
#include "fs/meta/id_allocator.h"
#include "fs/meta/inode_record.h"
#include "fs/meta/kv_store.h"
#include "index/chunk_index.h"
#include "store/env/env.h"
#include "store/segment/segment_footer.h"
#include "tools/bench/index_keys.h"

namespace siltfs {

struct MarkStoreStatistics {
  uint64_t files = 0;
  uint64_t nodes = 0;
  uint64_t dead = 0;        // chunks
  uint64_t references = 0;  // from recipes and overlays, also those of the copies
};

class MarkStore {
 public:
  static constexpr uint64_t kSegmentChunks = 4096;
  static constexpr uint64_t kDeadEvery = 8;

  // `directory` must exist and be empty. `env` must outlive it.
  MarkStore(Env& env, std::string directory, uint64_t entries, uint64_t seed);

  MarkStoreStatistics Make();
  // Opens it as a mount does, and waits until its index is at full speed; changes nothing.
  void Open();

  // Valid after Open.
  KvStore& metadata() { return *kv_; }
  ChunkStore& chunks() { return *chunks_; }
  ChunkIndex& index() { return *index_; }
  std::string SpillDirectory() const;

  static bool IsDead(uint64_t number) { return number % kDeadEvery == kDeadEvery - 1; }
  // True for a segment of chunks, false for one of recipe nodes.
  static bool IsOfChunks(SegmentId segment) { return segment >= kFirstSegment; }
  uint64_t SegmentCount() const { return (entries_ + kSegmentChunks - 1) / kSegmentChunks; }
  SegmentId SegmentOf(uint64_t number) const;
  uint32_t LiveIn(SegmentId segment) const;
  std::vector<FooterChunk> ChunksOf(SegmentId segment) const;

 private:
  // Far above the ids of segments with recipe nodes.
  static constexpr SegmentId kFirstSegment = 1U << 24;

  void FillIndex();
  void WriteFiles();
  void WriteLargeFile(uint64_t chunks);
  void WriteSmallFile(uint64_t chunks);
  bool NextLive(uint64_t& number);
  void AddFile(const InodeRecord& record);
  void Commit();
  void OpenMetadata();
  void OpenIndexFor(bool read_only);
  void OpenChunks(bool read_only);
  void Close();

  Env& env_;
  const std::string directory_;
  const uint64_t entries_;
  const IndexKeys keys_;
  // Destroyed in reverse order.
  std::unique_ptr<ChunkIndex> index_;
  std::unique_ptr<KvStore> kv_;
  std::unique_ptr<IdAllocator> ids_;
  std::unique_ptr<ChunkStore> chunks_;

  MarkStoreStatistics statistics_;
  uint64_t next_number_ = 0;
  uint64_t next_inode_ = 100;
  uint64_t large_files_ = 0;
  uint64_t small_files_ = 0;
  std::vector<Mutation> group_;
  uint64_t commits_ = 0;
};

}  // namespace siltfs
