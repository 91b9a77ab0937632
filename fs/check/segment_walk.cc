#include "fs/check/segment_walk.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "fs/segments/sealed_record.h"
#include "store/segment/block_io.h"

namespace siltfs {
namespace {

// The number of chunks that are looked up together, so that the index reads flash with a deep
// queue.
constexpr size_t kLookupBatch = 4096;

}  // namespace

SegmentWalk::SegmentWalk(CheckContext& context, ChunkFinder& finder, ChunkNamer namer)
    : context_(context),
      finder_(finder),
      verifier_(std::move(namer), context.superblock.tag_secret) {}

void SegmentWalk::Say(const char* code, std::optional<uint64_t> offset, std::string message) {
  context_.Report({.code = code, .path = path_, .offset = offset, .message = std::move(message)});
}

void SegmentWalk::Say(const char* code, const Status& failure) {
  Say(code, failure.offset(), std::string(failure.cause()));
}

Status SegmentWalk::Check(SegmentId id) {
  id_ = id;
  path_ = context_.segment_store->NameOf(id);
  record_ = context_.RecordOf(id);
  trailer_.reset();
  footer_.reset();
  footer_wrong_ = truncated_ = damaged_ = lost_commit_ = false;
  scan_ = {};
  end_ordinal_ = 0;
  gathered_.clear();
  places_.clear();
  not_indexed_ = not_noted_ = data_bytes_ = 0;

  CheckPresence();
  auto opened =
      SegmentReader::Open(*context_.segment_store, context_.Identity(id), finder_.codec());
  if (!opened.ok()) {
    Say("segment-read", opened.status());
    return Status::Ok();
  }
  reader_ = std::move(opened).value();
  const auto size = reader_->file().Size();
  if (!size.ok()) {
    Say("segment-read", size.status());
    return Status::Ok();
  }
  size_ = *size;
  CheckLength();
  ReadFooter();
  CheckHeader();
  SILTFS_RETURN_IF_ERROR(ScanAll());
  FindGathered();
  CheckTotals();
  CheckRecord();
  if (not_indexed_ > 0) {
    context_.HoldBack({.code = "not-indexed",
                       .path = path_,
                       .offset = not_indexed_offset_,
                       .message = fmt::format("{} chunks of the segment are not found by the index",
                                              not_indexed_)});
  }
  if (not_noted_ > 0) {
    Say("copies-not-noted", not_noted_offset_,
        fmt::format("the index does not lead to {} chunks of the segment, and the segment is not "
                    "noted for secondary copies",
                    not_noted_));
  }
  context_.SetChunksIn(id_, scan_.end_ordinal);
  context_.Count([this](CheckReport& report) {
    ++report.segments;
    report.blocks += scan_.blocks;
    report.chunks += scan_.end_ordinal;
    report.segment_bytes += size_;
    report.data_bytes += data_bytes_;
    if (scan_.torn && (record_ == nullptr || !record_->sealed)) ++report.torn_tails;
  });
  return Status::Ok();
}

void SegmentWalk::CheckPresence() {
  if (record_ != nullptr || !context_.records_known) return;
  if (id_ >= context_.ids.segment_limit) {
    Say("metadata-lost", std::nullopt,
        fmt::format("metadata ends at commit {}, but it never allocated the segment's "
                    "number",
                    context_.last_commit));
    return;
  }
  // After a crash there may be segments that were begun after the last commit.
  const bool begun_since =
      !context_.clean() && (context_.segments.empty() || id_ > context_.segments.rbegin()->first);
  if (!begun_since) Say("segment-unknown", std::nullopt, "metadata has no record of the segment");
}

void SegmentWalk::CheckLength() {
  if (record_ == nullptr || size_ == record_->length) return;
  const std::string sizes =
      fmt::format("the segment has {} bytes and should have {}", size_, record_->length);
  if (size_ < record_->length) {
    truncated_ = true;
    Say("segment-truncated", size_, sizes);
  } else if (record_->sealed) {
    Say("segment-record", std::nullopt, sizes);
  } else if (context_.clean()) {
    Say("metadata-lost", std::nullopt, sizes + " after the unmount");
  }
}

void SegmentWalk::ReadFooter() {
  const bool expected = record_ != nullptr && record_->sealed && !truncated_;
  const auto sealed = reader_->IsSealed();
  if (sealed.ok() && *sealed) {
    auto trailer = reader_->ReadTrailer();
    if (trailer.ok()) trailer_ = *trailer;
    if (trailer_ && trailer_->base_count > 0 && !context_.superblock.deltas()) {
      Say("segment-footer", trailer_->base_table_offset(),
          "the segment has deltas, but the superblock does not allow them");
    }
    auto footer = reader_->ReadFooter();
    if (footer.ok()) {
      footer_ = std::move(footer).value();
    } else if (expected) {
      Say("segment-footer", footer.status());
    } else {
      footer.status().IgnoreError("torn: the crash came before the seal was committed");
    }
  } else if (expected) {
    if (sealed.ok()) {
      Say("segment-footer", std::nullopt, "the segment's footer is missing");
    } else {
      Say("segment-footer", sealed.status());
    }
  } else if (!sealed.ok() && !context_.records_known) {
    Say("segment-footer", sealed.status());  // without records, this may be damage
  } else {
    sealed.status().IgnoreError("a torn tail, not a footer");
  }
  committed_length_ = 0;
  if (trailer_) {
    committed_length_ = trailer_->data_end;  // sealing syncs the blocks before it writes the footer
  } else if (record_ != nullptr) {
    committed_length_ = std::min(
        size_, record_->sealed ? LastDataEnd(record_->length, record_->chunks) : record_->length);
  }
}

void SegmentWalk::CheckHeader() {
  const auto header = reader_->ReadHeader();
  if (!header.ok()) {
    const bool was_durable =
        trailer_ || (record_ != nullptr && record_->length >= kSegmentHeaderSize);
    if (was_durable) Say("segment-header", header.status());
    return;
  }
  if (context_.records_known && header->last_commit > context_.last_commit) lost_commit_ = true;
  const bool kinds_differ =
      (record_ != nullptr && static_cast<uint8_t>(header->kind) != record_->kind) ||
      (trailer_ && header->kind != trailer_->kind);
  if (kinds_differ)
    Say("segment-kind", 0, "header, footer and record do not agree on the segment's kind");
}

Status SegmentWalk::ScanAll() {
  ScanOptions options;
  options.committed_length = committed_length_;
  const bool sealed = trailer_ || (record_ != nullptr && record_->sealed);
  options.end = sealed ? committed_length_ : 0;
  // Without a trailer, only intact payloads show where the last whole block ends.
  options.verify_payloads = !trailer_;
  options.on_damage = [this](uint64_t begin, uint64_t end, const Status& cause) {
    return OnDamage(begin, end, cause);
  };
  auto scanned =
      ScanBlocks(reader_->file(), context_.Identity(id_), options,
                 [this](const BlockHead& head, uint32_t offset) { return OnBlock(head, offset); });
  if (scanned.ok()) {
    scan_ = *scanned;
  } else {
    if (!IsDamage(scanned.status())) return std::move(scanned).status();
    damaged_ = true;
    Say("segment-read", scanned.status());
  }
  if (lost_commit_) {
    Say("metadata-lost", std::nullopt,
        fmt::format("metadata ends at commit {}, but the segment was written after a later one",
                    context_.last_commit));
  }
  return Status::Ok();
}

Status SegmentWalk::OnDamage(uint64_t begin, uint64_t end, const Status& cause) {
  // Damage after the last block is damage of the footer, whose exact beginning is unknown without
  // the trailer. ReadFooter has reported this damage.
  const bool sealed = record_ != nullptr && record_->sealed;
  if (!trailer_ && sealed && end_ordinal_ >= record_->chunks) return Status::Ok();
  damaged_ = true;
  const auto head = ReadBlockHeadAt(reader_->file(), context_.Identity(id_), begin);
  // True if the block's head is intact, even if the file ends within the payload.
  const bool payload_only = head.ok() && begin + head->total_bytes() >= end;
  if (payload_only) {
    end_ordinal_ = head->end_ordinal();
    for (const ChunkRecord& chunk : head->records) context_.AddDamaged(chunk.name);
  }
  if (truncated_ && end >= size_) return Status::Ok();  // already reported
  Say(payload_only ? "block-payload" : "block-head", begin,
      fmt::format("bytes {} to {} are damaged: {}", begin, end, cause.cause()));
  return Status::Ok();
}

Status SegmentWalk::OnBlock(const BlockHead& head, uint32_t offset) {
  SILTFS_RETURN_IF_ERROR(context_.Continue());
  if (context_.records_known && head.last_commit > context_.last_commit) lost_commit_ = true;
  end_ordinal_ = head.end_ordinal();
  CompareWithFooter(head, offset);
  CompareWithIndex(head, offset);
  if (context_.options.data) CheckData(head, offset);
  return Status::Ok();
}

void SegmentWalk::CompareWithFooter(const BlockHead& head, uint32_t offset) {
  if (!footer_ || footer_wrong_) return;
  const auto place = footer_->FindBlock(head.first_ordinal);
  bool same = place == BlockPlace{offset, head.first_ordinal} &&
              head.end_ordinal() <= footer_->chunks.size();
  for (size_t i = 0; same && i < head.records.size(); ++i) {
    const ChunkRecord& chunk = head.records[i];
    same = footer_->chunks[head.first_ordinal + i] == FooterChunk{chunk.name.Prefix64(), chunk.tag};
  }
  if (same) return;
  footer_wrong_ = true;
  Say("segment-footer", offset, "the footer differs from the block at this offset");
}

void SegmentWalk::CompareWithIndex(const BlockHead& head, uint32_t offset) {
  if (!context_.index) return;
  const bool may_be_absent = context_.IsReplayed(head);
  uint32_t ordinal = head.first_ordinal;
  for (const ChunkRecord& chunk : head.records) {
    gathered_.push_back(chunk.name);
    places_.push_back({ordinal++, offset, may_be_absent});
  }
  if (gathered_.size() >= kLookupBatch) FindGathered();
}

void SegmentWalk::FindGathered() {
  if (gathered_.empty()) return;
  std::vector<std::optional<Location>> locations(gathered_.size());
  context_.index->Get(gathered_, locations).IgnoreError("chunks without an answer count as absent");
  for (size_t i = 0; i < gathered_.size(); ++i) {
    const Place& place = places_[i];
    if (locations[i]) {
      if (locations[i]->segment == id_ && locations[i]->ordinal == place.ordinal) continue;
      // The index leads to another location. If a copy of the chunk lies there, the chunk is stored
      // twice and can be found. This segment must then be noted, unless it has both copies, because
      // GC removes two copies in one segment together.
      const auto other = finder_.RecordAt(*locations[i]);
      const bool leads_to_copy = other.ok() && *other && (*other)->name == gathered_[i];
      // If both chunks share the entry, this one is found without it, by a search.
      if (other.ok() && *other && context_.ShareEntry((*other)->name, gathered_[i])) continue;
      if (!leads_to_copy || locations[i]->segment != id_) NoteSecondary(place);
      if (leads_to_copy) continue;
    }
    if (place.may_be_absent) continue;
    if (!locations[i]) NoteSecondary(place);
    if (not_indexed_++ == 0) not_indexed_offset_ = place.offset;
  }
  gathered_.clear();
  places_.clear();
}

void SegmentWalk::NoteSecondary(const Place& place) {
  if (!context_.options.copies || !context_.notes_kept || place.may_be_absent ||
      context_.secondary.Contains(id_))
    return;
  if (not_noted_++ == 0) not_noted_offset_ = place.offset;
}

void SegmentWalk::CheckData(const BlockHead& head, uint32_t offset) {
  const auto block = reader_->ReadBlock(offset);
  if (!block.ok()) {
    Say("block-payload", block.status());
    damaged_ = true;
    for (const ChunkRecord& chunk : head.records) context_.AddDamaged(chunk.name);
    return;
  }
  for (size_t i = 0; i < head.records.size(); ++i) {
    const ChunkRecord& chunk = head.records[i];
    if ((*block)->missing(i) != nullptr) continue;  // a delta, which CheckDeltas verifies
    const auto verdict = verifier_.Verify(chunk, (*block)->chunk(i));
    if (verdict == ChunkVerifier::Verdict::kRight) continue;
    context_.AddDamaged(chunk.name);
    Say("chunk-name", offset,
        fmt::format("chunk {} of the segment, {}, has bytes of another {}", head.first_ordinal + i,
                    chunk.name.ToHex(),
                    verdict == ChunkVerifier::Verdict::kOtherTag ? "tag" : "name"));
  }
  data_bytes_ += head.plain_bytes;
}

void SegmentWalk::CheckTotals() {
  if (!footer_ || footer_wrong_ || damaged_) return;
  const SegmentTrailer& trailer = footer_->trailer;
  if (trailer.block_count == scan_.blocks && trailer.chunk_count == scan_.end_ordinal &&
      trailer.plain_bytes == scan_.plain_bytes && trailer.data_end == scan_.valid_end &&
      trailer.first_sequence == scan_.first_sequence &&
      trailer.last_sequence == scan_.last_sequence) {
    return;
  }
  Say("segment-footer", trailer.data_end, "the footer's totals differ from the blocks");
}

void SegmentWalk::CheckRecord() {
  if (record_ == nullptr || truncated_ || size_ != record_->length) return;
  SegmentRecord expected = *record_;
  if (record_->sealed) {
    if (trailer_) {
      expected = SealedRecord(*trailer_);
      expected.kind = record_->kind;                  // CheckHeader compares it
      expected.recompressed = record_->recompressed;  // not stored in the file
    } else if (!damaged_ && scan_.end_ordinal != record_->chunks) {
      // Without a footer only the record holds the number of chunks.
      Say("block-head", scan_.valid_end,
          fmt::format("the segment ends after {} of {} chunks", scan_.end_ordinal,
                      record_->chunks));
      return;
    }
  } else if (context_.clean() && !damaged_) {
    expected.chunks = scan_.end_ordinal;
    expected.plain_bytes = scan_.plain_bytes;
    expected.first_sequence = scan_.first_sequence;
    expected.last_sequence = scan_.last_sequence;
  }
  if (expected == *record_) return;
  Say("segment-record", std::nullopt,
      fmt::format("metadata says that the segment has {} chunks of {} bytes and sequences {} to "
                  "{}, it has {} of {} and {} to {}",
                  record_->chunks, record_->plain_bytes, record_->first_sequence,
                  record_->last_sequence, expected.chunks, expected.plain_bytes,
                  expected.first_sequence, expected.last_sequence));
}

}  // namespace siltfs
