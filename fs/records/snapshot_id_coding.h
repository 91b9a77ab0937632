// The 32 bytes of a SnapshotId: the store's UUID, the number and the time, little-endian. Pure
// functions. A decoder without enough bytes fails as usual (store/base/coding.h).
#pragma once

#include <algorithm>

#include "fs/records/snapshot_id.h"
#include "store/base/coding.h"

namespace siltfs {

inline void EncodeSnapshotId(Encoder& out, const SnapshotId& id) {
  out.Raw(ByteView(id.store)).U64(id.number).I64(id.created);
}

inline SnapshotId DecodeSnapshotId(Decoder& in) {
  SnapshotId id;
  const ByteView store = in.Raw(id.store.size());
  std::copy(store.begin(), store.end(), id.store.begin());
  id.number = in.U64();
  id.created = in.I64();
  return id;
}

}  // namespace siltfs
