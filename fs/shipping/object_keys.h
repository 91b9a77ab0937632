// Walks the objects of a bucket whose keys have a prefix.
//
// Thread-safety: any thread. Memory: one page of a list. Errors: those of the ObjectStore and of
// `visit`, which end the walk.
#pragma once

#include <functional>
#include <string>

#include "store/base/status.h"
#include "store/object/object_store.h"

namespace siltfs {

// Calls `visit` with each object, in the order of the keys. Objects may be removed meanwhile.
Status ForEachObject(ObjectStore& objects, const std::string& prefix,
                     const std::function<Status(const ObjectInfo&)>& visit);

}  // namespace siltfs
