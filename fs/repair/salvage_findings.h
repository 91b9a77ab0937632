// The findings about rebuilt metadata: that it was rebuilt, and the losses of each file.
//
// Thread-safety: a pure function, for any thread.
#pragma once

#include <string>
#include <vector>

#include "fs/check/check_store.h"
#include "fs/repair/metadata_rebuild.h"

namespace siltfs {

// All have the code "metadata-salvaged". `path`: the metadata's directory.
std::vector<Finding> FindingsOf(const RebuiltMetadata& rebuilt, const std::string& path);

}  // namespace siltfs
