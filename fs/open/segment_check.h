// Checks that metadata is as new as the segments beside it (docs/crash-model.md, I5). A store with
// an older copy of its metadata must not be opened: recovery would remove data of which only the
// lost, newer metadata had a record.
//
// Thread-safety: any thread. Reads only.
#pragma once

#include <algorithm>
#include <string>

#include "fs/records/segment_record.h"
#include "fs/recovery/segment_recovery.h"
#include "store/base/status.h"
#include "store/segment/segment_store.h"
#include "store/superblock/superblock.h"

namespace siltfs {

// kNotFound, with the path of the file that is missing, if the sealed segments are in a bucket, and
// the caller has not been told which (`segments` is null).
Status CheckPlaceIsKnown(const Superblock& superblock, const SegmentStore* segments,
                         const std::string& store);

// Whether any of these (id, record) pairs belongs to a segment with chunks.
template <typename Records>
bool HoldAnything(const Records& records) {
  return std::any_of(records.begin(), records.end(),
                     [](const auto& numbered) { return numbered.second.chunks > 0; });
}

// kCorruption if there are no segments although metadata knows of some (their disk may not be
// mounted), or if there is a symbolic link in their place. Links are not followed.
Status CheckPlaceOfSegments(const SegmentStore& segments, const SegmentListing& listing,
                            bool metadata_knows_some);

// Calls CheckPlaceOfSegments. Also returns kCorruption, naming the segment, if a segment is newer
// than metadata: its id was never claimed, a block of it names a later commit than metadata's last,
// or the store was closed cleanly and the segment has grown since then. Segments that metadata
// records as sealed are not read, and those of a fenced writer (fs/segments/fenced_writer.h) are
// passed over.
Status CheckSegments(SegmentStore& segments, const StoreIdentity& identity, const IdRanges& ids,
                     const SegmentRecords& records);

}  // namespace siltfs
