// Reads one segment, sealed or open: an object of a SegmentStore, or a file.
//
// Thread-safety: const; any number of threads, also while a SegmentWriter appends to the file. A
// block can be read after its Append has returned. Ownership: `codec` must outlive the reader; the
// caller owns results. Cost: one open file and some hundred bytes; caches only the trailer. Errors:
// kNotFound if there is no such file; kCorruption with path and offset, never wrong bytes, if bytes
// differ from those written; kIoError from the device.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "store/base/result.h"
#include "store/base/thread_annotations.h"
#include "store/env/env.h"
#include "store/segment/base_ref.h"
#include "store/segment/base_source.h"
#include "store/segment/block.h"
#include "store/segment/block_codec.h"
#include "store/segment/block_io.h"
#include "store/segment/segment_footer.h"
#include "store/segment/segment_store.h"

namespace siltfs {

class SegmentReader {
 public:
  // Opens the segment and reads nothing. Blocks and footer carry the identity, so no chunk is lost
  // if the header is damaged.
  static Result<std::unique_ptr<SegmentReader>> Open(SegmentStore& segments,
                                                     const SegmentIdentity& identity,
                                                     const BlockCodec& codec);
  // The same, for a segment's file in the store's directory.
  static Result<std::unique_ptr<SegmentReader>> Open(Env& env, const std::string& store,
                                                     const SegmentIdentity& identity,
                                                     const BlockCodec& codec);
  // Opens a file at another path, such as a replacement before its rename.
  static Result<std::unique_ptr<SegmentReader>> OpenAt(Env& env, const std::string& path,
                                                       const SegmentIdentity& identity,
                                                       const BlockCodec& codec);

  const std::string& path() const { return file_->path(); }
  const SegmentIdentity& identity() const { return identity_; }
  const ReadableFile& file() const { return *file_; }

  // Returns the verified header. Also kCorruption if it is the header of another store or segment.
  Result<SegmentHeader> ReadHeader() const;
  // Whether the file ends in an intact trailer. kCorruption if it ends in a damaged one.
  Result<bool> IsSealed() const;
  // Returns the trailer. kInvalidArgument for a segment that is not sealed.
  Result<SegmentTrailer> ReadTrailer() const;
  // Returns the whole verified footer, which takes at most 24 bytes per chunk and 32 per base.
  // kInvalidArgument for a segment that is not sealed.
  Result<SegmentFooter> ReadFooter() const;
  // Returns the footer's entries for the ordinals [first_ordinal, first_ordinal + count), fewer at
  // the end of the segment, in one read. NOT verified: the checksum covers only the whole footer.
  // An entry is a hint, which callers must confirm in the block's chunk table.
  Result<std::vector<FooterChunk>> ReadFooterWindow(uint32_t first_ordinal, uint32_t count) const;
  // The block that contains the ordinal, from the footer's block table. This is a hint, too. Empty
  // if there is no such ordinal.
  Result<std::optional<BlockPlace>> FindBlock(uint32_t ordinal) const;
  // The whole block table, 8 bytes per block, for repeated lookups. Its entries are hints, too.
  Result<BlockTable> ReadBlockTable() const;
  // The block table for a segment with a damaged footer, made from the heads of all whole blocks.
  // Reads these heads and all damaged bytes between them. kCorruption if no block is whole.
  Result<BlockTable> ScanBlockTable() const;
  // The base table: the bases of the segment's deltas, ascending, each once. Empty for a segment
  // without deltas. Reads only this table, and verifies it.
  Result<std::vector<BaseRef>> ReadBaseTable() const;
  // The same bases, perhaps several times, from the blocks, if the base table is damaged. Reads all
  // blocks with deltas. kCorruption if a base may be missing: if a block or the trailer is damaged.
  Result<std::vector<BaseRef>> ScanBases() const;

  // The block at this offset. Everything is verified: both checksums, the segment id, the length.
  // Takes one read if the block has at most `expected_bytes` on disk. With `bases`, which is asked
  // once for each base of the block, deltas are inflated; otherwise they are missing in the result.
  // A base that cannot be read is no failure of this call (DecodedBlock::missing).
  Result<DecodedBlockPtr> ReadBlock(uint32_t offset, size_t expected_bytes = kUsualBlockBytes,
                                    BaseSource* bases = nullptr) const;
  // The header and chunk table of a block; the payload is neither read nor verified.
  Result<BlockHead> ReadBlockHead(uint32_t offset) const;
  // The bases of the block's deltas, from its verified payload; empty for a block without deltas.
  Result<std::vector<DeltaBase>> ReadDeltaBases(uint32_t offset) const;
  // The block with its verified payload, not decompressed: for copying a block unchanged.
  Result<EncodedBlock> ReadEncodedBlock(uint32_t offset) const;

 private:
  SegmentReader(std::unique_ptr<const ReadableFile> file, const SegmentIdentity& identity,
                const BlockCodec& codec);

  // The trailer; empty for a file that doesn't end in one.
  Result<std::optional<SegmentTrailer>> FindTrailer() const;

  // Constant after construction.
  const std::unique_ptr<const ReadableFile> file_;
  const SegmentIdentity identity_;
  const BlockCodec& codec_;

  mutable Mutex mutex_;
  mutable std::optional<SegmentTrailer> trailer_ SILTFS_GUARDED_BY(mutex_);  // set once it was read
};

}  // namespace siltfs
