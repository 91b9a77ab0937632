#include "index/slice_lsh/slice_lsh_state.h"

#include <string_view>
#include <utility>

#include "index/device_directories.h"
#include "store/base/coding.h"

namespace siltfs {
namespace {

constexpr std::string_view kMagic = "slice_lsh";
constexpr uint64_t kMostEntries = uint64_t{1} << 32;
constexpr uint64_t kFileBit = uint64_t{1} << 63;

Status Damaged(const char* what) { return {StatusCode::kCorruption, what}; }

Result<SliceLshHeader> DecodeHeader(ByteView bytes) {
  SliceLshHeader header;
  SliceLshShape& shape = header.shape;
  Decoder in(bytes);
  const bool known = in.Text16() == kMagic;
  shape.tables = in.U8();
  shape.most_per_feature = in.U8();
  shape.growth = in.U8();
  shape.most_levels = in.U8();
  shape.directories = in.U8();
  shape.most_entries = in.U64();
  header.secret = in.U64();
  if (!in.Done() || !known || !CheckSliceLshShape(shape).ok()) return Damaged("has a wrong header");
  return header;
}

Result<LshTables> DecodeTables(const SliceLshShape& shape, ByteView bytes) {
  LshTables tables;
  Decoder in(bytes);
  while (in.ok() && in.remaining() > 0) {
    LshTable table;
    table.first.value = in.U64();
    table.pages = in.U32();
    table.entries = in.U64();
    const bool valid = table.first.value != 0 && table.first.page() == 0 && table.pages > 0 &&
                       table.pages <= LshPagesFor(kMostEntries) && table.entries > 0 &&
                       table.entries <= uint64_t{table.pages} * kLshEntriesPerPage &&
                       tables.size() < shape.most_levels;
    if (!valid) return Damaged("describes a slicetable wrongly");
    tables.push_back(table);
  }
  if (!in.ok()) return Damaged("describes a slicetable wrongly");
  return tables;
}

}  // namespace

Status CheckSliceLshShape(const SliceLshShape& shape) {
  const bool valid = shape.tables >= 1 && shape.tables <= SliceLshShape::kMostTables &&
                     shape.most_per_feature >= 1 && shape.most_per_feature <= 64 &&
                     shape.growth >= 2 && shape.growth <= 64 && shape.most_levels >= 1 &&
                     shape.most_levels <= 8 && shape.most_entries >= 1 &&
                     shape.most_entries <= kMostEntries &&
                     shape.directories <= kMostDeviceDirectories;
  if (!valid) return {StatusCode::kInvalidArgument, "a parameter of SliceLSH is out of range"};
  return Status::Ok();
}

std::string EncodeSliceLshHeader(const SliceLshHeader& header) {
  const SliceLshShape& shape = header.shape;
  Encoder out;
  out.Text16(kMagic).U8(static_cast<uint8_t>(shape.tables));
  out.U8(static_cast<uint8_t>(shape.most_per_feature)).U8(static_cast<uint8_t>(shape.growth));
  out.U8(static_cast<uint8_t>(shape.most_levels)).U8(static_cast<uint8_t>(shape.directories));
  out.U64(shape.most_entries).U64(header.secret);
  return out.Take();
}

std::string EncodeLshTables(const LshTables& tables) {
  Encoder out;
  for (const LshTable& table : tables) {
    out.U64(table.first.value).U32(table.pages).U64(table.entries);
  }
  return out.Take();
}

Result<SliceLshState> DecodeSliceLshState(const StateMap::Records& records, PageFiles& files) {
  SliceLshState state;
  const auto header = records.find(kSliceLshHeaderRecord);
  if (header == records.end()) return Damaged("has no header");
  SILTFS_ASSIGN_OR_RETURN(state.header, DecodeHeader(AsBytes(header->second)));
  for (const auto& [number, record] : records) {
    if (number == kSliceLshHeaderRecord) continue;
    if (number == LshTablesRecordOf(state.tables.size())) {
      SILTFS_ASSIGN_OR_RETURN(LshTables tables, DecodeTables(state.header.shape, AsBytes(record)));
      state.tables.push_back(std::move(tables));
    } else if ((number & kFileBit) != 0) {
      SILTFS_RETURN_IF_ERROR(files.Enter(number & ~kFileBit, AsBytes(record)));
    } else {
      return Damaged("has an unknown record");
    }
  }
  if (state.tables.size() != state.header.shape.tables) return Damaged("lacks tables");
  return state;
}

}  // namespace siltfs
