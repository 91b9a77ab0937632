#include "fs/check/base_finder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "fs/check/segment_check_run.h"

namespace siltfs {
namespace {

constexpr size_t kBlockBytes = 8u << 20;
constexpr size_t kLookupBatch = 4096;

bool IsRecordOf(const ChunkRecord& record, const BaseRef& base) {
  return record.name == base.name && record.tag == base.tag && record.length == base.length;
}

}  // namespace

BaseFinder::BaseFinder(CheckContext& context, ChunkFinder& finder, ChunkVerifier verifier,
                       Trust trust)
    : context_(context),
      finder_(finder),
      verifier_(std::move(verifier)),
      trust_(trust),
      blocks_(kBlockBytes) {}

Status BaseFinder::Resolve(std::span<const BaseRef> bases) {
  searched_.clear();
  std::map<BaseRef, std::optional<Location>> wanted;
  for (size_t at = 0; at < bases.size(); at += kLookupBatch) {
    SILTFS_RETURN_IF_ERROR(context_.Continue());
    LookUp(bases.subspan(at, std::min(kLookupBatch, bases.size() - at)), wanted);
  }
  if (wanted.empty()) return Status::Ok();
  SILTFS_RETURN_IF_ERROR(Search(wanted));
  searched_ = std::move(wanted);
  return Status::Ok();
}

void BaseFinder::LookUp(std::span<const BaseRef> bases,
                        std::map<BaseRef, std::optional<Location>>& unknown) {
  std::vector<ChunkName> names;
  for (const BaseRef& base : bases) names.push_back(base.name);
  std::vector<std::optional<Location>> locations(names.size());
  if (context_.index) context_.index->Get(names, locations).IgnoreError("segments are searched");
  // Sort by location, so that each block's head is read once.
  std::vector<size_t> order(bases.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(),
            [&locations](size_t a, size_t b) { return locations[a] < locations[b]; });
  for (const size_t i : order) {
    if (!locations[i] || !IsWholeAt(*locations[i], bases[i])) unknown.try_emplace(bases[i]);
  }
}

bool BaseFinder::IsThere(const BaseRef& base) {
  const auto searched = searched_.find(base);
  return searched == searched_.end() || searched->second.has_value();
}

std::optional<Location> BaseFinder::InIndex(const BaseRef& base) {
  if (!context_.index) return std::nullopt;
  const auto location = context_.index->Get(base.name);
  if (!location.ok()) {
    location.status().IgnoreError("the segments are searched");
    return std::nullopt;
  }
  if (!*location || !IsWholeAt(**location, base)) return std::nullopt;
  return **location;
}

bool BaseFinder::IsWholeAt(const Location& location, const BaseRef& base) {
  const auto record = finder_.WholeAt(location);
  if (!record.ok()) {
    NoteFailure(base, record.status());
    return false;
  }
  if (!*record || !IsRecordOf(**record, base)) return false;
  // If a chunk of this name is damaged, this copy may be undamaged.
  if (trust_ == Trust::kKnownDamage && !context_.IsDamaged(base.name)) return true;
  const auto bytes = ReadAt(location, base);
  if (bytes.ok()) return verifier_.Verify(**record, bytes->bytes) == ChunkVerifier::Verdict::kRight;
  NoteFailure(base, bytes.status());
  return false;
}

// SegmentWalk reports damage. A device error is kept: the base may be there.
void BaseFinder::NoteFailure(const BaseRef& base, const Status& failure) {
  failure.IgnoreError("as above");
  if (!failure.Is(StatusCode::kIoError)) return;
  unreadable_.insert_or_assign(base, failure)
      .first->second.IgnoreError("ReadBase returns it, if no copy is readable");
}

Status BaseFinder::Search(std::map<BaseRef, std::optional<Location>>& wanted) {
  std::map<ChunkName, std::vector<BaseRef>> names;
  for (const auto& [base, place] : wanted) names[base.name].push_back(base);
  return ForEachBlock(context_, finder_, SegmentKind::kData,
                      [&](const BlockHead& head, uint32_t offset) {
                        uint32_t ordinal = head.first_ordinal;
                        for (const ChunkRecord& record : head.records) {
                          const Location location{head.segment, ordinal++, offset};
                          const auto named = names.find(record.name);
                          if (named == names.end()) continue;
                          for (const BaseRef& base : named->second) {
                            std::optional<Location>& place = wanted[base];
                            if (place || !IsRecordOf(record, base)) continue;
                            if (IsWholeAt(location, base)) place = location;
                          }
                        }
                        return Status::Ok();
                      });
}

Result<BaseBytes> BaseFinder::ReadAt(const Location& location, const BaseRef& base) {
  SILTFS_ASSIGN_OR_RETURN(const ChunkFinder::Block at, finder_.BlockOf(location));
  const uint64_t block_key = uint64_t{location.segment} << 32 | at.offset;
  DecodedBlockPtr block = blocks_.Get(block_key);
  if (!block) {
    SILTFS_ASSIGN_OR_RETURN(const auto reader, finder_.Open(location.segment));
    SILTFS_ASSIGN_OR_RETURN(block, reader->ReadBlock(at.offset));
    blocks_.Put(block_key, block, block->memory_bytes());
  }
  const uint32_t position = location.ordinal - block->head().first_ordinal;
  if (!block->head().Covers(location.ordinal) || block->missing(position) != nullptr ||
      !IsRecordOf(block->records()[position], base)) {
    return Status(StatusCode::kNotFound,
                  fmt::format("the base {} is not whole at its place", base.ToString()));
  }
  return BaseBytes{block, block->chunk(position)};
}

Result<BaseBytes> BaseFinder::ReadBase(const BaseRef& base) {
  if (const auto location = InIndex(base)) {
    auto bytes = ReadAt(*location, base);
    if (bytes.ok() || !IsDamage(bytes.status())) return bytes;
    // From now on all copies of this base are read. Another one may be undamaged.
    context_.AddDamaged(base.name);
  }
  auto searched = searched_.find(base);
  if (searched == searched_.end()) {
    std::map<BaseRef, std::optional<Location>> wanted{{base, std::nullopt}};
    SILTFS_RETURN_IF_ERROR(Search(wanted));
    searched = searched_.insert(*wanted.begin()).first;
  }
  if (searched->second) return ReadAt(*searched->second, base);
  if (const auto failed = unreadable_.find(base); failed != unreadable_.end())
    return failed->second;
  const bool damaged = context_.IsDamaged(base.name);
  return Status(
      damaged ? StatusCode::kCorruption : StatusCode::kNotFound,
      fmt::format("the base {} {}", base.ToString(), damaged ? "is damaged" : "is in no segment"));
}

}  // namespace siltfs
