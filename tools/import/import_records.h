// Makes the records that an import sends from what it has read of the source.
//
// Thread-safety: the functions have no state.
#pragma once

#include <string>
#include <vector>

#include "fs/transfer/entry_record.h"
#include "store/env/source_tree.h"
#include "tools/import/import_job.h"

namespace siltfs {

std::string PathIn(const DirectoryNode& node, const std::string& name);

// The record with owner, mode, times and extended attributes.
transfer::EntryRecord RecordOf(const SourceAttributes& attributes,
                               const std::vector<SourceXattr>& xattrs);
// The same, for an entry. A regular file also gets its size and the facts of its source.
transfer::EntryRecord EntryRecordOf(const DirectoryNode& node, const std::string& name,
                                    const SourceAttributes& attributes,
                                    const std::vector<SourceXattr>& xattrs);

// Whether a file that was read between the two attributes may have changed meanwhile.
bool Changed(const SourceAttributes& before, const SourceAttributes& after);

}  // namespace siltfs
