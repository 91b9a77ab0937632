// Whether a service keeps the promises that fencing depends on. Some services accept conditional
// Puts but ignore their condition; on those, two writers would overwrite each other's objects.
//
// Thread-safety: the function may be called from any thread.
#pragma once

#include <string>

#include "store/base/status.h"
#include "store/object/object_store.h"

namespace siltfs {

// Puts, reads, lists and removes an object of this key, which must not exist. kUnsupported, with
// one sentence, if a conditional Put ignores its condition, or if a change is not visible at once.
// Other failures are those of the store. After a failure the object may remain.
Status ProbeObjectStore(ObjectStore& store, const std::string& key);

}  // namespace siltfs
