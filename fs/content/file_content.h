// The content of a regular file: reads, writes and truncation over recipe, overlay and chunks, and
// the fold that turns the overlay into a recipe.
//
// A write goes into the overlay as raw bytes. If it continues a stream that has enough raw bytes,
// all complete chunks of these bytes are cut off and put into the chunk store. Slices of these
// chunks replace the raw bytes in the overlay, so only the tail of the stream stays raw. Fold turns
// the recipe and the overlay into one recipe.
//
// Not thread-safe for one file: the caller holds the inode's lock, exclusively for all but Read,
// FindData and FindHole.
// Nothing here touches metadata: the caller turns the changed record and overlay into mutations.
// Errors: the chunk store returns kNoSpace, kReadOnly and kIoError. A read returns kCorruption only
// if its range includes bytes of a damaged chunk or recipe node. Write and Truncate return
// kFileTooLarge if the file would exceed kMaxRecipeBytes. After a failure, record and overlay still
// describe the file's content. A failed Write has written nothing.
#pragma once

#include <memory>

#include "chunker/chunker.h"
#include "fs/chunks/chunk_store.h"
#include "fs/content/clone.h"
#include "fs/content/overlay.h"
#include "fs/records/inode_record.h"

namespace siltfs {

class FileContent {
 public:
  // `chunks` must outlive the object.
  FileContent(ChunkStore& chunks, std::shared_ptr<const ChunkerTables> tables);

  // Fills `out` with the bytes from `offset` on. Returns the number of bytes, fewer than asked for
  // only at the end of the file.
  Result<size_t> Read(const InodeRecord& record, const Overlay& overlay, uint64_t offset,
                      MutableByteView out) const;

  // The chunker kernel (chunker/scan/kernels.h) that cuts the files.
  const ChunkerKernel& kernel() const { return tables_->kernel(); }
  const ChunkerTables& tables() const { return *tables_; }

  Status Write(InodeRecord& record, Overlay& overlay, uint64_t offset, ByteView data) const;
  // Sets the size, which may grow; the new part reads as zeros.
  Status Truncate(InodeRecord& record, Overlay& overlay, uint64_t size) const;

  // Makes [offset, offset + length) zeros that take no space. Does not extend the file.
  static void PunchHole(const InodeRecord& record, Overlay& overlay, uint64_t offset,
                        uint64_t length);
  // FindData returns the first offset at or after `offset` that has data. FindHole returns the
  // first such offset that is in a hole. Both return record.size if there is none. `offset` must be
  // below record.size.
  Result<uint64_t> FindData(const InodeRecord& record, const Overlay& overlay,
                            uint64_t offset) const;
  Result<uint64_t> FindHole(const InodeRecord& record, const Overlay& overlay,
                            uint64_t offset) const;
  Result<bool> HasFewParts(const InodeRecord& source, uint64_t offset, uint64_t length) const {
    return siltfs::HasFewParts(chunks_, source, offset, length);
  }
  // See CloneIntoFile.
  Status Clone(const InodeRecord& source, const CloneRange& range, InodeRecord& target,
               Overlay& target_overlay) const {
    return CloneIntoFile(chunks_, source, range, target, target_overlay);
  }

  enum class FoldMode : uint8_t {
    kAll,
    kKeepTail,  // leaves raw bytes at the end of the file, for the writes that continue there
  };
  Status Fold(InodeRecord& record, Overlay& overlay, FoldMode mode) const {
    return FoldWindow(record, overlay, {0, record.size}, mode);
  }
  // Folds a part of the file that is small enough not to delay other users of the file for long.
  // The part has at most 64 ranges (Overlay::StretchFrom), and at most 1 MiB of raw bytes and parts
  // of chunks, unless its first extent has more. It starts at the first extent at or after `from`.
  // If there is none, it starts at the first extent of the file. Returns the offset at which
  // the next call should continue.
  Result<uint64_t> FoldSome(InodeRecord& record, Overlay& overlay, uint64_t from,
                            FoldMode mode) const;
  // Whether one FoldSome folds everything.
  static bool FoldsAtOnce(const Overlay& overlay);
  // Whether there is nothing to fold: the recipe is the whole content and reaches the end of the
  // file. Ignores overlay changes that are not yet in the record (Overlay::Describe).
  static bool IsFolded(const InodeRecord& record);
  // Whether the overlay is so large that it should be folded while the file is still being written.
  static bool NeedsFold(const Overlay& overlay);

  // Bytes of the file that are not holes. The number is exact for a folded file. For other
  // files it is an upper bound, because it also counts the bytes of the recipe that the overlay
  // overrides.
  static uint64_t AllocatedBytes(const InodeRecord& record);
  static uint64_t ChunkReferences(const InodeRecord& record);

 private:
  // Cuts the stream of the raw bytes in `before`, then `data`, then the raw bytes in `behind`. The
  // bytes after the last complete chunk of the stream stay raw.
  Status CutStream(Overlay& overlay, Overlay::Range before, ByteView data,
                   Overlay::Range behind) const;
  bool IsStreamStart(const InodeRecord& record, const Overlay& overlay, uint64_t offset) const;
  Result<uint64_t> Find(const InodeRecord& record, const Overlay& overlay, uint64_t offset,
                        bool hole) const;
  Status FoldWindow(InodeRecord& record, Overlay& overlay, Overlay::Range window,
                    FoldMode mode) const;
  Status ReadRecipe(const InodeRecord& record, uint64_t offset, MutableByteView out) const;

  ChunkStore& chunks_;
  const std::shared_ptr<const ChunkerTables> tables_;
};

}  // namespace siltfs
