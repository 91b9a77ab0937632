// Classifies raw kernel requests by how long their answers may take.
//
// Pure computation on arbitrary bytes. Thread-safety: the function has no state.
#pragma once

#include "fs/rings/request_pace.h"
#include "store/base/bytes.h"

namespace siltfs::fuse {

// How long the answer to this request may take. An answer that is expected to be quick may turn out
// to take long, for example because a lock is held.
RequestPace PaceOf(ByteView message);

}  // namespace siltfs::fuse
