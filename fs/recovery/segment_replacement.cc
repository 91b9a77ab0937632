#include "fs/recovery/segment_replacement.h"

#include <algorithm>

#include "fs/records/schema.h"
#include "fs/segments/sealed_record.h"
#include "store/segment/segment_reader.h"

namespace siltfs {
namespace {

// Whether the file in place is the one that the intent announces.
Result<bool> IsInPlace(SegmentStore& segments, const StoreIdentity& identity, SegmentId id,
                       const SegmentRecord& intent) {
  const BlockCodec codec;
  auto reader = SegmentReader::Open(segments, {identity.uuid, id}, codec);
  if (!reader.ok()) {
    if (reader.status().Is(StatusCode::kNotFound)) return false;
    return std::move(reader).status();
  }
  auto trailer = (*reader)->ReadTrailer();
  if (!trailer.ok()) {
    if (trailer.status().Is(StatusCode::kIoError)) return std::move(trailer).status();
    trailer.status().IgnoreError("a file without a whole trailer is not the new one");
    return false;
  }
  SegmentRecord found = SealedRecord(*trailer);
  found.recompressed = intent.recompressed;
  return found == intent;
}

}  // namespace

void ResolveReplacements(SegmentStore& segments, const StoreIdentity& identity,
                         const SegmentRecords& intents, SegmentRecords& records,
                         std::vector<Mutation>& changes) {
  for (const auto& [id, intent] : intents) {
    const auto replaced = IsInPlace(segments, identity, id, intent);
    if (!replaced.ok()) {
      replaced.status().IgnoreError("reads of the segment report it");
      continue;
    }
    changes.push_back({ReplacementKey(id), std::nullopt});
    const auto record =
        std::find_if(records.begin(), records.end(),
                     [wanted = id](const auto& numbered) { return numbered.first == wanted; });
    if (record == records.end() || !*replaced) continue;
    record->second = intent;
    changes.push_back({SegmentKey(id), intent.Encode()});
  }
}

}  // namespace siltfs
