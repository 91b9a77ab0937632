// The records of the manifest of a SliceLSH (index/flash/state_map.h): a header, the slicetables of
// each table, and files. Format: docs/format.md, "SliceLSH".
//
// Functions and plain values only. kCorruption for invalid records.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "index/flash/page_files.h"
#include "index/flash/state_map.h"
#include "index/slice_lsh/lsh_table.h"
#include "index/slice_lsh/slice_lsh.h"

namespace siltfs {

struct SliceLshHeader {
  SliceLshShape shape;
  uint64_t secret = 0;
};

struct SliceLshState {
  SliceLshHeader header;
  std::vector<LshTables> tables;
};

inline constexpr uint64_t kSliceLshHeaderRecord = 0;
inline uint64_t LshTablesRecordOf(uint64_t table) { return uint64_t{1} << 62 | table; }
inline uint64_t SliceLshFileRecordOf(uint64_t id) { return uint64_t{1} << 63 | id; }

// kInvalidArgument, with one sentence, if a shape is out of range.
Status CheckSliceLshShape(const SliceLshShape& shape);

std::string EncodeSliceLshHeader(const SliceLshHeader& header);
std::string EncodeLshTables(const LshTables& tables);

// Decodes all records. Enters the files into `files`.
Result<SliceLshState> DecodeSliceLshState(const StateMap::Records& records, PageFiles& files);

}  // namespace siltfs
