#include "fs/repair/segment_repair_run.h"

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "chunker/chunk_namer.h"
#include "fs/check/base_finder.h"
#include "fs/check/check_context.h"
#include "fs/check/chunk_finder.h"
#include "fs/check/index_check.h"
#include "fs/records/former_segments.h"
#include "fs/records/schema.h"
#include "fs/segments/sealed_record.h"
#include "store/segment/segment_files.h"
#include "store/segment/segment_reader.h"
#include "store/segment/segment_repair.h"

namespace siltfs {
namespace {

bool HasAny(const std::set<std::string>& codes, std::initializer_list<std::string_view> wanted) {
  return std::any_of(wanted.begin(), wanted.end(),
                     [&codes](std::string_view code) { return codes.contains(std::string(code)); });
}

// Returns the record of a chunk of one zero byte, which replaces lost chunks.
Result<ChunkRecord> MakeFiller(const Superblock& superblock) {
  SILTFS_ASSIGN_OR_RETURN(ChunkNamer namer, ChunkNamer::Create(superblock.uuid.bytes));
  constexpr std::array<uint8_t, 1> kByte = {0};
  ChunkRecord filler;
  filler.name = namer.NameOf(kByte);
  filler.tag = TagKey(superblock.tag_secret).TagOf(kByte);
  filler.length = 1;
  return filler;
}

// Reads the bases of deltas in a store under repair.
class RepairBases {
 public:
  static Result<std::unique_ptr<RepairBases>> Open(const RepairSession& session,
                                                   const CheckOptions& options) {
    SILTFS_ASSIGN_OR_RETURN(ChunkNamer namer, ChunkNamer::Create(session.superblock.uuid.bytes));
    std::unique_ptr<RepairBases> bases(new RepairBases(session, options, std::move(namer)));
    SILTFS_RETURN_IF_ERROR(OpenCheckedIndex(bases->context_));
    return bases;
  }

  // Returns the source of the bases that the segment needs, after a search for them.
  Result<BaseSource*> For(SegmentId segment) {
    const auto reader = finder_.Open(segment);
    if (!reader.ok()) return &bases_;  // a repair of the segment returns the failure
    const auto table = (*reader)->ReadBaseTable();
    if (!table.ok()) {
      table.status().IgnoreError("each base is searched when it is needed");
      return &bases_;
    }
    SILTFS_RETURN_IF_ERROR(bases_.Resolve(*table));
    return &bases_;
  }

 private:
  RepairBases(const RepairSession& session, const CheckOptions& options, ChunkNamer namer)
      : options_(Quiet(options)),
        context_(session.env, options_),
        finder_(context_),
        bases_(context_, finder_, {std::move(namer), session.superblock.tag_secret},
               BaseFinder::Trust::kNothing) {
    context_.superblock = session.superblock;
    context_.segments = {session.records.segments.begin(), session.records.segments.end()};
    context_.removed = session.records.removed;
  }
  static CheckOptions Quiet(CheckOptions options) {
    options.on_finding = nullptr;
    options.on_progress = nullptr;
    options.on_lost = nullptr;
    return options;
  }

  const CheckOptions options_;
  CheckContext context_;
  ChunkFinder finder_;
  BaseFinder bases_;
};

class SegmentRun {
 public:
  // `bases` may be null: then deltas stay as they are.
  SegmentRun(RepairSession& session, std::optional<ChunkRecord> filler, RepairBases* bases)
      : session_(session), filler_(std::move(filler)), bases_(bases) {}

  // Returns whether anything was changed.
  Result<bool> Repair(SegmentId id, const std::set<std::string>& codes) {
    SILTFS_ASSIGN_OR_RETURN(const auto footer, WholeFooter(id, codes));
    if (footer) return SetRecord(id, *footer);
    SegmentRepairOptions options = OptionsFor(id);
    if (bases_ != nullptr) {
      SILTFS_ASSIGN_OR_RETURN(options.bases, bases_->For(id));
    }
    auto prepared = PrepareSegmentRepair(session_.env, session_.store, session_.segments,
                                         session_.Identity(id), options);
    if (prepared.ok()) {
      SILTFS_RETURN_IF_ERROR(Install(id, prepared->trailer));
      return true;
    }
    const Status& failure = prepared.status();
    SILTFS_ASSIGN_OR_RETURN(const auto stray, StrayInPlaceOf(id));
    const bool gone = stray || failure.Is(StatusCode::kNotFound);
    if (!gone && !failure.Is(StatusCode::kCorruption)) return failure;
    if (!filler_) return false;
    if (stray) SILTFS_RETURN_IF_ERROR(MoveAside(*stray));
    return Forget(id);
  }

 private:
  // Returns the path of an object of a wrong type in the place of the segment's local file or its
  // directory; nullopt if there is none.
  Result<std::optional<std::string>> StrayInPlaceOf(SegmentId id) {
    const std::pair<std::string, FileType> wanted[] = {
        {SegmentDirectory(session_.store, id), FileType::kDirectory},
        {SegmentPath(session_.store, id), FileType::kRegular}};
    for (const auto& [path, type] : wanted) {
      const auto info = session_.env.GetFileInfo(path);
      if (info.status().Is(StatusCode::kNotFound)) break;
      if (!info.ok()) return info.status();
      if (info->type != type) return std::optional(path);
    }
    return std::optional<std::string>();
  }

  // Renames the object instead of removing it, because it may be user data. Objects that were moved
  // aside earlier stay, too.
  Status MoveAside(const std::string& path) {
    std::string aside = path + ".stray";
    auto there = session_.env.GetFileInfo(aside);
    for (; there.ok(); there = session_.env.GetFileInfo(aside)) aside += "+";
    if (!there.status().Is(StatusCode::kNotFound)) return there.status();
    SILTFS_RETURN_IF_ERROR(session_.env.Rename(path, aside));
    return session_.env.SyncDirectory(path.substr(0, path.rfind('/')));
  }

  // Returns the trailer if the file is whole; then only the segment's record may be wrong. Returns
  // nullopt if the file is not whole.
  Result<std::optional<SegmentTrailer>> WholeFooter(SegmentId id,
                                                    const std::set<std::string>& codes) {
    std::optional<SegmentTrailer> none;
    const bool of_file = HasAny(codes, {"segment-header", "segment-footer", "segment-truncated",
                                        "block-head", "block-payload", "chunk-name", "delta-base"});
    if (of_file) return none;
    const BlockCodec codec;
    auto reader = SegmentReader::Open(session_.segments, session_.Identity(id), codec);
    if (!reader.ok()) return none;
    const auto header = (*reader)->ReadHeader();
    const auto footer = (*reader)->ReadFooter();
    const bool whole = header.ok() && footer.ok() && header->kind == footer->trailer.kind;
    return whole ? std::optional(footer->trailer) : none;
  }

  SegmentRepairOptions OptionsFor(SegmentId id) const {
    SegmentRepairOptions options;
    options.filler = filler_;
    const SegmentRecord* record = session_.RecordOf(id);
    if (record == nullptr) return options;
    options.kind = static_cast<SegmentKind>(record->kind);
    options.chunks = static_cast<uint32_t>(std::min<uint64_t>(record->chunks, kMaxSegmentChunks));
    if (record->sealed) {
      options.sealed_length = record->length;
    } else {
      options.committed_length = record->length;
    }
    return options;
  }

  SegmentRecord RecordFor(SegmentId id, const SegmentTrailer& trailer) const {
    SegmentRecord record = SealedRecord(trailer);
    const SegmentRecord* before = session_.RecordOf(id);
    // In a store with deltas, any chunk may be the base of a delta, and must stay whole.
    const bool must_stay_whole = session_.superblock.deltas() && trailer.kind == SegmentKind::kData;
    record.recompressed = must_stay_whole || (before != nullptr && before->recompressed);
    return record;
  }

  Result<bool> SetRecord(SegmentId id, const SegmentTrailer& trailer) {
    const SegmentRecord record = RecordFor(id, trailer);
    const SegmentRecord* before = session_.RecordOf(id);
    if (before != nullptr && *before == record) return false;
    SILTFS_RETURN_IF_ERROR(session_.kv->Write({{SegmentKey(id), record.Encode()}}));
    Remember(id, record);
    return true;
  }

  Status Install(SegmentId id, const SegmentTrailer& trailer) {
    const SegmentRecord record = RecordFor(id, trailer);
    const SegmentRecord* before = session_.RecordOf(id);
    const bool announce = before != nullptr && *before != record;
    if (announce)
      SILTFS_RETURN_IF_ERROR(session_.kv->Write({{ReplacementKey(id), record.Encode()}}));
    SILTFS_RETURN_IF_ERROR(
        session_.segments.Replace(id, BuiltReplacement(session_.env, session_.store, id)));
    if (before != nullptr && !announce) return Status::Ok();
    SILTFS_RETURN_IF_ERROR(session_.kv->Write(
        {{SegmentKey(id), record.Encode()}, {ReplacementKey(id), std::nullopt}}));
    Remember(id, record);
    return Status::Ok();
  }

  // Removes the segment: first its record in metadata, then its file, as in garbage collection.
  Result<bool> Forget(SegmentId id) {
    if (session_.RecordOf(id) == nullptr) return false;
    std::vector<Mutation> changes = {{SegmentKey(id), std::nullopt},
                                     {ReplacementKey(id), std::nullopt},
                                     {RemovedSegmentKey(id), std::string()}};
    if (!session_.records.floors.empty())  // of a store in a bucket
      SILTFS_RETURN_IF_ERROR(NoteFormerSegments(*session_.kv, changes));
    SILTFS_RETURN_IF_ERROR(session_.kv->Write(changes));
    std::erase_if(session_.records.segments,
                  [id](const auto& numbered) { return numbered.first == id; });
    SILTFS_RETURN_IF_ERROR(session_.segments.Remove(id));
    SILTFS_RETURN_IF_ERROR(session_.kv->Write({{RemovedSegmentKey(id), std::nullopt}}));
    return true;
  }

  void Remember(SegmentId id, const SegmentRecord& record) {
    SegmentRecords& records = session_.records.segments;
    const auto place = std::lower_bound(
        records.begin(), records.end(), id,
        [](const auto& numbered, SegmentId wanted) { return numbered.first < wanted; });
    if (place != records.end() && place->first == id) {
      place->second = record;
    } else {
      records.insert(place, {id, record});
    }
  }

  RepairSession& session_;
  const std::optional<ChunkRecord> filler_;
  RepairBases* const bases_;
};

// Removes the damage records of the segment after its damaged chunks were removed. If a repair is
// interrupted before this step, a scrub removes the records.
Status ForgetDamage(RepairSession& session, SegmentId id) {
  const auto snapshot = session.kv->Snapshot();
  const KeyRange range = RangeOf(Table::kDamage);
  const auto iterator = snapshot->NewIteratorBelow(range.end);
  std::vector<Mutation> changes;
  for (iterator->Seek(DamageKey(id, 0)); iterator->Valid(); iterator->Next()) {
    const auto place = ParseDamageKey(iterator->key());
    if (!place || place->first != id) break;
    changes.push_back({std::string(iterator->key()), std::nullopt});
  }
  SILTFS_RETURN_IF_ERROR(iterator->status());
  return changes.empty() ? Status::Ok() : session.kv->Write(changes);
}

Result<uint64_t> RunAll(RepairSession& session, const SegmentFindings& findings,
                        const std::optional<ChunkRecord>& filler, RepairBases* bases,
                        std::initializer_list<std::string_view> codes,
                        const std::function<Status(SegmentId)>& repaired) {
  SegmentRun run(session, filler, bases);
  uint64_t changed = 0;
  for (const auto& [id, found] : findings) {
    if (!HasAny(found, codes)) continue;
    SILTFS_ASSIGN_OR_RETURN(const bool done, run.Repair(id, found));
    if (!done) continue;
    SILTFS_RETURN_IF_ERROR(repaired(id));
    ++changed;
  }
  return changed;
}

}  // namespace

Result<uint64_t> RepairSegments(RepairSession& session, SegmentFindings& findings) {
  return RunAll(session, findings, std::nullopt, nullptr,
                {"segment-header", "segment-footer", "segment-record", "segment-unknown",
                 "segment-truncated", "segment-kind"},
                [&findings](SegmentId id) {
                  findings[id].erase("segment-truncated");
                  return Status::Ok();
                });
}

Result<uint64_t> DropDamage(RepairSession& session, const CheckOptions& options,
                            const SegmentFindings& findings) {
  SILTFS_ASSIGN_OR_RETURN(const ChunkRecord filler, MakeFiller(session.superblock));
  SILTFS_ASSIGN_OR_RETURN(const auto bases, RepairBases::Open(session, options));
  return RunAll(
      session, findings, filler, bases.get(),
      {"segment-missing", "segment-truncated", "block-head", "block-payload", "delta-base"},
      [&session](SegmentId id) { return ForgetDamage(session, id); });
}

}  // namespace siltfs
