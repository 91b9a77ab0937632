// What reading and writing trees of files share (source_tree.h, target_tree.h). For this folder
// only.
#pragma once

#include <string>
#include <string_view>

#include "store/base/bytes.h"
#include "store/base/result.h"
#include "store/env/posix_descriptor.h"
#include "store/env/source_tree.h"

struct stat;

namespace siltfs {

// The error in errno, of an action on an entry of this name.
Status TreeError(std::string_view action, const std::string& name);

SourceAttributes FromStat(const struct stat& info);

// Returns the number of bytes read, fewer than asked for only at the end of the file.
Result<size_t> ReadFully(const Descriptor& fd, uint64_t offset, MutableByteView out,
                         const std::string& name);

}  // namespace siltfs
