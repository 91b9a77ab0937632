// The record of a store in a bucket that tells which of its segments were removed. A request that
// puts the object of a segment may arrive after the object was deleted: it was repeated, and the
// first one was delayed; or a fenced writer does not know of the removal. Without this record, such
// an object could not be told from a segment whose record was lost.
//
// One bit for each id: of 4096 ids that follow each other, one record holds the bits. Ids are not
// used again, so a bit stays. If metadata has a record of the segment, its bit means nothing.
//
// Thread-safety: as a value. Memory: at most 10 MiB. Errors: those of the key-value store.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "fs/kv/kv_store.h"
#include "store/base/location.h"

namespace siltfs {

class FormerSegments {
 public:
  static constexpr uint32_t kIdsPerRecord = 4096;
  // The bits of at most this many records are kept, which is those of 64 million ids. Siltfs has
  // written 2 PB when it uses more, and a crafted store must not make siltfs use more memory.
  static constexpr size_t kMostRecords = 16384;

  // Returns false for a key or a value that siltfs does not write.
  bool Add(std::string_view key, std::string_view value);
  bool Contains(SegmentId id) const;
  // The mutations that write the bits of the ids below `end` to metadata that has none.
  std::vector<Mutation> RecordsBelow(SegmentId end) const;

 private:
  std::map<uint32_t, std::string> bits_;  // by id / kIdsPerRecord
};

// Malformed records are left out, and counted if `malformed` is not null.
Result<FormerSegments> ReadFormerSegments(const KvSnapshot& metadata,
                                          uint64_t* malformed = nullptr);

// The mutations that add these ids. A malformed record is replaced.
Result<std::vector<Mutation>> AddFormerSegments(const KvStore& metadata,
                                                const std::set<SegmentId>& ids);
// Appends the mutations that add the segments whose records the given mutations remove. Each write
// of a store in a bucket needs it.
Status NoteFormerSegments(const KvStore& metadata, std::vector<Mutation>& mutations);

}  // namespace siltfs
