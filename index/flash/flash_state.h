// The records of the manifest of an index with page files: a header, partitions, and files.
// Format: docs/format.md, "Page files".
//
// Functions and plain values only. kCorruption for invalid records.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "index/flash/flash_partition.h"
#include "index/flash/state_map.h"

namespace siltfs {

struct FlashHeader {
  std::string engine;
  std::string parameters;  // FlashEngine::EncodeParameters
  uint64_t secret = 0;     // of the keyed hash of names
  uint64_t complete_sequence = 0;
  uint64_t next_partition_id = 1;
  bool entries_lost = false;  // damage was found
};

struct PartitionState {
  uint64_t id = 0;
  HashPrefix prefix;
  uint64_t log_from = 0;
  std::string state;  // FlashPartition::Encode
};

inline constexpr uint64_t kHeaderRecord = 0;
inline uint64_t PartitionRecordOf(uint64_t id) { return uint64_t{1} << 62 | id; }
inline uint64_t FileRecordOf(uint64_t id) { return uint64_t{1} << 63 | id; }

std::string EncodeFlashHeader(const FlashHeader& header);
Result<FlashHeader> DecodeFlashHeader(ByteView bytes);
std::string EncodePartitionState(const FlashPartition& partition);

struct FlashState {
  FlashHeader header;
  std::vector<PartitionState> partitions;
};

// Decodes all records. Enters the files into `files`.
Result<FlashState> DecodeFlashState(const StateMap::Records& records, PageFiles& files);

}  // namespace siltfs
