#include "fs/dedup/segment_recovery.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "fs/dedup/sealed_record.h"
#include "fs/meta/schema.h"
#include "store/env/files.h"
#include "store/segment/segment_files.h"
#include "store/segment/segment_reader.h"
#include "store/segment/segment_salvage.h"
#include "store/segment/segment_scan.h"

namespace siltfs {
namespace {

// I5: no block was written after a commit that metadata has not heard of.
Status CheckCommitNumber(const StoreIdentity& identity, SegmentId id, uint64_t block_commit) {
  if (block_commit <= identity.last_commit) return Status::Ok();
  return Status(StatusCode::kCorruption,
                fmt::format("metadata ends at commit {}, but this segment was written after commit "
                            "{}: metadata was lost",
                            identity.last_commit, block_commit))
      .At(SegmentPath(identity.store, id));
}

// The highest commit number in the segment's blocks.
Result<uint64_t> NewestCommitIn(Env& env, const StoreIdentity& identity, SegmentId id) {
  SILTFS_ASSIGN_OR_RETURN(auto file,
                          env.OpenFile(SegmentPath(identity.store, id), {.mode = OpenMode::kRead}));
  uint64_t newest = 0;
  auto scanned =
      ScanBlocks(*file, {identity.uuid, id}, {}, [&newest](const BlockHead& head, uint32_t) {
        newest = std::max(newest, head.last_commit);
        return Status::Ok();
      });
  if (!scanned.ok()) return std::move(scanned).status();
  return newest;
}

// The segment's record after recovery; nothing if it held nothing and is gone.
Result<std::optional<SegmentRecord>> SealOrRemove(Env& env, const StoreIdentity& identity,
                                                  SegmentId id,
                                                  const std::optional<SegmentRecord>& record,
                                                  const ReportFinding& report) {
  auto newest = NewestCommitIn(env, identity, id);
  if (newest.ok()) SILTFS_RETURN_IF_ERROR(CheckCommitNumber(identity, id, *newest));
  // Otherwise the header is damaged or was never written; the salvage tells which.
  SalvageOptions options;
  options.committed_length = record ? record->length : 0;
  if (record) options.kind = static_cast<SegmentKind>(record->kind);
  options.on_damage = [&](uint64_t begin, uint64_t end, const Status& cause) {
    report(fmt::format("{}: bytes {} to {} are damaged: {}", SegmentPath(identity.store, id), begin,
                       end, cause.ToString()));
    return Status::Ok();
  };
  auto salvaged = SalvageSegment(env, identity.store, {identity.uuid, id}, options);
  if (!salvaged.ok()) {
    if (!salvaged.status().Is(StatusCode::kCorruption)) return std::move(salvaged).status();
    report(salvaged.status().ToString());
    return record;
  }
  if (salvaged->outcome == SalvageOutcome::kRemoved) return std::optional<SegmentRecord>();
  return std::optional<SegmentRecord>(SealedRecord(salvaged->trailer));
}

// Where the blocks of a sealed segment end.
Result<uint64_t> DataEnd(Env& env, const StoreIdentity& identity, SegmentId id) {
  const BlockCodec codec;
  SILTFS_ASSIGN_OR_RETURN(auto reader,
                          SegmentReader::Open(env, identity.store, {identity.uuid, id}, codec));
  SILTFS_ASSIGN_OR_RETURN(SegmentTrailer trailer, reader->ReadTrailer());
  return uint64_t{trailer.data_end};
}

// A block to be replayed.
struct BlockRef {
  uint64_t sequence;
  SegmentId segment;
  uint32_t offset;
};

}  // namespace

Status RecoverSegments(Env& env, const StoreIdentity& identity, SegmentRecords& records,
                       std::vector<Mutation>& changes, const ReportFinding& report) {
  SILTFS_ASSIGN_OR_RETURN(SegmentListing listing, ListSegments(env, identity.store));
  for (const std::string& path : listing.temporaries) SILTFS_RETURN_IF_ERROR(env.RemoveFile(path));
  // An earlier recovery may have removed segments and failed to make that durable. Their names
  // would return with the next power cut, when metadata knows newer ones.
  for (const std::string& path : listing.directories) {
    SILTFS_RETURN_IF_ERROR(env.SyncDirectory(path));
  }

  std::map<SegmentId, SegmentRecord> known(records.begin(), records.end());
  for (const auto& [id, record] : known) {
    if (record.chunks > 0 && !std::binary_search(listing.ids.begin(), listing.ids.end(), id)) {
      report(fmt::format("{}: the segment is missing, {} chunks with it",
                         SegmentPath(identity.store, id), record.chunks));
    }
  }
  for (SegmentId id : listing.ids) {
    auto found = known.find(id);
    std::optional<SegmentRecord> before;
    if (found != known.end()) before = found->second;
    if (before && before->sealed) continue;
    SILTFS_ASSIGN_OR_RETURN(std::optional<SegmentRecord> after,
                            SealOrRemove(env, identity, id, before, report));
    if (after == before) continue;
    if (after) {
      known[id] = *after;
      changes.push_back({SegmentKey(id), after->Encode()});
    } else {
      known.erase(id);
      changes.push_back({SegmentKey(id), std::nullopt});
    }
  }
  records.assign(known.begin(), known.end());
  return Status::Ok();
}

Result<SegmentRecord> RecoverSegment(Env& env, const StoreIdentity& identity, SegmentId id,
                                     const SegmentRecord& record, const ReportFinding& report) {
  auto after = SealOrRemove(env, identity, id, record, report);
  if (after.ok()) return after->value_or(record);
  if (!after.status().Is(StatusCode::kNotFound)) return std::move(after).status();
  report(after.status().ToString());
  return record;
}

Status ReplayBlocks(
    Env& env, const StoreIdentity& identity, const SegmentRecords& records,
    uint64_t durable_sequence,
    const std::function<Status(std::span<const IndexEntry>, uint64_t sequence)>& put,
    const ReportFinding& report) {
  std::vector<BlockRef> blocks;
  for (const auto& numbered : records) {
    const SegmentId id = numbered.first;
    const SegmentRecord& record = numbered.second;
    if (record.chunks == 0 || record.last_sequence <= durable_sequence) continue;
    auto file = env.OpenFile(SegmentPath(identity.store, id), {.mode = OpenMode::kRead});
    if (!file.ok()) {
      report(file.status().ToString());
      continue;
    }
    ScanOptions options;
    options.committed_length = record.length;
    if (record.sealed) {
      // The footer's own damage says nothing of the blocks: scan as far as they go.
      auto data_end = DataEnd(env, identity, id);
      options.committed_length = data_end.ok() ? *data_end : 0;
      options.end = options.committed_length;
    }
    options.on_damage = [&](uint64_t, uint64_t, const Status& cause) {
      report(cause.ToString());
      return Status::Ok();
    };
    auto scanned = ScanBlocks(**file, {identity.uuid, id}, options,
                              [&](const BlockHead& head, uint32_t offset) {
                                if (head.sequence > durable_sequence)
                                  blocks.push_back({head.sequence, id, offset});
                                return Status::Ok();
                              });
    if (!scanned.ok()) report(scanned.status().ToString());
  }
  std::sort(blocks.begin(), blocks.end(),
            [](const BlockRef& a, const BlockRef& b) { return a.sequence < b.sequence; });

  const BlockCodec codec;
  std::map<SegmentId, std::unique_ptr<SegmentReader>> readers;
  for (const BlockRef& ref : blocks) {
    auto& reader = readers[ref.segment];
    if (!reader) {
      if (readers.size() > 64)
        readers.erase(readers.begin()->first == ref.segment ? std::next(readers.begin())
                                                            : readers.begin());
      SILTFS_ASSIGN_OR_RETURN(
          readers[ref.segment],
          SegmentReader::Open(env, identity.store, {identity.uuid, ref.segment}, codec));
    }
    SILTFS_ASSIGN_OR_RETURN(BlockHead head, readers[ref.segment]->ReadBlockHead(ref.offset));
    std::vector<IndexEntry> entries;
    uint32_t ordinal = head.first_ordinal;
    for (const ChunkRecord& chunk : head.records) {
      entries.push_back({chunk.name, {ref.segment, ordinal++, ref.offset}});
    }
    SILTFS_RETURN_IF_ERROR(put(entries, head.sequence));
  }
  return Status::Ok();
}

}  // namespace siltfs
