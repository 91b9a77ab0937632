// The file of a SortedStore's negative filter (ribbon_filter.h). The filter rules out most names
// that are not in the store, so that their lookups need no read. The file lies beside the store's
// file and is written together with it. Each slice is written from front to back. Format:
// docs/format.md, "SILT SortedStore filter".
//
// The filter is optional. If it is missing or damaged, or belongs to another store, the store gives
// the same answers with more reads until the next merge.
//
// Thread-safety: a writer belongs to one thread; a RibbonFile is const. Memory: 128 KiB while
// writing, for any size; 64 KiB plus the slice while reading a slice. Durability: the file is
// durable only after Finish and the caller's SyncDirectory.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "index/flash/ribbon_filter.h"
#include "index/flash/store_files.h"
#include "index/flash/throttle.h"

namespace siltfs {

class RibbonFileWriter {
 public:
  // Blocks of each slice that are written at once.
  static constexpr uint32_t kBlocksAtOnce = 8;
  // Memory of a writer: kBlocksAtOnce blocks of each slice, and the equations of one block.
  static constexpr uint64_t kMostMemory = uint64_t{RibbonShape::kMostBlockWords} *
                                          sizeof(uint64_t) * (kRibbonSlices * kBlocksAtOnce + 64);

  // Creates the file for the SortedStore `store`, with about `expected_entries` entries. The writer
  // calls `throttle` before every write. `throttle` and `env` must outlive the writer.
  static Result<std::unique_ptr<RibbonFileWriter>> Create(Env& env, const std::string& directory,
                                                          const StoreFileId& store,
                                                          unsigned partition_bits,
                                                          uint64_t expected_entries,
                                                          Throttle& throttle);
  // Removes a file that was not finished.
  ~RibbonFileWriter();
  RibbonFileWriter(const RibbonFileWriter&) = delete;
  RibbonFileWriter& operator=(const RibbonFileWriter&) = delete;

  // Adds an entry's hash; call in rising order.
  Status Add(uint64_t hash);
  // Ends the file as the filter of the store file with this fingerprint, and syncs it.
  Status Finish(uint64_t store_fingerprint);

 private:
  RibbonFileWriter(Env& env, const std::string& directory, std::shared_ptr<File> file,
                   const StoreFileId& id, const RibbonShape& shape, Throttle& throttle);
  Status EndBlock();
  Status WriteBlocks();

  Env& env_;
  const std::string directory_;
  const std::shared_ptr<File> file_;
  const StoreFileId id_;
  const RibbonShape shape_;
  Throttle& throttle_;
  bool whole_ = false;
  RibbonBlock block_;
  uint32_t blocks_ = 0;          // complete blocks
  uint32_t blocks_written_ = 0;  // of the complete blocks
  // For each slice, the complete blocks that are not yet written.
  std::array<std::vector<uint64_t>, kRibbonSlices> words_;
  std::array<uint64_t, kRibbonSlices> checksums_{};  // of the written blocks
};

class RibbonFile {
 public:
  // Opens the file and reads its footer. kNotFound if it is missing; kCorruption if it is not the
  // whole filter of the SortedStore with this partition, id and fingerprint.
  static Result<std::shared_ptr<const RibbonFile>> Open(Env& env, const std::string& directory,
                                                        const StoreFileId& store,
                                                        unsigned partition_bits,
                                                        uint64_t store_fingerprint);

  const StoreFileId& id() const { return id_; }
  const RibbonShape& shape() const { return shape_; }
  uint64_t size() const;  // bytes
  // Reads slice `number` (< kRibbonSlices). kCorruption if its checksum is wrong.
  Result<std::shared_ptr<const RibbonSlice>> ReadSlice(unsigned number) const;

 private:
  RibbonFile(std::shared_ptr<File> file, const StoreFileId& id, const RibbonShape& shape,
             const std::array<uint64_t, kRibbonSlices>& checksums)
      : file_(std::move(file)), id_(id), shape_(shape), checksums_(checksums) {}

  const std::shared_ptr<File> file_;  // without the page cache, where possible
  const StoreFileId id_;
  const RibbonShape shape_;
  const std::array<uint64_t, kRibbonSlices> checksums_;
};

}  // namespace siltfs
