// The name prefixes and tags of all chunks of a segment, for callers that search or list chunks.
//
// Thread-safety: any thread. Memory: the footer, or the heads of the blocks one by one.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "store/base/result.h"
#include "store/segment/segment_footer.h"
#include "store/segment/segment_reader.h"

namespace siltfs {

// Called with chunks that lie one after another, and the ordinal of the first.
using VisitFooterChunks =
    std::function<void(uint32_t first_ordinal, std::span<const FooterChunk> chunks)>;

// Visits the chunks of all readable blocks. Use it if the segment has no intact footer. Reads the
// heads of the blocks, and skips unreadable blocks. Errors: those of
// SegmentReader::ScanBlockTable.
Status VisitChunksOfBlocks(const SegmentReader& reader, const VisitFooterChunks& visit);

// Returns the name prefixes of all chunks of a sealed segment: those of its footer or, if the
// footer is damaged, those of its readable blocks. kInvalidArgument for a segment that is not
// sealed; kNotFound; kCorruption if nothing of the segment can be read; kIoError.
Result<std::vector<uint64_t>> ReadNamePrefixes(SegmentStore& segments,
                                               const SegmentIdentity& identity);

}  // namespace siltfs
