#include "fs/segments/sealed_record.h"

namespace siltfs {

SegmentRecord SealedRecord(const SegmentTrailer& trailer) {
  SegmentRecord record;
  record.kind = static_cast<uint8_t>(trailer.kind);
  record.sealed = true;
  record.length = trailer.file_size();
  record.chunks = trailer.chunk_count;
  record.plain_bytes = trailer.plain_bytes;
  record.first_sequence = trailer.first_sequence;
  record.last_sequence = trailer.last_sequence;
  record.deltas = trailer.base_count > 0;
  return record;
}

}  // namespace siltfs
