#include "index/flash/flash_state.h"

#include "index/flash/partition_map.h"
#include "store/base/coding.h"

namespace siltfs {
namespace {

constexpr uint64_t kIdMask = (uint64_t{1} << 62) - 1;

Status Damaged(const char* what) { return {StatusCode::kCorruption, what}; }

Result<PartitionState> DecodePartitionState(uint64_t id, ByteView bytes) {
  PartitionState partition;
  partition.id = id;
  Decoder in(bytes);
  partition.prefix.first = in.U64();
  partition.prefix.depth = in.U8();
  partition.log_from = in.U64();
  partition.state = AsText(in.Raw(in.remaining()));
  const bool valid =
      in.ok() && partition.log_from < UINT64_MAX / 2 &&
      partition.prefix.depth <= HashPrefix::kMostDepth &&
      (partition.prefix.depth == 0 ? partition.prefix.first == 0
                                   : partition.prefix.first << partition.prefix.depth == 0);
  if (!valid) return Damaged("describes a partition wrongly");
  return partition;
}

}  // namespace

std::string EncodeFlashHeader(const FlashHeader& header) {
  Encoder out;
  out.Text16(header.engine).Text16(header.parameters);
  out.U64(header.secret).U64(header.complete_sequence).U64(header.next_partition_id);
  out.U8(header.entries_lost ? 1 : 0);
  return out.Take();
}

Result<FlashHeader> DecodeFlashHeader(ByteView bytes) {
  FlashHeader header;
  Decoder in(bytes);
  header.engine = in.Text16();
  header.parameters = in.Text16();
  header.secret = in.U64();
  header.complete_sequence = in.U64();
  header.next_partition_id = in.U64();
  const uint8_t lost = in.U8();
  header.entries_lost = lost == 1;
  if (!in.Done() || lost > 1 || header.next_partition_id > kIdMask)
    return Damaged("has a wrong header");
  return header;
}

std::string EncodePartitionState(const FlashPartition& partition) {
  Encoder out;
  out.U64(partition.prefix().first).U8(static_cast<uint8_t>(partition.prefix().depth));
  out.U64(partition.log_from).Raw(partition.Encode());
  return out.Take();
}

Result<FlashState> DecodeFlashState(const StateMap::Records& records, PageFiles& files) {
  FlashState state;
  std::vector<HashPrefix> prefixes;
  bool has_header = false;
  for (const auto& [number, record] : records) {
    const uint64_t id = number & kIdMask;
    if (number == kHeaderRecord) {
      SILTFS_ASSIGN_OR_RETURN(state.header, DecodeFlashHeader(AsBytes(record)));
      has_header = true;
    } else if (number == PartitionRecordOf(id)) {
      SILTFS_ASSIGN_OR_RETURN(auto partition, DecodePartitionState(id, AsBytes(record)));
      prefixes.push_back(partition.prefix);
      state.partitions.push_back(std::move(partition));
    } else if (number == FileRecordOf(id)) {
      SILTFS_RETURN_IF_ERROR(files.Enter(id, AsBytes(record)));
    } else {
      return Damaged("has an unknown record");
    }
  }
  if (!has_header) return Damaged("has no header");
  for (const PartitionState& partition : state.partitions) {
    if (partition.id >= state.header.next_partition_id) return Damaged("has a wrong partition id");
  }
  if (!PartitionMap::Covers(std::move(prefixes))) return Damaged("has wrong partitions");
  return state;
}

}  // namespace siltfs
