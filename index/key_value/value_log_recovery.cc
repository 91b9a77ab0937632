#include "index/key_value/value_log_recovery.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "store/segment/segment_files.h"
#include "store/segment/segment_reader.h"
#include "store/segment/segment_salvage.h"
#include "store/segment/segment_scan.h"

namespace siltfs {
namespace {

// The largest possible segment file: its last block begins at the largest offset, and the footer
// has all records. Larger files are not read.
constexpr uint64_t kMaxSegmentFileBytes =
    uint64_t{kMaxSegmentTargetSize} + kMaxBlockHeadSize + kMaxBlockPlainBytes +
    uint64_t{kMaxSegmentChunks} * (kFooterChunkSize + kFooterBlockSize) + kSegmentTrailerSize;

// By segment id; empty if the segment's file doesn't end in a whole trailer.
using Trailers = std::map<SegmentId, std::optional<SegmentTrailer>>;

// Returns the trailer; empty if the file doesn't end in a whole trailer of this segment.
Result<std::optional<SegmentTrailer>> TrailerOf(const SegmentReader& reader) {
  auto sealed = reader.IsSealed();
  if (!sealed.ok() && !sealed.status().Is(StatusCode::kCorruption))
    return std::move(sealed).status();
  if (!sealed.ok() || !*sealed) return std::optional<SegmentTrailer>();
  SILTFS_ASSIGN_OR_RETURN(SegmentTrailer trailer, reader.ReadTrailer());
  return std::optional(trailer);
}

class Recovery {
 public:
  Recovery(Env& env, const std::string& directory, const StoreUuid& store, bool read_only)
      : env_(env), directory_(directory), store_(store), read_only_(read_only) {}

  void EnterSealed(SegmentId id, const SegmentTrailer& trailer);
  // Recovers an incomplete segment.
  Status Recover(SegmentId id, const std::optional<SegmentTrailer>& trailer);
  FoundValueSegments Take() { return std::move(found_); }

 private:
  Result<std::unique_ptr<SegmentReader>> OpenReader(SegmentId id) const {
    return SegmentReader::Open(env_, directory_, {store_, id}, codec_);
  }
  void EnterUseless(SegmentId id, uint64_t file_bytes);
  Status Salvage(SegmentId id, uint64_t size);
  // Seals or removes the segment if it is unsealed. Returns whether the segment is now sealed; if
  // not, it was removed or is unreadable.
  Result<bool> SealOrRemove(SegmentId id, uint64_t size);
  Status EnterSalvaged(SegmentId id);
  Status Scan(SegmentId id, const ReadableFile& file, uint64_t size);

  Env& env_;
  const std::string& directory_;
  const StoreUuid store_;
  const bool read_only_;
  const BlockCodec codec_;
  FoundValueSegments found_;
};

void Recovery::EnterSealed(SegmentId id, const SegmentTrailer& trailer) {
  found_.segments[id] = {.file_bytes = trailer.file_size(),
                         .data_end = trailer.data_end,
                         .plain_bytes = trailer.plain_bytes,
                         .records = trailer.chunk_count};
  found_.last_sequence = std::max(found_.last_sequence, trailer.last_sequence);
}

void Recovery::EnterUseless(SegmentId id, uint64_t file_bytes) {
  ++found_.damaged;
  found_.segments[id] = {.file_bytes = file_bytes, .readable = false};
}

Status Recovery::Recover(SegmentId id, const std::optional<SegmentTrailer>& trailer) {
  SILTFS_ASSIGN_OR_RETURN(auto reader, OpenReader(id));
  SILTFS_ASSIGN_OR_RETURN(uint64_t size, reader->file().Size());
  if (size > kMaxSegmentFileBytes) {
    EnterUseless(id, size);
    return Status::Ok();
  }
  if (!read_only_) return Salvage(id, size);
  if (!trailer) return Scan(id, reader->file(), size);
  auto footer = reader->ReadFooter();
  if (footer.ok()) {
    EnterSealed(id, *trailer);
    found_.footers[id] = std::move(*footer);
    return Status::Ok();
  }
  if (!footer.status().Is(StatusCode::kCorruption)) return std::move(footer).status();
  return Scan(id, reader->file(), trailer->data_end);
}

Status Recovery::Salvage(SegmentId id, uint64_t size) {
  SILTFS_ASSIGN_OR_RETURN(bool sealed, SealOrRemove(id, size));
  return sealed ? EnterSalvaged(id) : Status::Ok();
}

Result<bool> Recovery::SealOrRemove(SegmentId id, uint64_t size) {
  std::vector<uint64_t> damage;  // starts of the damaged ranges
  SalvageOptions options;
  // Treats the whole file as committed, so that the scan goes on behind a damaged block. In fact
  // the last bytes may not have been durable.
  options.committed_length = size;
  options.on_damage = [&damage](uint64_t begin, uint64_t, const Status& cause) {
    cause.IgnoreError("a torn tail or damage, which is counted");
    damage.push_back(begin);
    return Status::Ok();
  };
  const SegmentIdentity identity{store_, id};
  auto salvaged = SalvageSegment(env_, directory_, identity, options);
  if (!salvaged.ok() && salvaged.status().Is(StatusCode::kCorruption)) {
    SILTFS_ASSIGN_OR_RETURN(auto reader, OpenReader(id));
    auto sealed = reader->IsSealed();
    const bool claims_sealed = !sealed.ok() || *sealed;
    // The segment has no whole block. If it was never sealed, the crash came before its first sync,
    // or all of it is damaged. In both cases its removal loses nothing.
    if (!claims_sealed) salvaged = SalvageSegment(env_, directory_, identity, {});
  }
  if (!salvaged.ok()) {
    if (!salvaged.status().Is(StatusCode::kCorruption)) return std::move(salvaged).status();
    EnterUseless(id, size);
    return false;
  }
  if (salvaged->outcome == SalvageOutcome::kRemoved) return false;
  if (salvaged->outcome == SalvageOutcome::kSealed) {
    found_.bytes_written += salvaged->trailer.file_size();
    // A damaged range at the end of the file is a torn tail, which any crash can leave. It does not
    // count as damage.
    const uint64_t data_end = salvaged->trailer.data_end;
    found_.damaged += static_cast<uint64_t>(std::count_if(
        damage.begin(), damage.end(), [data_end](uint64_t begin) { return begin < data_end; }));
  }
  return true;
}

Status Recovery::EnterSalvaged(SegmentId id) {
  SILTFS_ASSIGN_OR_RETURN(auto reader, OpenReader(id));
  SILTFS_ASSIGN_OR_RETURN(SegmentFooter footer, reader->ReadFooter());
  EnterSealed(id, footer.trailer);
  found_.footers[id] = std::move(footer);
  return Status::Ok();
}

Status Recovery::Scan(SegmentId id, const ReadableFile& file, uint64_t size) {
  std::vector<uint64_t> damage;
  SegmentFooter footer;
  ScanOptions options;
  options.committed_length = size;
  options.end = size;
  options.verify_payloads = true;
  options.on_damage = [&damage](uint64_t begin, uint64_t, const Status& cause) {
    cause.IgnoreError("a torn tail or damage, which is counted");
    damage.push_back(begin);
    return Status::Ok();
  };
  auto scanned = ScanBlocks(file, {store_, id}, options, [&](const BlockHead& head, uint32_t at) {
    footer.Add({at, head.first_ordinal}, head.records, head.sequence, at + head.total_bytes());
    return Status::Ok();
  });
  if (!scanned.ok()) return std::move(scanned).status();
  if (footer.blocks.empty()) {
    EnterUseless(id, size);
    return Status::Ok();
  }
  const uint64_t data_end = footer.trailer.data_end;
  found_.damaged += static_cast<uint64_t>(std::count_if(
      damage.begin(), damage.end(), [data_end](uint64_t begin) { return begin < data_end; }));
  found_.segments[id] = {.file_bytes = size,
                         .data_end = data_end,
                         .plain_bytes = scanned->plain_bytes,
                         .records = static_cast<uint32_t>(footer.chunks.size())};
  found_.footers[id] = std::move(footer);
  return Status::Ok();
}

Result<SegmentListing> ListAll(Env& env, const std::string& directory) {
  auto listing = ListSegments(env, directory);
  if (listing.ok() || !listing.status().Is(StatusCode::kNotFound)) return listing;
  return SegmentListing();
}

// Returns the manifest on disk, or a new one. The manifest must match the listing.
Result<ValueLogManifest> FindManifest(Env& env, const std::string& directory,
                                      const SegmentListing& listing, bool& is_new) {
  SILTFS_ASSIGN_OR_RETURN(auto found, ReadValueLogManifest(env, directory));
  is_new = !found;
  if (!found && !listing.ids.empty()) {
    return Status(StatusCode::kCorruption,
                  "has segments of values, but the log's manifest is missing")
        .At(directory);
  }
  ValueLogManifest manifest;
  if (found) {
    manifest = std::move(*found);
  } else {
    SILTFS_RETURN_IF_ERROR(env.FillRandom(manifest.store.bytes));
  }
  if (!listing.ids.empty() && listing.ids.back() >= manifest.next_segment) {
    return Status(StatusCode::kCorruption,
                  fmt::format("is a segment of values that is newer than the log's manifest, "
                              "which lists segments below {}",
                              manifest.next_segment))
        .At(SegmentPath(directory, listing.ids.back()));
  }
  return manifest;
}

Status TidyUp(Env& env, const SegmentListing& listing) {
  for (const std::string& path : listing.temporaries) SILTFS_RETURN_IF_ERROR(env.RemoveFile(path));
  // Removed segments must not return after a power cut.
  for (const std::string& path : listing.directories) {
    SILTFS_RETURN_IF_ERROR(env.SyncDirectory(path));
  }
  return Status::Ok();
}

// Returns the existing segments that the manifest lists as incomplete, and the unsealed ones.
std::vector<SegmentId> IncompleteOf(const Trailers& trailers,
                                    const std::vector<SegmentId>& listed) {
  std::vector<SegmentId> incomplete;
  for (const auto& [id, trailer] : trailers) {
    if (!trailer || std::binary_search(listed.begin(), listed.end(), id)) incomplete.push_back(id);
  }
  return incomplete;
}

Result<Trailers> ReadTrailers(Env& env, const std::string& directory, const StoreUuid& store,
                              const std::vector<SegmentId>& ids) {
  const BlockCodec codec;
  Trailers trailers;
  for (const SegmentId id : ids) {
    SILTFS_ASSIGN_OR_RETURN(auto reader, SegmentReader::Open(env, directory, {store, id}, codec));
    SILTFS_ASSIGN_OR_RETURN(trailers[id], TrailerOf(*reader));
  }
  return trailers;
}

Result<FoundValueSegments> RecoverSegments(Env& env, const std::string& directory,
                                           const ValueLogManifest& manifest,
                                           const Trailers& trailers, bool read_only) {
  Recovery recovery(env, directory, manifest.store, read_only);
  for (const auto& [id, trailer] : trailers) {
    if (std::binary_search(manifest.incomplete.begin(), manifest.incomplete.end(), id)) {
      SILTFS_RETURN_IF_ERROR(recovery.Recover(id, trailer));
    } else {
      recovery.EnterSealed(id, *trailer);
    }
  }
  return recovery.Take();
}

}  // namespace

Result<RecoveredValueLog> RecoverValueLog(Env& env, const std::string& directory, bool read_only) {
  SILTFS_ASSIGN_OR_RETURN(SegmentListing listing, ListAll(env, directory));
  bool is_new = false;
  SILTFS_ASSIGN_OR_RETURN(ValueLogManifest manifest, FindManifest(env, directory, listing, is_new));
  if (!read_only) {
    if (is_new) SILTFS_RETURN_IF_ERROR(WriteValueLogManifest(env, directory, manifest));
    SILTFS_RETURN_IF_ERROR(CreateSegmentsDirectory(env, directory));
    SILTFS_RETURN_IF_ERROR(TidyUp(env, listing));
  }
  SILTFS_ASSIGN_OR_RETURN(Trailers trailers,
                          ReadTrailers(env, directory, manifest.store, listing.ids));
  std::vector<SegmentId> incomplete = IncompleteOf(trailers, manifest.incomplete);
  if (incomplete != manifest.incomplete) {
    manifest.incomplete = std::move(incomplete);
    // Write the manifest before sealing the segments. Otherwise a power cut after the sealing would
    // make them look complete.
    if (!read_only) SILTFS_RETURN_IF_ERROR(WriteValueLogManifest(env, directory, manifest));
  }
  SILTFS_ASSIGN_OR_RETURN(FoundValueSegments segments,
                          RecoverSegments(env, directory, manifest, trailers, read_only));
  return RecoveredValueLog{std::move(manifest), std::move(segments)};
}

bool FooterHolds(const SegmentFooter& footer, const ChunkName& name, const Location& location) {
  if (location.ordinal >= footer.chunks.size()) return false;
  const FooterChunk& chunk = footer.chunks[location.ordinal];
  if (chunk == FooterChunk{} || chunk.name_prefix != name.Prefix64()) return false;
  const auto place = footer.FindBlock(location.ordinal);
  return place && place->block_offset == location.block_offset;
}

}  // namespace siltfs
