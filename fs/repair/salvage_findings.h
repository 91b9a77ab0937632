// What is told of metadata that was made anew: that it was, and file by file what is lost.
//
// Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "fs/check/check_store.h"
#include "fs/repair/metadata_rebuild.h"

namespace siltfs {

// All of the code "metadata-salvaged". `path`: the metadata's directory.
std::vector<Finding> FindingsOf(const RebuiltMetadata& rebuilt, const std::string& path);

}  // namespace siltfs
