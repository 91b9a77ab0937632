// Hidden ranges: inode numbers of a clone that is not finished. Metadata has records of these
// inodes, but no name leads to them and no counter counts them. One change makes all of them
// visible: it removes the ranges and adds the name of the clone. After a crash the next mount
// removes the records. Encoding: docs/format.md, "Hidden range".
//
// While a range exists, a link record says which inode of the range is the copy of a file with
// several names.
//
// Thread-safety: as for plain values. Errors: those of metadata; kCorruption for malformed records.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "fs/kv/kv_store.h"
#include "store/base/result.h"

namespace siltfs {

// The inodes [first, end).
struct HiddenRange {
  uint64_t first = 0;
  uint64_t end = 0;

  bool Contains(uint64_t inode) const { return inode >= first && inode < end; }
  bool operator==(const HiddenRange&) const = default;

  std::string EncodeEnd() const;  // the value of HiddenRangeKey(first)
};

// The value of HiddenLinkKey(first, inode): the copy of this inode.
struct HiddenLink {
  uint64_t copy = 0;   // inode
  uint32_t names = 0;  // of the copy, found so far
  uint32_t links = 0;  // of the source

  bool operator==(const HiddenLink&) const = default;

  std::string Encode() const;
  static Result<HiddenLink> Decode(std::string_view value);
};

// All hidden ranges, in ascending order.
Result<std::vector<HiddenRange>> ReadHiddenRanges(const KvSnapshot& snapshot);

// Writes the mutations atomically.
using WriteMutations = std::function<Status(const std::vector<Mutation>&)>;

// Removes the records that the snapshot has of a range's inodes, with many small writes. The last
// one removes the range itself. If a write fails, the range still exists, and a later call
// continues.
Status RemoveHiddenRange(const KvSnapshot& snapshot, const HiddenRange& range,
                         const WriteMutations& write);

}  // namespace siltfs
