// A store for the benchmark of the mark: real metadata, real recipe trees in real segments, and a
// real index, for chunks that nobody ever stored. All of it comes from numbers, so that what is
// live is known without a list.
//
// Numbers [0, entries) are chunks in segments of kSegmentChunks, each with an entry in the index.
// One in kDeadEvery is referred to by nobody. The others make up files: large ones, each followed
// by small ones that together hold a tenth of it. One in kCopyEvery large files is there twice, by
// the same tree; the chunks of one in kOverlayEvery small files stand in its overlay.
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

struct MarkStoreFigures {
  uint64_t files = 0;
  uint64_t nodes = 0;
  uint64_t dead = 0;        // chunks
  uint64_t references = 0;  // from recipes and overlays, those of files that are there twice too
};

class MarkStore {
 public:
  static constexpr uint64_t kSegmentChunks = 4096;
  static constexpr uint64_t kDeadEvery = 8;

  // In an empty directory that exists. `env` must outlive it.
  MarkStore(Env& env, std::string directory, uint64_t entries, uint64_t seed);

  MarkStoreFigures Make();
  // As a mount opens it, and until its index is at full speed; changes nothing.
  void Open();

  // Once open.
  KvStore& metadata() { return *kv_; }
  ChunkStore& chunks() { return *chunks_; }
  ChunkIndex& index() { return *index_; }
  std::string SpillDirectory() const;

  // Of one of the chunks' segments.
  static bool IsDead(uint64_t number) { return number % kDeadEvery == kDeadEvery - 1; }
  static bool IsOfChunks(SegmentId segment) { return segment >= kFirstSegment; }
  uint64_t SegmentCount() const { return (entries_ + kSegmentChunks - 1) / kSegmentChunks; }
  SegmentId SegmentOf(uint64_t number) const;
  uint32_t LiveIn(SegmentId segment) const;
  std::vector<FooterChunk> ChunksOf(SegmentId segment) const;

 private:
  // Far from those that recipe nodes come to lie in.
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
  // Destroyed in reverse.
  std::unique_ptr<ChunkIndex> index_;
  std::unique_ptr<KvStore> kv_;
  std::unique_ptr<IdAllocator> ids_;
  std::unique_ptr<ChunkStore> chunks_;

  MarkStoreFigures figures_;
  uint64_t next_number_ = 0;
  uint64_t next_inode_ = 100;
  uint64_t large_files_ = 0;
  uint64_t small_files_ = 0;
  std::vector<Mutation> group_;
  uint64_t commits_ = 0;
};

}  // namespace siltfs
