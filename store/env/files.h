// What callers of Env keep needing: whole-file reads, exact reads, and the replacement of a file as
// a whole.
#pragma once

#include <string>
#include <vector>

#include "store/env/env.h"

namespace siltfs {

std::string JoinPath(std::string_view directory, std::string_view name);

// Everything in the file; kCorruption-free, for small files only. kFileTooLarge if it is beyond
// `limit` bytes.
Result<std::string> ReadWholeFile(Env& env, const std::string& path, uint64_t limit);

// Of a directory in which nothing is worth keeping: what stands in its place and is none, a file or
// a link, is removed. kNotFound if it is not there, or is no more.
Result<std::vector<DirectoryEntry>> ListOrClear(Env& env, const std::string& directory);

// Exactly out.size() bytes; kCorruption if the file ends before.
Status ReadExactly(const File& file, uint64_t offset, MutableByteView out);

// The same failure, but never kNoSpace, which says that a call changed nothing and may be made
// again.
Status ForGood(Status failed);
// Making room does not bring back what a sync has lost: fails for good.
Status SyncNames(Env& env, const std::string& directory);

// Makes `directory` in `parent`, durably; does nothing but that if it is there. The parent is
// synced in any case: whoever made it before may have died just then. After kNoSpace it may be
// tried again.
Status CreateDirectoryDurably(Env& env, const std::string& parent, const std::string& directory);

// Writes `contents` to a new file beside `path`, syncs it, renames it over `path` and syncs the
// directory: after a crash there is the old file or the new one, whole. After kNoSpace it may be
// tried again.
Status ReplaceFile(Env& env, const std::string& path, ByteView contents);

}  // namespace siltfs
