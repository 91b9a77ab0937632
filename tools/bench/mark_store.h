// A store for the benchmark of the mark (fs/mark/mark.h). Metadata, recipe trees in segments, and
// the index are real; the chunks were never stored. All contents are computed from numbers, so the
// live chunks are known without a list.
//
// Each number below `entries` stands for one chunk, which has an entry in the index. A segment has
// kSegmentChunks chunks. One chunk in kDeadEvery has no reference. All other chunks belong to
// files. After each large file come small files with other chunks, a tenth as many in total. One
// large file in kCopyEvery exists twice, with the same tree. One small file in kOverlayEvery has
// its chunks in its overlay.
//
// Errors: throws BenchFailure. Thread-safety: one thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fs/chunks/chunk_store.h"
#include "fs/kv/kv_store.h"
#include "fs/meta/id_allocator.h"
#include "fs/records/inode_record.h"
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
  // Opens the store as a mount does, and waits until its index is at full speed. Changes nothing.
  void Open();

  // Valid after Open.
  KvStore& metadata() { return *kv_; }
  ChunkStore& chunks() { return *chunks_; }
  ChunkIndex& index() { return *index_; }
  std::string SpillDirectory() const;

  static bool IsDead(uint64_t number) { return number % kDeadEvery == kDeadEvery - 1; }
  // Returns true for a segment of chunks, false for a segment of recipe nodes.
  static bool IsOfChunks(SegmentId segment) { return segment >= kFirstSegment; }
  uint64_t SegmentCount() const { return (entries_ + kSegmentChunks - 1) / kSegmentChunks; }
  SegmentId SegmentOf(uint64_t number) const;
  uint32_t LiveIn(SegmentId segment) const;
  std::vector<FooterChunk> ChunksOf(SegmentId segment) const;

 private:
  // The lowest id of a segment of chunks, far above the ids of segments of recipe nodes.
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
  // The order of these members matters: they are destroyed in reverse order.
  std::unique_ptr<ChunkIndex> index_;
  std::unique_ptr<KvStore> kv_;
  std::unique_ptr<IdAllocator> ids_;
  std::unique_ptr<ChunkParts> parts_;
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
