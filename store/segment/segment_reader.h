// Reads one segment file, sealed or still growing.
//
// Thread-safety: const, any number of threads; also while a SegmentWriter appends to the file (of
// blocks whose Append has returned). Ownership: `codec` must outlive the reader; results belong to
// the caller. Cost: holds one open file and some hundred bytes; caches nothing but the trailer.
// Errors: kNotFound if there is no such file; kCorruption with path and offset for everything that
// is not as it was written, never wrong bytes; kIoError from the device.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "store/base/result.h"
#include "store/base/thread_annotations.h"
#include "store/env/env.h"
#include "store/segment/block.h"
#include "store/segment/block_codec.h"
#include "store/segment/block_io.h"
#include "store/segment/segment_footer.h"

namespace siltfs {

class SegmentReader {
 public:
  // Reads nothing yet: blocks and footer say themselves what they belong to, so that a damaged
  // header costs no chunk.
  static Result<std::unique_ptr<SegmentReader>> Open(Env& env, const std::string& store,
                                                     const SegmentIdentity& identity,
                                                     const BlockCodec& codec);
  // The same for a file that is not in its place (yet).
  static Result<std::unique_ptr<SegmentReader>> OpenAt(Env& env, const std::string& path,
                                                       const SegmentIdentity& identity,
                                                       const BlockCodec& codec);

  const std::string& path() const { return file_->path(); }
  const SegmentIdentity& identity() const { return identity_; }
  const File& file() const { return *file_; }

  // kCorruption, too, if it is the header of another store or segment.
  Result<SegmentHeader> ReadHeader() const;
  // Whether the file ends in a trailer that is whole. kCorruption if it ends in something that was
  // one.
  Result<bool> IsSealed() const;
  // kInvalidArgument for a segment that is not sealed.
  Result<SegmentTrailer> ReadTrailer() const;
  // All of the footer, verified. Up to 24 bytes a chunk; kInvalidArgument for a segment that is not
  // sealed.
  Result<SegmentFooter> ReadFooter() const;
  // The entries of [first_ordinal, first_ordinal + count), fewer where the segment ends. One read.
  // NOT verified: the footer's checksum covers it as a whole. A hint, to be confirmed in the
  // block's chunk table before it is relied on.
  Result<std::vector<FooterChunk>> ReadFooterWindow(uint32_t first_ordinal, uint32_t count) const;
  // Which block holds the ordinal; reads the footer's block table. A hint, too. Empty if there is
  // no such ordinal.
  Result<std::optional<BlockPlace>> FindBlock(uint32_t ordinal) const;
  // All of the block table, 8 bytes a block, for who asks more than once. A hint, too.
  Result<BlockTable> ReadBlockTable() const;
  // The same from the heads of all whole blocks, for where the footer has rotted: reads them, and
  // what is damaged between them. kCorruption if there is none.
  Result<BlockTable> ScanBlockTable() const;

  // The block at this offset. Everything about it is verified: both checksums, the segment it says
  // it is in, its length. One read if it takes no more than `expected_bytes` on flash.
  Result<DecodedBlockPtr> ReadBlock(uint32_t offset,
                                    size_t expected_bytes = kUsualBlockBytes) const;
  // Header and chunk table only; the payload is neither read nor verified.
  Result<BlockHead> ReadBlockHead(uint32_t offset) const;
  // Payload as stored, verified but not decompressed: for copying a block as it is.
  Result<EncodedBlock> ReadEncodedBlock(uint32_t offset) const;

 private:
  SegmentReader(std::unique_ptr<File> file, const SegmentIdentity& identity,
                const BlockCodec& codec);

  // Empty for a file that doesn't end in a trailer.
  Result<std::optional<SegmentTrailer>> FindTrailer() const;

  // Constant after construction.
  const std::unique_ptr<File> file_;
  const SegmentIdentity identity_;
  const BlockCodec& codec_;

  mutable Mutex mutex_;
  mutable std::optional<SegmentTrailer> trailer_ SILTFS_GUARDED_BY(mutex_);  // once it was seen
};

}  // namespace siltfs
