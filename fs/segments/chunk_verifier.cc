#include "fs/segments/chunk_verifier.h"

namespace siltfs {

ChunkVerifier::Verdict ChunkVerifier::Verify(const ChunkRecord& record, ByteView bytes) {
  const ChunkName name =
      record.salt == 0 ? namer_.NameOf(bytes) : namer_.SaltedNameOf(bytes, record.salt);
  if (name != record.name) return Verdict::kOtherName;
  return tag_key_.TagOf(bytes) == record.tag ? Verdict::kRight : Verdict::kOtherTag;
}

}  // namespace siltfs
