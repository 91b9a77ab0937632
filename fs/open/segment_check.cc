#include "fs/open/segment_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "fs/open/store_layout.h"
#include "fs/segments/fenced_writer.h"
#include "store/segment/segment_scan.h"

namespace siltfs {
namespace {

Status MetadataLost(const SegmentStore& segments, const StoreIdentity& identity, SegmentId id,
                    std::string_view why) {
  return Status(StatusCode::kCorruption,
                fmt::format("metadata ends at commit {}, but this segment {}: metadata was lost",
                            identity.last_commit, why))
      .At(segments.NameOf(id));
}

// Returns the highest completed commit that the segment's blocks name. 0 if no block can be read;
// recovery and reads report this damage.
uint64_t NewestCommitIn(const ReadableFile& file, const StoreIdentity& identity, SegmentId id) {
  uint64_t newest = 0;
  ScanBlocks(file, {identity.uuid, id}, {},
             [&newest](const BlockHead& head, uint32_t) {
               newest = std::max(newest, head.last_commit);
               return Status::Ok();
             })
      .status()
      .IgnoreError("the readable blocks count");
  return newest;
}

}  // namespace

Status CheckPlaceIsKnown(const Superblock& superblock, const SegmentStore* segments,
                         const std::string& store) {
  if (!superblock.in_bucket() || segments != nullptr) return Status::Ok();
  return Status(StatusCode::kNotFound,
                "the segments of this store are in a bucket, and the file that says in which is "
                "missing; write it with siltfs tune --bucket")
      .At(BucketConfigPath(store));
}

Status CheckPlaceOfSegments(const SegmentStore& segments, const SegmentListing& listing,
                            bool metadata_knows_some) {
  if (!listing.links.empty()) {
    return Status(StatusCode::kCorruption,
                  "is a symbolic link, possibly to segments, and is not followed")
        .At(listing.links.front());
  }
  if (!metadata_knows_some || !listing.directories.empty()) return Status::Ok();
  return Status(StatusCode::kCorruption,
                "none of the store's segments is there: is a file system not mounted?")
      .At(segments.name());
}

Status CheckSegments(SegmentStore& segments, const StoreIdentity& identity, const IdRanges& ids,
                     const SegmentRecords& records) {
  auto listing = segments.List();
  if (!listing.ok()) {
    // mkfs makes the place of the segments before the metadata. There is metadata, so the place was
    // lost.
    if (!listing.status().Is(StatusCode::kNotFound)) return std::move(listing).status();
    return Status(StatusCode::kCorruption, "the store's segments are missing").At(segments.name());
  }
  SILTFS_RETURN_IF_ERROR(CheckPlaceOfSegments(segments, *listing, HoldAnything(records)));
  const std::map<SegmentId, SegmentRecord> known(records.begin(), records.end());
  for (SegmentId id : listing->ids) {
    auto record = known.find(id);
    if (record == known.end() && IsLeftOver(segments, id, identity.floors)) continue;
    if (id >= ids.segment_limit)
      return MetadataLost(segments, identity, id, "has an id that was never allocated");
    if (record != known.end() && record->second.sealed) continue;
    auto file = segments.Open(id);
    if (!file.ok()) return std::move(file).status();
    SILTFS_ASSIGN_OR_RETURN(const uint64_t size, (*file)->Size());
    if (ids.clean && record != known.end() && size > record->second.length) {
      return MetadataLost(
          segments, identity, id,
          fmt::format("grew from {} to {} bytes after it", record->second.length, size));
    }
    // Nothing was appended after metadata's last commit, so no block names a later one.
    if (record != known.end() && size == record->second.length) continue;
    const uint64_t newest = NewestCommitIn(**file, identity, id);
    if (newest > identity.last_commit) {
      return MetadataLost(segments, identity, id,
                          fmt::format("was written after commit {}", newest));
    }
  }
  return Status::Ok();
}

}  // namespace siltfs
