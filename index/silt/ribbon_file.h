// The file of a SortedStore's negative filter (ribbon_filter.h): it tells of most names that are
// not in the store that they are not, and spares their lookups the read. It lies beside the store
// and is written along with it, from front to back of every slice. Format: docs/format.md, "SILT
// SortedStore filter".
//
// Nothing depends on it. A store whose filter is missing, damaged or another store's answers the
// same with more reads, until the next merge.
//
// Thread-safety: a writer belongs to one thread; a RibbonFile is const. Memory: 128 KiB while it is
// written, however large it gets; 64 KiB while a slice is read, and the slice. Durability: it
// counts only after Finish, and SyncDirectory by its user.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "index/silt/ribbon_filter.h"
#include "index/silt/store_files.h"
#include "index/silt/throttle.h"

namespace siltfs {

class RibbonFileWriter {
 public:
  // Blocks that are written at once: of each slice that many.
  static constexpr uint32_t kBlocksAtOnce = 8;
  // What a writer takes: those, and the equations of a block.
  static constexpr uint64_t kMostMemory = uint64_t{RibbonShape::kMostBlockWords} *
                                          sizeof(uint64_t) * (kRibbonSlices * kBlocksAtOnce + 64);

  // For the SortedStore of this partition and id, with so many entries at most. `throttle` is paid
  // for every write; it and `env` must outlive the writer.
  static Result<std::unique_ptr<RibbonFileWriter>> Create(Env& env, const std::string& directory,
                                                          const StoreFileId& store,
                                                          unsigned partition_bits,
                                                          uint64_t expected_entries,
                                                          Throttle& throttle);
  // Takes a file away that was not finished.
  ~RibbonFileWriter();
  RibbonFileWriter(const RibbonFileWriter&) = delete;
  RibbonFileWriter& operator=(const RibbonFileWriter&) = delete;

  // An entry's hash; they come in rising order.
  Status Add(uint64_t hash);
  // Ends the file as that of the store whose file has this fingerprint, and syncs it.
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
  uint32_t blocks_ = 0;          // that have ended
  uint32_t blocks_written_ = 0;  // of them
  // Of each slice the blocks that have ended and are not written.
  std::array<std::vector<uint64_t>, kRibbonSlices> words_;
  std::array<uint64_t, kRibbonSlices> checksums_{};  // of what is written
};

class RibbonFile {
 public:
  // Reads the footer. kNotFound; kCorruption if it is not the whole filter of the SortedStore with
  // this partition, id and fingerprint.
  static Result<std::shared_ptr<const RibbonFile>> Open(Env& env, const std::string& directory,
                                                        const StoreFileId& store,
                                                        unsigned partition_bits,
                                                        uint64_t store_fingerprint);

  const StoreFileId& id() const { return id_; }
  const RibbonShape& shape() const { return shape_; }
  uint64_t size() const;  // bytes
  // Slice `number` (< kRibbonSlices). kCorruption if it is not what was written.
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
