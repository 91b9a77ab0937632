// What metadata says of each inode, table against table: one ordered walk through all of them at
// once, which holds one inode at a time.
#pragma once

#include "fs/check/check_context.h"

namespace siltfs {

// Record, names, cookies, overlay, attributes and the mark of an orphan of each inode agree with
// each other; names and inodes, links and parents (name_check.h), and directories' parents
// (directory_tree_check.h) as well; and the store's counters are the sum. Fails where a table
// cannot be read.
Status CheckInodes(CheckContext& context, const KvSnapshot& snapshot);

}  // namespace siltfs
