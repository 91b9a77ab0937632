#include "fs/records/former_segments.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "fs/records/schema.h"

namespace siltfs {
namespace {

constexpr size_t kBitsPerByte = 8;

// The bits have no zero bytes at their end.
bool IsWellFormed(std::string_view bits) {
  return !bits.empty() && bits.size() <= FormerSegments::kIdsPerRecord / kBitsPerByte &&
         bits.back() != '\0';
}

void SetBit(std::string& bits, uint32_t bit) {
  const size_t byte = bit / kBitsPerByte;
  if (bits.size() <= byte) bits.resize(byte + 1);
  bits[byte] = static_cast<char>(static_cast<uint8_t>(bits[byte]) | 1u << bit % kBitsPerByte);
}

}  // namespace

bool FormerSegments::Add(std::string_view key, std::string_view value) {
  const auto number = ParseFormerSegmentsKey(key);
  if (!number || !IsWellFormed(value)) return false;
  if (bits_.size() < kMostRecords) bits_.insert_or_assign(*number, std::string(value));
  return true;
}

bool FormerSegments::Contains(SegmentId id) const {
  const auto found = bits_.find(id / kIdsPerRecord);
  if (found == bits_.end()) return false;
  const uint32_t bit = id % kIdsPerRecord;
  const size_t byte = bit / kBitsPerByte;
  return byte < found->second.size() &&
         (static_cast<uint8_t>(found->second[byte]) >> bit % kBitsPerByte & 1) != 0;
}

std::vector<Mutation> FormerSegments::RecordsBelow(SegmentId end) const {
  std::vector<Mutation> records;
  for (const auto& [number, bits] : bits_) {
    std::string kept;
    for (uint32_t bit = 0; bit < bits.size() * kBitsPerByte; ++bit) {
      const uint64_t id = uint64_t{number} * kIdsPerRecord + bit;
      if (id < end && Contains(static_cast<SegmentId>(id))) SetBit(kept, bit);
    }
    if (!kept.empty()) records.push_back({FormerSegmentsKey(number), std::move(kept)});
  }
  return records;
}

Result<FormerSegments> ReadFormerSegments(const KvSnapshot& metadata, uint64_t* malformed) {
  FormerSegments former;
  const KeyRange range = RangeOf(Table::kFormerSegments);
  const auto iterator = metadata.NewIteratorBelow(range.end);
  for (iterator->Seek(range.begin); iterator->Valid(); iterator->Next()) {
    const bool added = former.Add(iterator->key(), iterator->value());
    if (!added && malformed != nullptr) ++*malformed;
  }
  SILTFS_RETURN_IF_ERROR(iterator->status());
  return former;
}

Result<std::vector<Mutation>> AddFormerSegments(const KvStore& metadata,
                                                const std::set<SegmentId>& ids) {
  std::map<uint32_t, std::string> changed;
  for (const SegmentId id : ids) {
    const uint32_t number = id / FormerSegments::kIdsPerRecord;
    const auto [place, is_new] = changed.try_emplace(number);
    if (is_new) {
      SILTFS_ASSIGN_OR_RETURN(const auto before, metadata.Get(FormerSegmentsKey(number)));
      if (before && IsWellFormed(*before)) place->second = *before;
    }
    SetBit(place->second, id % FormerSegments::kIdsPerRecord);
  }
  std::vector<Mutation> mutations;
  for (auto& [number, bits] : changed)
    mutations.push_back({FormerSegmentsKey(number), std::move(bits)});
  return mutations;
}

Status NoteFormerSegments(const KvStore& metadata, std::vector<Mutation>& mutations) {
  std::set<SegmentId> former;
  for (const Mutation& mutation : mutations) {
    const auto id = mutation.value ? std::nullopt : ParseSegmentKey(mutation.key);
    if (id) former.insert(*id);
  }
  if (former.empty()) return Status::Ok();
  SILTFS_ASSIGN_OR_RETURN(auto notes, AddFormerSegments(metadata, former));
  std::ranges::move(notes, std::back_inserter(mutations));
  return Status::Ok();
}

}  // namespace siltfs
