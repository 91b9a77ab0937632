// What a regular file holds: reads, writes and truncation over recipe, overlay and chunks, and the
// fold that turns overlay into recipe.
//
// A write goes into the overlay as plain bytes; where it continues a stream, complete chunks are
// cut off the front of the stream, put into the chunk store and replace the plain bytes, so only
// the tail of a stream stays plain. Fold makes a recipe of everything.
//
// Not thread-safe for one file: the caller holds the inode's lock (exclusively for all but Read).
// Nothing here touches metadata: the caller turns the changed record and overlay into mutations.
// Errors: kNoSpace, kReadOnly, kIoError from the chunk store, kCorruption for exactly the damaged
// range; kFileTooLarge. After a failure record and overlay still say what the file holds (a failed
// Write has not written).
#pragma once

#include <memory>

#include "chunker/chunker.h"
#include "fs/core/clone.h"
#include "fs/core/overlay.h"
#include "fs/dedup/chunk_store.h"
#include "fs/meta/inode_record.h"

namespace siltfs {

class FileContent {
 public:
  // `chunks` must outlive it.
  FileContent(ChunkStore& chunks, std::shared_ptr<const ChunkerTables> tables);

  // Fills `out` from `offset`; the number of bytes, short only at the end of the file.
  Result<size_t> Read(const InodeRecord& record, const Overlay& overlay, uint64_t offset,
                      MutableByteView out) const;

  // What cuts the files.
  const ChunkerKernel& kernel() const { return tables_->kernel(); }

  Status Write(InodeRecord& record, Overlay& overlay, uint64_t offset, ByteView data) const;
  // Also makes a file longer; the new part reads as zeros.
  Status Truncate(InodeRecord& record, Overlay& overlay, uint64_t size) const;

  // Makes [offset, offset + length) zeros that take no space; what is behind the end of the file
  // stays outside it.
  static void PunchHole(const InodeRecord& record, Overlay& overlay, uint64_t offset,
                        uint64_t length);
  // The first place at or behind `offset` that holds data, or that is in a hole; the end of the
  // file if there is none. `offset` < record.size.
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
    kKeepTail,  // leaves plain bytes at the end of the file to whoever goes on writing there
  };
  Status Fold(InodeRecord& record, Overlay& overlay, FoldMode mode) const {
    return FoldWindow(record, overlay, {0, record.size}, mode);
  }
  // Folds as much as can be done without keeping others waiting (some 64 changed places, or a
  // megabyte of plain bytes and parts of chunks), of what begins at or behind `from`, or anywhere
  // if nothing does. Where to go on from.
  Result<uint64_t> FoldSome(InodeRecord& record, Overlay& overlay, uint64_t from,
                            FoldMode mode) const;
  // There is no more than FoldSome would fold.
  static bool FoldsAtOnce(const Overlay& overlay);
  // The recipe is all that the file holds, and reaches to its end: there is nothing to fold. What
  // the caller has not saved does not count.
  static bool IsSettled(const InodeRecord& record);
  // The overlay has grown so large that it should be folded while the file is still written to.
  static bool NeedsFold(const Overlay& overlay);

  // Bytes of the file that are not holes: exact after a fold, else an upper bound (what is
  // overwritten counts twice).
  static uint64_t AllocatedBytes(const InodeRecord& record);
  static uint64_t ChunkReferences(const InodeRecord& record);

 private:
  // Cuts the stream that `data` is a part of, after what waits as plain bytes before it and with
  // what waits behind it, as far as chunks end in it; the rest waits.
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
