// A file's content in a chunk store on a simulated disk, and the bytes that it should hold.
#pragma once

#include <memory>
#include <vector>

#include "fs/chunks/chunk_store.h"
#include "fs/content/file_content.h"
#include "index/chunk_index.h"
#include "store/env/sim_env.h"

namespace siltfs::testing {

// An empty chunk store.
class ChunkStoreFixture {
 public:
  // `block_cache_bytes` 0: each Get of a chunk reads its segment.
  explicit ChunkStoreFixture(size_t block_cache_bytes = 12u << 20);

  ChunkStore& chunks() { return *chunks_; }
  const std::shared_ptr<const ChunkerTables>& tables() const { return tables_; }
  // Distinct chunks stored so far, including those not appended yet.
  uint64_t StoredChunks();
  uint64_t Reads();  // reads of segments
  void Flush();

 private:
  SimEnv env_;
  std::unique_ptr<ChunkIndex> index_;
  std::shared_ptr<const ChunkerTables> tables_;
  std::unique_ptr<IdAllocator> ids_;
  std::unique_ptr<ChunkParts> parts_;
  std::unique_ptr<ChunkStore> chunks_;
  uint64_t commits_ = 0;
};

// A file in such a chunk store. A failure in its functions fails the test.
class TestFile {
 public:
  explicit TestFile(ChunkStoreFixture& store);

  void Write(uint64_t offset, ByteView data);
  void Truncate(uint64_t size);
  void PunchHole(uint64_t offset, uint64_t length);
  // Folds `source`, which may be this file, first.
  void Clone(TestFile& source, const CloneRange& range);
  void Fold(FileContent::FoldMode mode = FileContent::FoldMode::kAll);
  // Folds a part, continuing where the last fold ended.
  void FoldSome(FileContent::FoldMode mode = FileContent::FoldMode::kKeepTail);
  // Folds, and requires that the content is unchanged and the recipe well-formed.
  void FoldAndCheck(FileContent::FoldMode mode = FileContent::FoldMode::kAll);

  Bytes Read(uint64_t offset, size_t size) const;
  // Requires that the whole content is as written.
  void RequireContent() const;
  std::vector<RecipeEntry> Entries() const;
  uint64_t FindData(uint64_t offset) const;
  uint64_t FindHole(uint64_t offset) const;

  const Bytes& expected() const { return expected_; }
  const InodeRecord& record() const { return record_; }
  const Overlay& overlay() const { return overlay_; }
  const Recipe& recipe() const { return record_.recipe; }

 private:
  ChunkStoreFixture& store_;
  FileContent content_;
  InodeRecord record_;
  Overlay overlay_;
  Bytes expected_;
  uint64_t fold_from_ = 0;
};

}  // namespace siltfs::testing
