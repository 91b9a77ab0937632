#include "index/slice_bloom/slice_bloom_state.h"

#include <algorithm>
#include <unordered_set>

#include "store/base/coding.h"

namespace siltfs {
namespace {

constexpr uint64_t kIdMask = (uint64_t{1} << 61) - 1;
constexpr std::string_view kMagic = "slice_bloom";
// Positions of a filter in one partition: a slicefilter of 256 columns takes 64 MiB at most.
constexpr uint64_t kMostPositions = 1U << 21;
// Bits of the filter of a group in all partitions, which is in memory: 256 MiB.
constexpr uint64_t kMostBits = uint64_t{1} << 31;

Status Damaged(const char* what) { return {StatusCode::kCorruption, what}; }

uint64_t PositionsOf(const SliceBloomShape& shape) {
  const uint64_t bits = shape.names_per_group * shape.bits_per_name;
  return std::max<uint64_t>(
      (bits + (uint64_t{1} << shape.partition_bits) - 1) >> shape.partition_bits, 64);
}

Result<SliceBloomHeader> DecodeHeader(ByteView bytes) {
  SliceBloomHeader header;
  SliceBloomShape& shape = header.shape;
  Decoder in(bytes);
  const bool known = in.Text16() == kMagic;
  shape.partition_bits = in.U8();
  shape.names_per_group = in.U64();
  shape.bits_per_name = in.U8();
  shape.probes = in.U8();
  shape.groups_per_filter = in.U16();
  header.secret = in.U64();
  header.groups = in.U64();
  if (!in.Done() || !known || !CheckSliceBloomShape(shape).ok())
    return Damaged("has a wrong header");
  return header;
}

Result<SliceBloomGroup> DecodeGroup(Decoder& in) {
  SliceBloomGroup group;
  group.names = in.U64();
  while (in.ok() && in.remaining() > 0) {
    SliceBloomGroup::Member member;
    member.segment = in.U32();
    member.names = in.U32();
    if (member.segment == kNoSegment) return Damaged("describes a group wrongly");
    group.members.push_back(member);
  }
  if (!in.ok() || group.MemberNames() > group.names) return Damaged("describes a group wrongly");
  return group;
}

Result<SliceFilters> DecodeFilters(const SliceBloomShape& shape, ByteView bytes) {
  SliceFilters filters;
  Decoder in(bytes);
  while (in.ok() && in.remaining() > 0) {
    SliceFilter filter;
    filter.first.value = in.U64();
    filter.columns = in.U32();
    if (filter.columns == 0 || filter.columns > shape.groups_per_filter) {
      return Damaged("describes a slicefilter wrongly");
    }
    filters.push_back(filter);
  }
  if (!in.ok()) return Damaged("describes a slicefilter wrongly");
  return filters;
}

// The slicefilters have the columns of all groups, and perhaps of one more that had not ended. Only
// those that have all their columns can have been released.
bool HasColumns(const SliceFilters& filters, const SliceBloomHeader& header) {
  const uint64_t most = header.shape.groups_per_filter;
  uint64_t columns = 0;
  for (size_t i = 0; i < filters.size(); ++i) {
    if (i + 1 < filters.size() && filters[i].columns != most) return false;
    columns += filters[i].columns;
    if (filters[i].first.value == 0 && (filters[i].columns != most || columns > header.groups)) {
      return false;
    }
  }
  return columns == header.groups || columns == header.groups + 1;
}

// Whether no segment is in two groups, or in a group whose slicefilter was released.
bool AreMembersRight(const SliceBloomState& state) {
  std::unordered_set<SegmentId> segments;
  const auto enter = [&](const SliceBloomGroup& group) {
    return std::ranges::all_of(
        group.members, [&](const auto& member) { return segments.insert(member.segment).second; });
  };
  if (state.saved && !enter(state.saved->group)) return false;
  const size_t per_filter = state.header.shape.groups_per_filter;
  std::vector<bool> used(state.groups.size() / per_filter + 1);  // by slicefilter
  for (size_t i = 0; i < state.groups.size(); ++i) {
    if (!enter(state.groups[i])) return false;
    if (!state.groups[i].members.empty()) used[i / per_filter] = true;
  }
  return std::ranges::all_of(state.partitions, [&](const SliceFilters& filters) {
    for (size_t i = 0; i < filters.size(); ++i) {
      if (used[i] && filters[i].first.value == 0) return false;
    }
    return true;
  });
}

}  // namespace

Status CheckSliceBloomShape(const SliceBloomShape& shape) {
  const bool valid = shape.partition_bits <= 16 && shape.names_per_group > 0 &&
                     shape.names_per_group <= uint64_t{1} << 32 && shape.bits_per_name >= 1 &&
                     shape.bits_per_name <= 64 && shape.probes >= 1 &&
                     shape.probes <= SliceBloomLookup::kMostProbes &&
                     shape.groups_per_filter >= 1 && shape.groups_per_filter <= kMostColumns;
  if (!valid) return {StatusCode::kInvalidArgument, "a parameter of SliceBloom is out of range"};
  if (PositionsOf(shape) > kMostPositions) {
    return {StatusCode::kInvalidArgument, "groups are too large for so few partitions"};
  }
  if (PositionsOf(shape) << shape.partition_bits > kMostBits) {
    return {StatusCode::kInvalidArgument, "the filter of a group is too large"};
  }
  return Status::Ok();
}

BloomShape SliceBloomHeader::FilterShape() const {
  return {
      .blocks = 1, .block_bits = static_cast<uint32_t>(PositionsOf(shape)), .probes = shape.probes};
}

uint64_t SliceBloomGroup::MemberNames() const {
  uint64_t sum = 0;
  for (const Member& member : members) sum += member.names;
  return sum;
}

std::string EncodeSliceBloomHeader(const SliceBloomHeader& header) {
  const SliceBloomShape& shape = header.shape;
  Encoder out;
  out.Text16(kMagic).U8(static_cast<uint8_t>(shape.partition_bits)).U64(shape.names_per_group);
  out.U8(static_cast<uint8_t>(shape.bits_per_name)).U8(static_cast<uint8_t>(shape.probes));
  out.U16(static_cast<uint16_t>(shape.groups_per_filter)).U64(header.secret).U64(header.groups);
  return out.Take();
}

std::string EncodeGroup(const SliceBloomGroup& group) {
  Encoder out;
  out.U64(group.names);
  for (const auto& member : group.members) out.U32(member.segment).U32(member.names);
  return out.Take();
}

std::string EncodeSavedGroup(const SavedGroup& saved) {
  Encoder out;
  out.U64(saved.first.value).Raw(EncodeGroup(saved.group));
  return out.Take();
}

std::string EncodeSliceFilters(const SliceFilters& filters) {
  Encoder out;
  for (const SliceFilter& filter : filters) out.U64(filter.first.value).U32(filter.columns);
  return out.Take();
}

Result<SliceBloomState> DecodeSliceBloomState(const StateMap::Records& records, PageFiles& files) {
  SliceBloomState state;
  const auto header = records.find(kSliceBloomHeaderRecord);
  if (header == records.end()) return Damaged("has no header");
  SILTFS_ASSIGN_OR_RETURN(state.header, DecodeHeader(AsBytes(header->second)));
  uint64_t partitions = 0;
  for (const auto& [number, record] : records) {
    const uint64_t id = number & kIdMask;
    if (number == kSliceBloomHeaderRecord) continue;
    if (number == kSavedGroupRecord) {
      Decoder in(AsBytes(record));
      SavedGroup saved;
      saved.first.value = in.U64();
      SILTFS_ASSIGN_OR_RETURN(saved.group, DecodeGroup(in));
      state.saved = std::move(saved);
    } else if (number == GroupRecordOf(id)) {
      // Records come in the order of their numbers.
      if (id != state.groups.size()) return Damaged("lacks a group");
      Decoder in(AsBytes(record));
      SILTFS_ASSIGN_OR_RETURN(auto group, DecodeGroup(in));
      state.groups.push_back(std::move(group));
    } else if (number == FiltersRecordOf(id)) {
      if (id != partitions++) return Damaged("lacks a partition");
      SILTFS_ASSIGN_OR_RETURN(auto filters, DecodeFilters(state.header.shape, AsBytes(record)));
      if (!HasColumns(filters, state.header)) return Damaged("has wrong slicefilters");
      state.partitions.push_back(std::move(filters));
    } else if (number == SliceBloomFileRecordOf(number & ~(uint64_t{1} << 63))) {
      SILTFS_RETURN_IF_ERROR(files.Enter(number & ~(uint64_t{1} << 63), AsBytes(record)));
    } else {
      return Damaged("has an unknown record");
    }
  }
  if (partitions != uint64_t{1} << state.header.shape.partition_bits ||
      state.groups.size() != state.header.groups) {
    return Damaged("lacks partitions or groups");
  }
  if (!AreMembersRight(state)) return Damaged("has wrong segments");
  return state;
}

}  // namespace siltfs
